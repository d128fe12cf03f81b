"""What a drone can be told.

A setpoint is checked when it is made, and planned when it takes effect, from what the drone was
doing. The plan gives the command of any later instant, so that a flight does not depend on when it
is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros import limits
from crazyflow_ros.control import Control
from crazyflow_ros.control.commands import check_command
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.governor import (
    at_velocity,
    descent,
    shortest_turn,
    to_pose,
    to_rest,
)
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, Start
from crazyflow_ros.flight.planner import PolynomialTrajectory, checked_timescale, to_rest_at
from crazyflow_ros.flight.profile import Profile
from crazyflow_ros.limits import Limit

CLEARANCE = 0.15
"""m above where a drone stands, below which it moves straight up and down only."""
TOUCHED = 0.02
"""m above where it stands, from where on a drone that comes down has landed."""
BEYOND = 0.1
"""s that a course at a velocity goes on after it has lapsed."""

_RISEN = 0.01  # m below the height of a take-off, from where on it is over
_UP = np.array([[0.0], [0.0], [9.81]])  # m/s^2, what carries the weight
_LEAST_THRUST = 1.0  # m/s^2, below which a body may point anywhere
_CLOSEST = 100_000  # ns between two points of a trajectory
_MOTION = [limits.POSITION] * 3 + [limits.VELOCITY] * 3 + [limits.ACCELERATION] * 3
_RATES = [limits.ANGULAR_VELOCITY] * 3
_COMMAND_LIMITS: dict[tuple[Control, int], list[Limit]] = {
    (Control.state, 13): [*_MOTION, limits.ANGLE, *_RATES],
    (Control.state, 16): [*_MOTION, *[limits.QUATERNION] * 4, *_RATES],
    (Control.attitude, 4): [*[limits.ANGLE] * 3, limits.FORCE],
    (Control.body_rate, 4): [*_RATES, limits.FORCE],
    (Control.force_torque, 4): [limits.FORCE, *[limits.TORQUE] * 3],
    (Control.rotor_vel, 4): [Limit(limits.ROTOR_VELOCITY.most / RPM, "RPM")] * 4,
}
_GROUPS = 255
_DURATION = limits.Limit(1e3, "s")
_LOWEST_TAKEOFF = 0.1  # m above the floor


class Setpoint(ABC):
    """Something that a drone can be told."""

    group_mask: int = 0
    """Only drones of these groups heed it; 0 is all."""
    when_lapsed: ClassVar[str] = ""
    """What a pilot is to be told when it was not repeated in time."""

    def check(self, control: Control) -> None:  # noqa: B027  most are good in all modes
        """Raise ValueError if drones in this control mode cannot follow."""

    @abstractmethod
    def plan(self, start: Start, rules: Rules) -> Plan:
        """What the drone does about it.

        Raises:
            ValueError: It makes no sense for what the drone is at.
        """

    def lapsed(self, rules: Rules) -> Setpoint:
        """What follows when it was not repeated in time, see `Plan.lapses`."""
        del rules
        return Brake()


class StateSetpoint(Setpoint):
    """A setpoint of the position controller."""

    def check(self, control: Control) -> None:
        """Needs state control."""
        if control is not Control.state:
            kind = type(self).__name__.lower()
            raise ValueError(f"a {kind} setpoint needs control=state, the drones have {control}")


@dataclass(frozen=True)
class Pose(StateSetpoint):
    """Fly to a position and heading, and stay there. From the floor it takes off first."""

    pos: ArrayLike
    """(3,) m, world frame. On the floor, the drone lands there."""
    yaw: float
    """rad; NaN keeps the heading."""

    def __post_init__(self) -> None:
        pos = limits.vector("position", self.pos, (3,), limits.POSITION)
        object.__setattr__(self, "pos", pos)
        if not isnan(self.yaw):
            object.__setattr__(self, "yaw", limits.number("yaw", self.yaw, limits.ANGLE))

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Up, across and down: across only where the feet are clear of the floor."""
        reference, envelope = start.reference, rules.envelope
        x, y, z = np.asarray(self.pos).tolist()
        yaw = float(reference.pos[3]) if isnan(self.yaw) else self.yaw
        clear = rules.rest_height + CLEARANCE
        lands = z < rules.rest_height + TOUCHED
        course = to_pose(reference, (x, y, max(z, clear)), yaw, envelope)
        if start.state.stands or reference.pos[2] < clear:
            course = _after_lifting(course, clear)
        if z < clear:
            above = Reference.at_rest((x, y, clear), float(course.at(course.end).pos[3]))
            goal = (x, y, max(z, rules.rest_height))
            course = course.then(to_pose(above, goal, yaw, envelope))
        return Plan(
            course,
            during=FlightState.taking_off if start.state.stands else FlightState.flying,
            after=FlightState.landed if lands else FlightState.flying,
        )


