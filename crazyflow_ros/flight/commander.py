"""The commander of one drone: its flight state and the setpoint that it follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isnan, sqrt
from typing import NamedTuple

import numpy as np

from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.high_level import Land
from crazyflow_ros.flight.moving_goal import Stream, TimedPose, extended
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, StartState
from crazyflow_ros.flight.pose_and_velocity import Pose, Velocity
from crazyflow_ros.flight.setpoint import Brake, Setpoint
from crazyflow_ros.flight.stop_and_arm import (
    Arm,
    Emergency,
    NotifySetpointsStop,
    NullSetpoint,
    Recover,
    SetGroups,
    Stop,
    SwitchOff,
)
from crazyflow_ros.flight.streamed import (
    HIGH_LEVEL,
    AltitudeHold,
    HoldHeight,
    Hover,
    Position,
    Streamed,
    VelocityWorld,
)

_NS = 1_000_000_000
_ALWAYS = (
    Arm,
    NotifySetpointsStop,
    NullSetpoint,
    Stop,
    Emergency,
    SwitchOff,
)  # that need no armed drone
_ON_THE_FLOOR = 0.02  # m above the resting height, below which moving drones come to rest
# A drone that follows its reference late is still in the air when the course of its landing ends.
ARRIVED = 0.05
"""Height above the end of a landing's course below which a drone has arrived [m]."""
HIT = "hit"
"""Condition in `Commander.reported`: the drone touches something in the air, as its pilot knows."""
_LATEST = 3.0  # s after the end of the course
_RESTLESS = 0.5  # s between poses elsewhere, below which they are flown to gently
_LAST = (Emergency, SwitchOff)  # that drones follow in any state
VELOCITIES = (Velocity, Hover, AltitudeHold, VelocityWorld)
"""Setpoints that lapse soon unless they are repeated."""


@dataclass
class Order:
    """A setpoint in force."""

    setpoint: Setpoint
    start: StartState
    plan: Plan
    ahead_ns: int = 0
    """Nanoseconds by which its times are ahead of the clock, after the clock was rewound."""
    repeated_ns: int | None = None
    """Time at which the same setpoint arrived again; None if it did not."""

    @property
    def begin_ns(self) -> int:
        """Start time of the course on the present clock."""
        begin = self.start.time_ns if self.plan.begin_ns is None else self.plan.begin_ns
        return begin - self.ahead_ns

    def seconds(self, time_ns: int) -> float:
        """Return the time since the course began [s]."""
        return (time_ns - self.begin_ns) * 1e-9

    @property
    def is_streamed(self) -> bool:
        """Whether it is streamed, so that high-level commands are refused until the stream ends."""
        return isinstance(self.setpoint, Streamed)

    def deadline_ns(self) -> float:
        """Return the time at which it lapses unless it is repeated; infinity if it never lapses."""
        if self.plan.timeout == inf:
            return inf
        arrived = self.start.time_ns if self.repeated_ns is None else self.repeated_ns
        return arrived - self.ahead_ns + round(self.plan.timeout * _NS)

    def reference(self, time_ns: int) -> Reference | None:
        """Return the reference of the course; None if the drone follows no course."""
        if self.plan.course is None:
            return None
        return self.plan.course.at(self.seconds(time_ns))


class FlightStatus(NamedTuple):
    """How a drone flies at one instant."""

    state: FlightState
    order: Order | None
    armed: bool
    auto_arm: bool


