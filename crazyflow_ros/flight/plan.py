"""Plans: how a drone follows a setpoint, from the tick at which it takes effect."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import cos, inf, sin
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks.plain_values import Spec
from crazyflow_ros.control.setpoint_modes import SetpointMode
from crazyflow_ros.drones import has_battery, load_battery
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.dynamics.forces.floor import contact_points
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.envelope import UNBOUNDED, Envelope
from crazyflow_ros.flight.moving_goal import Stream
from crazyflow_ros.flight.tumbling import leaning_height
from crazyflow_ros.scene.conditions import STANDARD, Conditions
from crazyflow_ros.scene.frames import quat_from_rpy, yaw


class FlightState(StrEnum):
    """State of a drone's flight."""

    idle = "idle"
    """No command since the last reset; rotors stopped."""
    taking_off = "taking off"
    flying = "flying"
    landing = "landing"
    landed = "landed"
    """On the floor with rotors stopped; it takes off again on command."""
    crashed = "crashed"
    """On the floor with rotors stopped, after a crash; it must be reset, or recover."""
    locked = "locked"
    """Rotors stopped by an emergency stop, or without power; it must be reset."""
    lost = "lost"
    """Out of service, and held where it is, perhaps in the air; it must be reset."""

    stands: bool
    """Whether the rotors are stopped and the drone is ready to take off."""
    needs_reset: bool
    """Whether the drone flies again only after a reset, or after it recovered from a crash."""


for _state in FlightState:
    _state.stands = _state in (FlightState.idle, FlightState.landed)
    _state.needs_reset = _state in (FlightState.crashed, FlightState.locked, FlightState.lost)


@dataclass(frozen=True)
class Advice:
    """What messages advise the pilot of a drone that does not fly, in the words of his program."""

    crashed: str = "reset it"
    """After a crash."""
    locked: str = "reset it"
    """After an emergency stop, or without power."""
    empty: str = "reset it"
    """After its battery has run down."""
    call: str = "reset {}"
    """After a crash, as a call; `{}` stands for the name of the drone."""
    disarmed: str = "call arm"
    """Before it can take off."""
    streaming: str = "call notify_setpoints_stop"
    """Before it follows something other than its stream of setpoints."""


_LEAST_BOUND = 0.05  # smallest limit of a flight other than 0, in m and s
_NEAR_FLOOR = 0.05  # m, for small drones
_LEAST_SHARE = 0.1  # of the bounds below, with which a drone that can hardly fly still moves
_BY_THRUST = ("acceleration", "lift", "catch", "jerk", "yaw_acceleration", "yaw_jerk")


def _bound(what: str, unit: str, most: float) -> Spec:
    text = f"{what} for poses and velocities [{unit}]; 0: computed from the drone's mass and thrust"
    return Spec(text, 0.0, most, least=_LEAST_BOUND)


@dataclass(frozen=True)
class FlightConfig:
    """How drones are flown; the limits do not apply to raw commands and trajectories.

    A bound of 0 is computed from the drone's parameters, see `Envelope.of`.
    """

    speed: Annotated[float, _bound("Largest horizontal speed", "m/s", 50.0)] = 0.0
    climb: Annotated[float, _bound("Largest vertical speed", "m/s", 50.0)] = 0.0
    acceleration: Annotated[float, _bound("Largest horizontal acceleration", "m/s^2", 50.0)] = 0.0
    jerk: Annotated[float, _bound("Largest jerk", "m/s^3", 1000.0)] = 0.0
    yaw_rate: Annotated[float, _bound("Largest yaw rate", "rad/s", 20.0)] = 0.0
    velocity_timeout: Annotated[
        float,
        Spec("Time without cmd_vel or cmd_hover until the drone hovers [s]", 0.02, 10.0),
    ] = 0.5
    takeoff_height: Annotated[
        float, Spec("Height of automatic take-offs by cmd_vel and goal_pose [m]", 0.2, 100.0)
    ] = 0.5
    auto_arm: Annotated[bool, Spec("Commands arm a drone; if false, call <drone>/arm first")] = True
    exact_durations: Annotated[
        bool,
        Spec(
            "takeoff, land and go_to take exactly the given time, as in the firmware, even if the "
            "drone cannot follow, except a takeoff that needs more than 0.4 of the spare thrust; "
            "if false, they take longer then"
        ),
    ] = False
    """A polynomial trajectory then begins with its own velocity, too."""
    advice: Advice = field(default_factory=Advice)
    """Advice in messages."""