@dataclass(frozen=True)
class Goal(StateSetpoint):
    """Fly to a place at the present height, or at `Rules.takeoff_height` from the floor."""

    place: ArrayLike
    """(2,) x and y, world frame, m."""
    yaw: float
    """rad; NaN keeps the heading."""

    def __post_init__(self) -> None:
        place = limits.vector("position", self.place, (2,), limits.POSITION)
        object.__setattr__(self, "place", place)
        if not isnan(self.yaw):
            limits.number("yaw", self.yaw, limits.ANGLE)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """As a pose."""
        height = float(start.reference.pos[2])
        if start.state.stands or height < rules.rest_height + CLEARANCE:
            height = rules.takeoff_height
        return Pose((*np.asarray(self.place), height), self.yaw).plan(start, rules)


@dataclass(frozen=True)
class Velocity(StateSetpoint):
    """Fly at a velocity and turn at a rate; hover if it is not repeated in time.

    A drone on the floor takes off, to `Rules.takeoff_height`; one that comes down to it lands.
    """

    vel: ArrayLike
    """(3,) m/s in the heading frame: x ahead, y left, z up. Turns with the heading."""
    yaw_rate: float
    """rad/s."""

    def __post_init__(self) -> None:
        vel = limits.vector("velocity", self.vel, (3,), limits.VELOCITY)
        rate = limits.number("yaw rate", self.yaw_rate, limits.ANGULAR_VELOCITY)
        object.__setattr__(self, "vel", vel)
        object.__setattr__(self, "yaw_rate", rate)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """A course to the velocity, which lapses."""
        vx, vy, vz = np.asarray(self.vel).tolist()
        at, stands = start.reference, start.state.stands
        if stands and not (vx or vy or vz or self.yaw_rate):
            return still(start, start.state)
        if stands and vz < 0:
            raise ValueError("it stands on the floor and cannot go down")
        rises = stands or start.state is FlightState.taking_off
        if rises and vz >= 0 and at.pos[2] < rules.takeoff_height - _RISEN:
            return self._rising(start, rules)
        if vz < 0:
            return self._falling(start, rules)
        clear = at.pos[2] >= rules.rest_height + CLEARANCE
        return self._course(at, rules, (vx, vy, vz) if clear else (0.0, 0.0, vz))

    def _rising(self, start: Start, rules: Rules) -> Plan:
        """Take off, which goes on by itself as long as the drone is near the floor."""
        at, envelope, height = start.reference, rules.envelope, rules.takeoff_height
        if at.pos[2] < rules.rest_height + CLEARANCE:
            course = to_pose(at, (*at.pos[:2], height), float(at.pos[3]), envelope)
            return Plan(course, during=FlightState.taking_off)
        up = descent(at, height, envelope.climb, envelope)
        plan = self._course(at, rules, np.asarray(self.vel).tolist(), up)
        return replace(plan, during=FlightState.taking_off)

    def _falling(self, start: Start, rules: Rules) -> Plan:
        """Come down, straight near the floor, and land."""
        at, (vx, vy, vz) = start.reference, np.asarray(self.vel).tolist()
        if at.pos[2] < rules.rest_height + TOUCHED:
            course = to_rest(at, rules.envelope)
            return Plan(course, during=FlightState.landing, after=FlightState.landed)
        down = descent(at, rules.rest_height, vz, rules.envelope)
        clear = at.pos[2] >= rules.rest_height + CLEARANCE
        return self._course(at, rules, (vx, vy, 0.0) if clear else (0.0, 0.0, 0.0), down)

    def _course(
        self, at: Reference, rules: Rules, vel: Sequence[float], z: Profile | None = None
    ) -> Plan:
        lapses = rules.velocity_timeout
        course = at_velocity(at, vel, self.yaw_rate, lapses + BEYOND, rules.envelope, z)
        return Plan(course, lapses=lapses)


