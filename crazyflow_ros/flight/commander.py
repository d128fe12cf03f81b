"""The commander of one drone: what it is at, and what it does about what it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, Start
from crazyflow_ros.flight.setpoints import (
    Arm,
    Brake,
    Emergency,
    Land,
    NotifySetpointsStop,
    Pose,
    SetGroups,
    Setpoint,
    Stop,
    Velocity,
)
from crazyflow_ros.flight.streamed import HIGH_LEVEL, Hover, Streamed

_NS = 1_000_000_000
_ON_THE_FLOOR = 0.02  # m above where it stands; what moves there comes to rest by itself
_GETS_LOST = 0.5  # m from where it was to be, a step that all drones survive


@dataclass
class Order:
    """A setpoint in force."""

    setpoint: Setpoint
    start: Start
    plan: Plan
    ahead_ns: int = 0
    """By how much its time is ahead of the clock, which was rewound."""

    @property
    def begin_ns(self) -> int:
        """When the course began, by the present clock."""
        begin = self.start.time_ns if self.plan.begin_ns is None else self.plan.begin_ns
        return begin - self.ahead_ns

    def seconds(self, time_ns: int) -> float:
        """Time since the course began."""
        return (time_ns - self.begin_ns) * 1e-9

    @property
    def is_streamed(self) -> bool:
        """The planner has to wait until there are no more of them."""
        return isinstance(self.setpoint, Streamed)

    def lapses_ns(self) -> float:
        """When something else follows because it was not repeated; infinite if never."""
        if self.plan.lapses == inf:
            return inf
        return self.start.time_ns - self.ahead_ns + round(self.plan.lapses * _NS)

    def reference(self, time_ns: int) -> Reference | None:
        """What the drone is to do, if that is a course."""
        if self.plan.course is None:
            return None
        return self.plan.course.at(self.seconds(time_ns))


class Commander:
    """What one drone is at.

    Args:
        rules: About the drone.

    Attributes:
        state: What it is at.
        order: The setpoint in force, if there is one.
        armed: Whether it may take off; of importance without `Rules.auto_arm`.
        groups: To which it belongs, a bit each.
        why: It crashed.
        known: What the supervisor has told about it, and is still so.
        stuck_ns: Since when it stands on the floor although it is to fly.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.state = FlightState.idle
        self.order: Order | None = None
        self.armed = rules.auto_arm
        self.groups = 0
        self.why = ""
        self.known: set[str] = set()
        self.stuck_ns: int | None = None

    def tell(self, setpoint: Setpoint, now: Start) -> Plan | None:
        """Put a setpoint into force.

        Args:
            setpoint: What to do.
            now: How the drone moves.

        Returns:
            What the drone does about it; None if it is for other groups.

        Raises:
            ValueError: It cannot be done; what the drone does stays as it is.
        """
        if setpoint.group_mask and not setpoint.group_mask & self.groups:
            return None
        if isinstance(setpoint, SetGroups):
            self.groups = setpoint.groups
            return None
        if self.state.is_out and not isinstance(setpoint, Emergency):
            why = f" ({self.why})" if self.why else ""
            raise ValueError(f"it is {self.state}{why}: reset it first")
        if isinstance(setpoint, Arm):
            self.armed = setpoint.armed
            if self.armed:
                return None
        elif isinstance(setpoint, NotifySetpointsStop):
            if self.order is None:
                return None
            if not self.order.is_streamed and self.order.plan.bare is None:
                return None
        elif isinstance(setpoint, HIGH_LEVEL) and self.order is not None and self.order.is_streamed:
            raise ValueError("it follows streamed setpoints: call notify_setpoints_stop first")
        elif self.state.stands and not self.armed and not isinstance(setpoint, Stop | Emergency):
            raise ValueError("it is not armed: call arm first")
        start = self._start(now)
        plan = setpoint.plan(start, self.rules)
        self._begin(Order(setpoint, start, plan))
        return plan

    def stop(self, state: FlightState, why: str = "") -> None:
        """Stop the rotors at once."""
        self.state, self.order, self.why = state, None, why

    def update(self, time_ns: int, motion: Callable[[], Start]) -> str:
        """Carry out what time alone changes: courses that end, setpoints that lapse.

        Args:
            time_ns: Simulation time.
            motion: Tells how the drone moves now.

        Returns:
            What the pilot is to be told, or nothing.
        """
        order, text = self.order, ""
        if order is not None and time_ns >= order.lapses_ns():
            setpoint, text = order.setpoint.lapsed(self.rules), order.setpoint.when_lapsed
            start = self._start(motion())
            self._begin(Order(setpoint, start, setpoint.plan(start, self.rules)))
            order = self.order  # None if it has come down to the floor
        if order is None or order.plan.course is None:
            return text
        if order.seconds(time_ns) >= order.plan.course.end:
            if order.plan.after.stands:
                self.stop(order.plan.after)
            else:
                self.state = order.plan.after
        return text

    def regain(self, now: Start) -> bool:
        """Begin the course anew where the drone is, if it has lost it."""
        order = self.order
        if order is None or order.plan.course is None or not order.plan.led:
            return False
        reference = order.plan.course.at(order.seconds(now.time_ns))
        away = now.reference.pos[:3] - reference.pos[:3]
        if float(away @ away) <= _GETS_LOST**2:
            return False
        setpoint = order.setpoint
        if isinstance(setpoint, Velocity | Hover):
            # It must not last the longer for that; the next one comes soon.
            setpoint = setpoint.lapsed(self.rules)
        elif not isinstance(setpoint, Pose | Land | Brake):
            end = order.plan.course.at(order.plan.course.end).pos
            setpoint = Pose(end[:3], float(end[3]))
        state = FlightState.flying if self.state is FlightState.landing else self.state
        start = Start(now.time_ns, now.reference, state)
        self._begin(Order(setpoint, start, setpoint.plan(start, self.rules)))
        return True

    def rewind(self, time_ns: int) -> None:
        """The clock goes back by so much."""
        if self.order is not None:
            self.order.ahead_ns += time_ns
        if self.stuck_ns is not None:
            self.stuck_ns -= time_ns

    def next_change_ns(self) -> float:
        """When `update` has something to do next; infinite if never."""
        order = self.order
        if order is None:
            return inf
        change = order.lapses_ns()
        if order.plan.course is None:
            return change
        end = order.begin_ns + order.plan.course.end * _NS
        if self.state is not order.plan.after or order.plan.after.stands:
            change = min(change, end)
        return change

    def _begin(self, order: Order) -> None:
        self.order, self.state = order, order.plan.during
        if self.state.stands or self.state.is_out:
            self.order = None

    def _start(self, now: Start) -> Start:
        """From where it was to be, if it was told, else from where it is."""
        order = self.order
        reference = None if order is None else order.reference(now.time_ns)
        if reference is None:
            reference = now.reference
            if order is not None and order.plan.attitude is not None:
                yaw = order.plan.attitude.heading(order.seconds(now.time_ns))
                reference = reference._replace(pos=np.array([*reference.pos[:3], yaw]))
            if reference.pos[2] < self.rules.rest_height + _ON_THE_FLOOR:
                reference = Reference.at_rest(reference.pos[:3], float(reference.pos[3]))
        return Start(now.time_ns, reference, self.state)