@dataclass(frozen=True)
class Rules:
    """Properties of a drone that its commander needs, and how to fly it."""

    envelope: Envelope
    rest_height: float
    """Height in the world of the centre of mass of a drone that stands on the floor [m]."""
    weight: float
    """Collective thrust that balances gravity [N]."""
    drag: np.ndarray
    """(3,) deceleration by drag [1/s], for feed-forward."""
    velocity_timeout: float
    """See `FlightConfig`, also for the fields below without a text of their own."""
    takeoff_height: float
    """Height in the world of automatic take-offs [m]."""
    auto_arm: bool
    exact_durations: bool = False
    empty_voltage: float = 0.0
    """Voltage under load [V] at which its battery is empty; 0 if that is not known."""
    utmost: Envelope = UNBOUNDED
    """Bounds that its rotors can reach for a moment."""
    advice: Advice = field(default_factory=Advice)
    """See `FlightConfig`."""
    lift: float = inf
    """Vertical acceleration of take-offs with exact durations [m/s^2]."""
    floor: float = 0.0
    """Height of the floor [m], from which heights of setpoints count."""
    gravity: float = 9.81
    """m/s^2, downwards."""
    near_floor: float = _NEAR_FLOOR
    """Height above that of a standing drone up to which one that leans may touch the floor [m]."""
    n_rotors: int = QUADROTOR
    """Number of rotors, and so of numbers of a command of their speeds."""

    def at(self, start: StartState) -> Rules:
        """Return the rules for what a drone can do at the start of a plan."""
        if start.authority >= 1 and start.fastest == inf:
            return self
        share, fastest = max(start.authority, _LEAST_SHARE), start.fastest
        envelope, utmost = (
            replace(bounds, **{name: share * getattr(bounds, name) for name in _BY_THRUST})
            for bounds in (self.envelope, self.utmost)
        )
        slower = {"speed": min(envelope.speed, fastest), "climb": min(envelope.climb, fastest)}
        return replace(self, envelope=replace(envelope, **slower), utmost=utmost)

    def bounds(self, duration: float, *, rises: bool = False) -> Envelope:
        """Return the bounds of a flight.

        Args:
            duration: Required duration [s]; 0 for any.
            rises: Whether it is a take-off.
        """
        if not self.exact_durations or duration <= 0:
            return self.envelope
        # Rotors that start from rest lift a drone late. If it may use more, it catches up at full
        # thrust, and then brakes with so little thrust that any correction tilts it steeply.
        return replace(UNBOUNDED, lift=self.lift) if rises else UNBOUNDED

    @classmethod
    def of(cls, drone: str, config: FlightConfig, conditions: Conditions = STANDARD) -> Rules:
        """Derive the rules from the drone's parameters and the conditions in its world.

        Raises:
            ValueError: The drone is unknown.
        """
        figures, utmost = conditions.figures(drone), Envelope.utmost(drone, conditions)
        gravity, floor = -float(figures["gravity_vec"][2]), conditions.floor or 0.0
        given = {name: getattr(config, name) for name in _BOUNDS if getattr(config, name)}
        return cls(
            replace(Envelope.of(drone, conditions), **given),
            floor + rest_height(drone),
            gravity * float(figures["mass"]),
            np.abs(np.diag(figures["drag_matrix"])) / float(figures["mass"]),
            config.velocity_timeout,
            floor + config.takeoff_height,
            config.auto_arm,
            config.exact_durations,
            load_battery(drone)["empty"] if has_battery(drone) else 0.0,
            utmost,
            config.advice,
            utmost.lift,
            floor,
            gravity,
            max(_NEAR_FLOOR, leaning_height(contact_points(drone))),
            len(figures["rotors"]),
        )


_BOUNDS = ("speed", "climb", "acceleration", "jerk", "yaw_rate")