@dataclass(frozen=True)
class Brake(StateSetpoint):
    """Come to rest, and stay there."""

    def plan(self, start: Start, rules: Rules) -> Plan:
        """As fast as the envelope allows."""
        course = to_rest(start.reference, rules.envelope)
        low = float(course.at(course.end).pos[2])
        if low < rules.rest_height + TOUCHED:
            return Plan(course, during=FlightState.landing, after=FlightState.landed)
        return Plan(course)


@dataclass(frozen=True)
class Takeoff(StateSetpoint):
    """Rise from the floor to a height, straight up."""

    height: float
    """Of the centre of mass above the floor z = 0 [m]."""
    duration: float = 0.0
    """s; longer if the drone cannot rise so fast."""
    yaw: float = float("nan")
    """rad; NaN keeps the heading."""
    group_mask: int = 0

    def __post_init__(self) -> None:
        height = limits.number("height", self.height, limits.POSITION)
        if height < _LOWEST_TAKEOFF:
            raise ValueError(f"height must be at least {_LOWEST_TAKEOFF:g} m, got {height:g}")
        _check_high_level(self.duration, self.yaw, self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """A polynomial of degree 7, from the floor."""
        if not start.state.stands:
            raise ValueError(f"takeoff needs a drone that stands on the floor, it is {start.state}")
        plan = _to_rest_at(start, rules, (*start.reference.pos[:2], self.height), self)
        return replace(plan, during=FlightState.taking_off)


@dataclass(frozen=True)
class Land(StateSetpoint):
    """Come down to a height, straight down, and stop the rotors there."""

    height: float = 0.0
    """Of the centre of mass above the floor z = 0 [m]; no lower than where the drone stands."""
    duration: float = 0.0
    """s; longer if the drone cannot come down so fast."""
    yaw: float = float("nan")
    """rad; NaN keeps the heading."""
    group_mask: int = 0

    def __post_init__(self) -> None:
        limits.number("height", self.height, limits.POSITION)
        _check_high_level(self.duration, self.yaw, self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """A polynomial of degree 7."""
        if start.state.stands:
            raise ValueError(f"land needs a drone in the air, it is {start.state}")
        if start.state is FlightState.landing:
            raise ValueError("it is landing already")
        height = max(self.height, rules.rest_height)
        reference = start.reference
        moves = bool(np.any(reference.vel[:2]) or np.any(reference.acc[:2]))
        stopped = to_rest(reference, rules.envelope) if moves else None
        place = reference.pos if stopped is None else stopped.at(stopped.end).pos
        plan = _to_rest_at(start, rules, (*place[:2], height), self)
        return replace(plan, during=FlightState.landing, after=FlightState.landed)


@dataclass(frozen=True)
class GoTo(StateSetpoint):
    """Fly to a place within a time."""

    pos: ArrayLike
    """(3,) m, world frame."""
    yaw: float
    """rad."""
    duration: float = 0.0
    """s; longer if the drone cannot fly so fast."""
    relative: bool = False
    """Position and yaw are added to where the drone was to be."""
    group_mask: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos", limits.vector("position", self.pos, (3,), limits.POSITION))
        _check_high_level(self.duration, self.yaw, self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """A polynomial of degree 7, no lower than clear of the floor."""
        if start.state.stands:
            raise ValueError(f"go_to needs a drone in the air, it is {start.state}: takeoff first")
        at = start.reference.pos
        shift = at if self.relative else np.zeros(4)
        pos, yaw = np.asarray(self.pos) + shift[:3], self.yaw + float(shift[3])
        limits.vector("position", pos, (3,), limits.POSITION)
        lowest = rules.rest_height + CLEARANCE
        note = f"go_to stays at {lowest:.2f} m, clear of the floor; " if pos[2] < lowest else ""
        goal = (pos[0], pos[1], max(pos[2], lowest))
        plan = _to_rest_at(start, rules, goal, replace(self, yaw=yaw))
        return replace(plan, note=note + plan.note)


@dataclass(frozen=True)
class FlyTrajectory(StateSetpoint):
    """Fly polynomials that were uploaded, from the drone's place or from theirs."""

    trajectory: PolynomialTrajectory
    timescale: float = 1.0
    reversed: bool = False
    relative: bool = True
    group_mask: int = 0

    def __post_init__(self) -> None:
        checked_timescale(self.timescale)
        _check_group(self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """The pieces one after the other; in the end the drone hovers."""
        del rules  # the pieces are flown as they are
        if start.state.stands:
            raise ValueError(f"a trajectory needs a drone in the air, it is {start.state}")
        course = self.trajectory.course(
            start.reference,
            timescale=self.timescale,
            reversed=self.reversed,
            relative=self.relative,
        )
        away = float(np.linalg.norm(course.at(0.0).pos[:3] - start.reference.pos[:3]))
        if away > _FARTHEST_JUMP:
            raise ValueError(
                f"the trajectory begins {away:.2f} m from where the drone is to be, expected at "
                f"most {_FARTHEST_JUMP:g} m: go_to its begin first, or fly it relative"
            )
        return Plan(course, led=False)


@dataclass(frozen=True)
class Stop(Setpoint):
    """Stop the rotors at once, wherever the drone is; it can take off again."""

    group_mask: int = 0

    def __post_init__(self) -> None:
        _check_group(self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Nothing more."""
        del rules
        return still(start, FlightState.landed)


@dataclass(frozen=True)
class Arm(Setpoint):
    """Allow a drone to take off, or not: disarmed, its rotors stop."""

    armed: bool
    group_mask: int = 0

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Rotors stop, unless it is armed."""
        del rules
        return still(start, FlightState.landed)


@dataclass(frozen=True)
class SetGroups(Setpoint):
    """Make the drone a member of groups, a bit each; what it does stays as it is."""

    groups: int

    def __post_init__(self) -> None:
        _check_group(self.groups)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Never asked: commanders take note of it themselves."""
        raise NotImplementedError


@dataclass(frozen=True)
class NotifySetpointsStop(StateSetpoint):
    """Setpoints are streamed no longer: a drone that follows one brakes and hovers.

    So does one that follows a bare command. From then on the planner's commands count again.
    """

    group_mask: int = 0

    def __post_init__(self) -> None:
        _check_group(self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """As `Brake`; commanders ask only for such drones."""
        return Brake().plan(start, rules)


@dataclass(frozen=True)
class Emergency(Setpoint):
    """Stop the rotors at once, and ignore all else until the drone is reset."""

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Nothing more."""
        del rules
        return still(start, FlightState.locked)


_FARTHEST_JUMP = 0.5  # m, a step of the position that the slowest drone survives


def _check_high_level(duration: float, yaw: float, group_mask: int) -> None:
    if limits.number("duration", duration, _DURATION) < 0:
        raise ValueError(f"duration must not be negative, got {duration:g} s")
    if not isnan(yaw):
        limits.number("yaw", yaw, limits.ANGLE)
    _check_group(group_mask)


def _check_group(group_mask: int) -> None:
    if not 0 <= group_mask <= _GROUPS:
        raise ValueError(f"group_mask must be from 0 to {_GROUPS}, got {group_mask}")


def _to_rest_at(
    start: Start, rules: Rules, pos: ArrayLike, setpoint: Takeoff | Land | GoTo
) -> Plan:
    reference = start.reference
    yaw = float(reference.pos[3]) if isnan(setpoint.yaw) else setpoint.yaw
    course = to_rest_at(reference, pos, yaw, setpoint.duration, rules.envelope)
    note = ""
    if course.end > setpoint.duration > 0:
        note = f"takes {course.end:.2f} s instead of {setpoint.duration:g} s, as fast as it may fly"
    return Plan(course, note=note)


def still(start: Start, state: FlightState) -> Plan:
    """Nothing more, in a state."""
    course = Course.of_pieces([[]] * 4, start.reference.pos.tolist())
    return Plan(course, during=state, after=state)


def _after_lifting(course: Course, clear: float) -> Course:
    """The same, but that all axes but z wait until the drone is so high."""
    times = np.linspace(0.0, course.end, 200)
    is_clear = course.along(times)[0, :, 2] >= clear - 1e-6
    high = float(times[is_clear.argmax()]) if is_clear.any() else course.end
    return course.delayed((high, high, 0.0, high))


def state_commands(references: np.ndarray, drag: np.ndarray) -> np.ndarray:
    """What state controllers are told, with the acceleration that the drag takes.

    The body rates are those of a flat system (D. Mellinger, V. Kumar, ICRA 2011): without them the
    attitude lags behind by a quarter of a second.

    Args:
        references: (4, m, 4) position, velocity, acceleration, jerk.
        drag: (3,) see `Rules`.

    Returns:
        (m, 16), see `Control.state`.
    """
    rows = np.ascontiguousarray(np.moveaxis(references, 2, 1))  # (4, 4, m): NumPy likes long ones
    pos, vel, acc, jerk = rows[:, :3]
    yaw, rate = rows[0, 3], rows[1, 3]
    taken = drag[:, None] * rows[1:3, :3]
    commands = np.zeros((16, rows.shape[2]))
    commands[:3], commands[3:6], commands[6:9] = pos, vel, acc + taken[0]
    commands[11], commands[12] = np.sin(yaw / 2), np.cos(yaw / 2)
    commands[13:] = _body_rates(commands[6:9], jerk + taken[1], yaw, rate)
    return commands.T


def _body_rates(acc: np.ndarray, jerk: np.ndarray, yaw: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """(3, m) rates [rad/s] of bodies whose thrust gives accelerations (3, m) while these change."""
    up = acc + _UP
    thrust = np.maximum(np.sqrt((up * up).sum(axis=0)), _LEAST_THRUST)
    up = up / thrust
    c, s = np.cos(yaw), np.sin(yaw)
    left = np.array((-s * up[2], c * up[2], s * up[0] - c * up[1]))  # z x x_c
    left /= np.sqrt((left * left).sum(axis=0)) + 1e-9
    (x, y, z), (u, v, w) = left, up
    ahead = np.array((y * w - z * v, z * u - x * w, x * v - y * u))
    turn = jerk / thrust  # along z it is the thrust that changes
    return np.array((-(turn * left).sum(axis=0), (turn * ahead).sum(axis=0), w * rate))


@dataclass(frozen=True)
class Trajectory(StateSetpoint):
    """Pass points at given times, with matching velocities and accelerations; hold the last one.

    Between two points position and yaw are polynomials of fifth order.
    """

    times_ns: ArrayLike
    """(K,) ns from the trajectory's start, rising. Before the first one the drone moves there."""
    pos: ArrayLike
    """(K, 3) m, world frame."""
    yaw: ArrayLike
    """(K,) rad."""
    vel: ArrayLike
    """(K, 3) m/s, world frame."""
    acc: ArrayLike
    """(K, 3) m/s^2, world frame."""
    start_ns: int | None = None
    """Simulation time of the trajectory's start; None: when it takes effect."""
    _points: np.ndarray = field(init=False, repr=False)
    _pieces: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times = np.array(self.times_ns, dtype=np.int64)
        n = times.size
        if times.ndim != 1 or n == 0 or times[0] < 0 or (np.diff(times) < _CLOSEST).any():
            expected = f"from 0 or later, by at least {_CLOSEST * 1e-6:g} ms"
            raise ValueError(f"times must rise {expected}, got {limits.shown(times)} ns")
        limits.number("the last time", times[-1] * 1e-9, limits.DURATION)
        pos = limits.vector("positions", self.pos, (n, 3), limits.POSITION)
        yaw = limits.vector("yaws", self.yaw, (n,), limits.ANGLE)
        vel = limits.vector("velocities", self.vel, (n, 3), limits.VELOCITY)
        acc = limits.vector("accelerations", self.acc, (n, 3), limits.ACCELERATION)
        mean = np.diff(pos, axis=0) / np.diff(times)[:, None] * 1e9
        limits.vector("velocity between two points", mean, (n - 1, 3), limits.VELOCITY)
        yaw = np.unwrap(yaw)
        rate = np.gradient(yaw, times * 1e-9) if n > 1 else np.zeros(1)
        points = np.stack(
            [np.column_stack(p) for p in ((pos, yaw), (vel, rate), (acc, np.zeros(n)))], axis=1
        )
        object.__setattr__(self, "times_ns", times)
        object.__setattr__(self, "_points", points)  # (K, derivative 0..2, x y z yaw)
        pieces = _quintic(points[:-1], points[1:], np.diff(times) * 1e-9)
        object.__setattr__(self, "_pieces", pieces)  # (K - 1, power 0..5, x y z yaw)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """The pieces from point to point, and before them one from where the drone was to be."""
        del rules
        times = np.asarray(self.times_ns)
        begin_ns = start.time_ns if self.start_ns is None else self.start_ns
        joins = 0 if self.start_ns is None else min(0, start.time_ns - self.start_ns)
        points, pieces = self._points, self._pieces
        at = start.reference.pos
        before = np.zeros((3, 4))
        before[0] = at
        before[0, 3] = points[0, 0, 3] + shortest_turn(0.0, float(at[3] - points[0, 0, 3]))
        way = (int(times[0]) - joins) * 1e-9
        durations = np.diff(times) * 1e-9
        if way > 0:
            join = _quintic(before, points[0], way)
            pieces = np.concatenate((join[None], pieces))
            durations = np.concatenate(([way], durations))
        last = points[-1, 0].tolist()
        axes = [
            [(d, piece) for d, piece in zip(durations.tolist(), pieces[:, :, i].tolist())]
            for i in range(4)
        ]
        course = Course.of_pieces(axes, last)
        return Plan(
            course,
            during=FlightState.taking_off if start.state.stands else FlightState.flying,
            begin_ns=begin_ns + joins,
            led=False,
        )


def _quintic(before: np.ndarray, after: np.ndarray, duration: ArrayLike) -> np.ndarray:
    """Polynomials of fifth order between two points.

    Args:
        before: (..., 3, k) value, first and second derivative at time 0.
        after: (..., 3, k) the same at time `duration`.
        duration: (...) s.

    Returns:
        (..., 6, k) coefficients of rising powers of time.
    """
    scale = np.power.outer(np.asarray(duration, float), np.arange(6))[..., None]
    p0, v0, a0 = np.moveaxis(before * scale[..., :3, :], -2, 0)
    p1, v1, a1 = np.moveaxis(after * scale[..., :3, :], -2, 0)
    jump = p1 - p0
    c3 = 10 * jump - 6 * v0 - 4 * v1 - (3 * a0 - a1) / 2
    c4 = -15 * jump + 8 * v0 + 7 * v1 + (3 * a0 - 2 * a1) / 2
    c5 = 6 * jump - 3 * (v0 + v1) - (a0 - a1) / 2
    return np.stack([p0, v0, a0 / 2, c3, c4, c5], axis=-2) / scale


@dataclass(frozen=True)
class Raw(Setpoint):
    """A command of the active control mode, as `Sim` takes it.

    It stays in force until something else is told, and does not lapse, for who studies a controller
    tells it once. The module `streamed` has setpoints that lapse.
    """

    values: ArrayLike
    """Numbers as in `Control`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.array(self.values, float))

    def check(self, control: Control) -> None:
        """The numbers must make sense in the control mode."""
        values = np.atleast_1d(self.values)
        check_command(control, values)
        for i, limit in enumerate(_COMMAND_LIMITS[control, values.size]):
            limits.number(f"number {i} of a command of control={control}", values[i], limit)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """The command as it is, for good."""
        del start, rules
        values = np.asarray(self.values)
        if values.size == 13:
            half = values[9] / 2
            quat = (0.0, 0.0, np.sin(half), np.cos(half))
            values = np.array([*values[:9], *quat, *values[10:]])
        return Plan(bare=values, led=False)
