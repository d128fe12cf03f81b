"""Base classes of setpoints, and what all setpoints share.

A setpoint is checked when it is created, and planned when it takes effect, from the drone's present
reference. The plan gives the command at any later instant, so that a flight does not depend on when
it is sampled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from crazyflow_ros.control import Control
from crazyflow_ros.flight.course import Course
from crazyflow_ros.flight.governor import to_rest
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, StartState

CLEARANCE = 0.15
"""Height [m] above the resting height below which a drone moves straight up and down only."""
TOUCHDOWN = 0.02
"""Height [m] above the resting height below which a descending drone has landed."""
_GROUPS = 255


class Setpoint(ABC):
    """A command that a drone can follow."""

    title: ClassVar[str] = "a setpoint"
    """Name of such a setpoint in messages, with an article."""
    group_mask: int = 0
    """Bit mask of the groups that it addresses; 0 is all."""
    when_lapsed: ClassVar[str] = ""
    """Message for the pilot when it was not repeated in time."""

    def check(self, control: Control) -> None:  # noqa: B027  most work in all modes
        """Raise ValueError if drones in this control mode cannot follow it."""

    @abstractmethod
    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Return how the drone follows it.

        Raises:
            ValueError: The drone cannot follow it in its present state.
        """

    def lapsed(self) -> Setpoint:
        """Return the setpoint that follows if this one is not repeated, see `Plan.timeout`."""
        return Brake()


class StateSetpoint(Setpoint):
    """A setpoint of the position controller."""

    def check(self, control: Control) -> None:
        """Raise ValueError unless the drones have state control."""
        if control is not Control.state:
            raise ValueError(f"{self.title} needs control=state, the drones have {control}")


@dataclass(frozen=True)
class Brake(StateSetpoint):
    """Come to rest, and stay there."""

    title = "an order to brake"

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to brake as fast as the envelope allows."""
        course = to_rest(start.reference, rules.envelope)
        low = float(course.at(course.end).pos[2])
        if low < rules.rest_height + TOUCHDOWN:
            return Plan(course, during=FlightState.landing, after=FlightState.landed)
        return Plan(course)


def no_motion(start: StartState, state: FlightState, note: str = "") -> Plan:
    """Return a plan without motion, in a given state."""
    course = Course.of_pieces([[]] * 4, start.reference.pos.tolist())
    return Plan(course, during=state, after=state, note=note)


def check_group(group_mask: int) -> None:
    """Raise ValueError unless the groups are a mask of 8 bits."""
    if not 0 <= group_mask <= _GROUPS:
        raise ValueError(f"group_mask must be from 0 to {_GROUPS}, got {group_mask}")