@dataclass(frozen=True)
class StartState:
    """Motion and state of a drone when a setpoint takes effect."""

    time_ns: int
    """Simulation time."""
    reference: Reference
    """The present reference; or the present motion if there is none or the drone cannot keep up."""
    state: FlightState = FlightState.flying
    stream: Stream = ()
    """The stream of poses up to the setpoint, its own pose included; empty without a stream."""
    authority: float = 1.0
    """Share of its spare thrust that the drone has, with its battery and motors, in this wind."""
    fastest: float = inf
    """Speed that its controller can follow [m/s]."""
    restless: bool = False
    """Whether places to fly to replace one another many times a second."""
    quat: ArrayLike = (0.0, 0.0, 0.0, 1.0)
    """(4,) true attitude xyzw."""


class Attitude(NamedTuple):
    """Constant roll and pitch, or their rates, with a turning heading, for the attitude controller.

    A controller without rate modes levels these axes, like the firmware's Mellinger controller.
    """

    roll: float
    """rad; or rad/s about the body's x axis."""
    pitch: float
    """rad; or rad/s about the body's y axis."""
    yaw: float
    """Initial yaw, rad."""
    yaw_rate: float
    """rad/s."""
    thrust: float
    """Collective, N."""
    are_rates: tuple[bool, bool] = (False, False)
    """Whether roll and pitch are rates."""

    def heading(self, seconds: float) -> float:
        """Return the yaw [rad] after a time."""
        return self.yaw + self.yaw_rate * seconds

    def command(self, seconds: float) -> np.ndarray:
        """Return (9,) roll, pitch, yaw [rad], thrust [N], body rates [rad/s], and `are_rates`."""
        given = (self.roll, self.pitch)
        roll, pitch = (0.0 if is_rate else x for x, is_rate in zip(given, self.are_rates))
        turn = (-sin(pitch), sin(roll) * cos(pitch), cos(roll) * cos(pitch))
        rates = [self.yaw_rate * share for share in turn]
        for i, is_rate in enumerate(self.are_rates):
            rates[i] = given[i] if is_rate else rates[i]
        return np.array([roll, pitch, self.heading(seconds), self.thrust, *rates, *self.are_rates])


class Turn(NamedTuple):
    """A setpoint of a mode of the firmware, with a turning heading."""

    mode: SetpointMode
    numbers: np.ndarray
    """(16,) as in `Control.state`, without attitude."""
    roll: float
    """rad."""
    pitch: float
    """rad."""
    yaw: float
    """Initial yaw, rad."""
    yaw_rate: float
    """rad/s."""

    def heading(self, seconds: float) -> float:
        """Return the yaw [rad] after a time."""
        return self.yaw + self.yaw_rate * seconds

    def command(self, seconds: float) -> np.ndarray:
        """Return the numbers (16,) after a time."""
        command = self.numbers.copy()
        command[9:13] = quat_from_rpy(np.array([self.roll, self.pitch, self.heading(seconds)]))
        return command


@dataclass(frozen=True)
class Plan:
    """How a drone follows a setpoint: by a course, or by values that are held."""

    course: Course | None = None
    command: np.ndarray | None = None
    """Command of the control mode, passed on unchanged."""
    mode: SetpointMode | None = None
    """Mode of the command; by default the control mode."""
    held: Attitude | Turn | None = None
    """Values whose heading turns."""
    during: FlightState = FlightState.flying
    after: FlightState = FlightState.flying
    """State from the end of the course on. The rotors stop if the state `stands`."""
    aloft: float = inf
    """Time of the course [s] from which a drone that takes off flies; at its end at the latest."""
    begin_ns: int | None = None
    """Start time of the course; None if it starts when the setpoint takes effect."""
    timeout: float = inf
    """Time without another setpoint after which `Setpoint.lapsed` takes effect [s]."""
    bounded: bool = True
    """Whether the envelope bounds the course; a drone that loses such a course restarts it."""
    pace: float = 1.0
    """Share of the pace of its moving goal at which the drone flies."""
    note: str = ""
    """Remark for the sender of the setpoint."""

    def heading(self, seconds: float) -> float | None:
        """Return the yaw [rad] after a time, where the plan holds one; it may be many turns."""
        if self.held is not None:
            return self.held.heading(seconds)
        return None if self.mode is None or self.command is None else float(yaw(self.command[9:13]))