class Commander:
    """The flight state of one drone, and the setpoint that it follows.

    Args:
        rules: Properties of the drone, and how to fly it.

    Attributes:
        state: The flight state.
        order: The setpoint in force, or None.
        armed: Whether the drone may take off; matters only without `Rules.auto_arm`.
        groups: Bit mask of the groups to which the drone belongs.
        stream: The stream of poses that the drone follows; empty if it follows none.
        why: Why it crashed.
        reported: Conditions that the supervisor has reported and that still hold.
        hit: When it last hit something in the air, in simulated time [ns], and what; or None.
        stuck_ns: Time since which the drone has stood on the floor although it should fly.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.state = FlightState.idle
        self.order: Order | None = None
        self.armed = rules.auto_arm
        self.groups = 0
        self.stream: Stream = ()
        self.why = ""
        self.reported: set[str] = set()
        self.hit: tuple[int, str] | None = None
        self.stuck_ns: int | None = None

    @property
    def flight(self) -> FlightStatus:
        """How the drone flies now."""
        return FlightStatus(self.state, self.order, self.armed, self.rules.auto_arm)

    def command(self, setpoint: Setpoint, now: StartState) -> Plan | None:
        """Put a setpoint into force.

        Args:
            setpoint: The setpoint.
            now: Present motion of the drone.

        Returns:
            The plan that the drone follows; None if its motion does not change, for example because
            the setpoint addresses other groups.

        Raises:
            ValueError: The drone cannot follow the setpoint; it goes on as before.
        """
        if setpoint.group_mask and not setpoint.group_mask & self.groups:
            return None
        if isinstance(setpoint, SetGroups):
            self.groups = setpoint.groups
            return None
        if isinstance(setpoint, Recover):
            return self._recover(setpoint, now)
        if self.state is FlightState.lost and isinstance(setpoint, _LAST):
            return None  # its rotors have stopped
        self._check(setpoint)
        if isinstance(setpoint, Arm):
            self.armed = setpoint.armed
            if self.armed:
                return None
        elif type(setpoint) in (NotifySetpointsStop, NullSetpoint):
            if self.order is None:
                return None
            if not self.order.is_streamed and self.order.plan.command is None:
                return None
        before, plan = self.state, self._follow(setpoint, now)
        if isinstance(setpoint, SwitchOff):
            self.why = "it is switched off"
        elif self.state is not before:
            self.why = ""
        return plan

    def _check(self, setpoint: Setpoint) -> None:
        """Raise ValueError if the drone cannot follow a setpoint in its present state."""
        advice = self.rules.advice
        if self.state.needs_reset and not isinstance(setpoint, _LAST):
            why = f" ({self.why})" if self.why else ""
            remedy = advice.crashed if self.state is FlightState.crashed else advice.locked
            raise ValueError(f"it is {self.state}{why}: {remedy} first")
        if isinstance(setpoint, HIGH_LEVEL) and self.order is not None and self.order.is_streamed:
            raise ValueError(f"it follows streamed setpoints: {advice.streaming} first")
        if self.state.stands and not self.armed and not isinstance(setpoint, _ALWAYS):
            raise ValueError(f"it is not armed: {advice.disarmed} first")

    def _follow(self, setpoint: Setpoint, now: StartState) -> Plan:
        """Follow a setpoint that may be followed now."""
        order, stream = self.order, Stream()
        if isinstance(setpoint, Pose | Position):
            last = None if order is None or type(order.setpoint) is not type(setpoint) else order
            if last and not last.start.stream[1:] and setpoint.is_same(last.setpoint):  # type: ignore[arg-type]
                last.repeated_ns = now.time_ns + last.ahead_ns
                return last.plan
            start = self._start(now)
            x, y, z = np.asarray(setpoint.pos).tolist()
            yaw = setpoint.yaw
            if isnan(yaw):
                yaw = self.stream[-1].pos[3] if self.stream else float(start.reference.pos[3])
            pose = TimedPose(now.time_ns, (x, y, z, yaw))
            stream = extended(() if order is None else self.stream, pose, self.rules.envelope)
            # Programs that disagree on the place would shake the drone.
            since_ns = now.time_ns + last.ahead_ns - last.start.time_ns if last else inf
            start = replace(start, stream=stream, restless=since_ns * 1e-9 < _RESTLESS)
        else:
            start = self._start(now)
        plan = setpoint.plan(start, self.rules.at(start))
        self._begin(Order(setpoint, start, plan))
        self.stream = stream
        return plan

    def _start(self, now: StartState) -> StartState:
        """Return the start of a plan: at the present reference, or else at the present motion."""
        order = self.order
        reference = None if order is None else order.reference(now.time_ns)
        if reference is None:
            reference = now.reference
            yaw = None if order is None else order.plan.heading(order.seconds(now.time_ns))
            if yaw is not None:
                reference = reference._replace(pos=np.array([*reference.pos[:3], yaw]))
            if reference.pos[2] < self.rules.rest_height + _ON_THE_FLOOR:
                reference = Reference.at_rest(reference.pos[:3], float(reference.pos[3]))
        return replace(now, reference=reference, state=self.state)

    def _begin(self, order: Order) -> None:
        if self.state.stands:
            self.reported.add(HIT)  # the drone stands on the object and has not hit it
        self.order, self.state = order, order.plan.during
        if self.state.stands or self.state.needs_reset:
            self.order = None

    def next_change_ns(self) -> float:
        """Return the time at which `update` has to act next; infinity if never."""
        order = self.order
        if order is None:
            return inf
        change = order.deadline_ns()
        if order.plan.course is None:
            return change
        end = order.begin_ns + order.plan.course.end * _NS
        if self.state is not order.plan.after or order.plan.after.stands:
            change = min(change, end)
        if self.state is FlightState.taking_off:
            change = min(change, order.begin_ns + order.plan.aloft * _NS)
        return change

    def update(self, time_ns: int, motion: Callable[[], StartState]) -> str:
        """Apply the changes that depend on time alone: courses that end, setpoints that lapse.

        Args:
            time_ns: Simulation time.
            motion: Returns the present motion of the drone.

        Returns:
            A message for the pilot, or an empty string.
        """
        order, text = self.order, ""
        if order is not None and time_ns >= order.deadline_ns():
            setpoint, text = order.setpoint.lapsed(), order.setpoint.when_lapsed
            start = self._start(motion())
            self._begin(Order(setpoint, start, setpoint.plan(start, self.rules.at(start))))
            order = self.order  # None if the drone has landed
        if order is None or order.plan.course is None:
            return text
        seconds, end = order.seconds(time_ns), order.plan.course.end
        if self.state is FlightState.taking_off and seconds >= order.plan.aloft:
            self.state = FlightState.flying
        if (late := seconds - end) < 0:
            return text
        if not order.plan.after.stands:
            self.state = order.plan.after
            return text
        floor = max(float(order.plan.course.at(end).pos[2]), self.rules.rest_height)
        now = motion()
        if late > _LATEST or now.reference.pos[2] - floor < ARRIVED:
            self.stop(order.plan.after)
        elif not order.plan.bounded:  # it may be anywhere
            start, land = replace(now, state=FlightState.flying), Land()
            self._begin(Order(land, start, land.plan(start, self.rules.at(start))))
        return text

    def restart(self, now: StartState) -> bool:
        """Restart the course where the drone is; return whether it followed one."""
        order = self.order
        if order is None or order.plan.course is None or not order.plan.bounded:
            return False
        setpoint = order.setpoint
        if isinstance(setpoint, VELOCITIES):
            # Continuing would extend its time-out; the next velocity arrives soon.
            setpoint = setpoint.lapsed()
        elif not isinstance(setpoint, Pose | Position | HoldHeight | Land | Brake):
            end = order.plan.course.at(order.plan.course.end).pos
            setpoint = Pose(end[:3], float(end[3]))
        state = FlightState.flying if self.state is FlightState.landing else self.state
        start = replace(now, reference=self._caught(now), state=state)
        self._begin(Order(setpoint, start, setpoint.plan(start, self.rules.at(now))))
        self.stream = ()
        return True

    def _caught(self, now: StartState) -> Reference:
        """Return the present motion, no faster downwards than the rotors can stop above the floor.

        Then the drone falls faster than its reference, and brakes as hard as it can.
        """
        reference, envelope = now.reference, self.rules.at(now).envelope
        left = max(float(reference.pos[2]) - self.rules.rest_height, 0.0)
        fastest = -sqrt(2 * envelope.catch * left)
        if reference.vel[2] >= fastest:
            return reference
        x, y, _, yaw = reference.vel.tolist()
        return reference._replace(vel=np.array([x, y, fastest, yaw]))

    def _recover(self, setpoint: Recover, now: StartState) -> Plan | None:
        """Leave the state after a crash, as the firmware does: disarmed, unless it arms itself."""
        if self.state is not FlightState.crashed:
            return None
        plan = setpoint.plan(now, self.rules)
        self._begin(Order(setpoint, now, plan))
        self.armed, self.why = self.rules.auto_arm, ""
        self.hit = self.stuck_ns = None
        self.reported.clear()
        return plan

    def stop(self, state: FlightState, why: str = "") -> None:
        """Stop the rotors at once."""
        self.state, self.order, self.why = state, None, why
        self.stuck_ns = None

    def rewind(self, time_ns: int) -> None:
        """Set all times back because the clock was rewound by `time_ns`."""
        if self.order is not None:
            self.order = replace(self.order, ahead_ns=self.order.ahead_ns + time_ns)
        if self.stuck_ns is not None:
            self.stuck_ns -= time_ns
        self.stream = tuple(p._replace(time_ns=p.time_ns - time_ns) for p in self.stream)
        if self.hit is not None:
            self.hit = (self.hit[0] - time_ns, self.hit[1])
