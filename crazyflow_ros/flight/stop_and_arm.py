"""Setpoints that stop, arm, recover or group drones, or end a stream."""

from __future__ import annotations

from dataclasses import dataclass
from math import remainder, tau

import numpy as np

from crazyflow_ros.flight.plan import Attitude, FlightState, Plan, Rules, StartState
from crazyflow_ros.flight.setpoint import Brake, Setpoint, StateSetpoint, check_group, no_motion
from crazyflow_ros.flight.tumbling import TUMBLED, uprightness


@dataclass(frozen=True)
class Stop(Setpoint):
    """Stop the rotors at once, wherever the drone is; it can take off again."""

    title = "a stop of the rotors"

    group_mask: int = 0

    def __post_init__(self) -> None:
        check_group(self.group_mask)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to stop the rotors and count as landed."""
        return no_motion(start, FlightState.landed, _rotors_stop(start, rules))


@dataclass(frozen=True)
class Arm(Setpoint):
    """Allow a drone to take off, or forbid it: disarming stops the rotors."""

    title = "an arming request"

    armed: bool
    group_mask: int = 0

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to stop the rotors; commanders call this only to disarm."""
        return no_motion(start, FlightState.landed, _rotors_stop(start, rules))


@dataclass(frozen=True)
class SetGroups(Setpoint):
    """Set the groups of the drone, one bit each, without changing its motion."""

    title = "a change of groups"

    groups: int

    def __post_init__(self) -> None:
        check_group(self.groups)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Raise NotImplementedError: commanders set the groups themselves."""
        raise NotImplementedError


@dataclass(frozen=True)
class NotifySetpointsStop(StateSetpoint):
    """Announce the end of streamed setpoints: drones that follow them brake and hover.

    So do drones that follow an unprocessed command. High-level commands are accepted again.
    """

    title = "the end of a stream of setpoints"

    group_mask: int = 0

    def __post_init__(self) -> None:
        check_group(self.group_mask)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan as for `Brake`; commanders call this only for such drones."""
        return Brake().plan(start, rules)


@dataclass(frozen=True)
class NullSetpoint(StateSetpoint):
    """The end of a stream: the high-level commander has no plan, and so stops the rotors.

    Commands of the high-level commander are accepted again (`commanderRelaxPriority`).
    """

    title = "the end of a stream of setpoints"

    group_mask: int = 0

    def __post_init__(self) -> None:
        check_group(self.group_mask)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to fall, until another setpoint comes."""
        del rules
        if start.state.stands:
            return no_motion(start, start.state)
        yaw = remainder(float(start.reference.pos[3]), tau)
        height = float(start.reference.pos[2])
        note = f"has no setpoint any more, and stops its rotors at a height of {height:z.2f} m"
        return Plan(held=Attitude(0.0, 0.0, yaw, 0.0, 0.0), bounded=False, note=note)


@dataclass(frozen=True)
class HighLevelStop(NullSetpoint):
    """A stop of the high-level commander; it has no effect on a stream of setpoints."""

    title = "a stop of the high-level commander"


@dataclass(frozen=True)
class Emergency(Setpoint):
    """Stop the rotors at once, and ignore all other setpoints until the drone is reset."""

    title = "an emergency stop"

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to stop the rotors and lock the drone."""
        parts = (_rotors_stop(start, rules), f"is locked until you {rules.advice.locked}")
        return no_motion(start, FlightState.locked, " and ".join(filter(None, parts)))


@dataclass(frozen=True)
class Recover(Setpoint):
    """Let a crashed drone take off again. It has no effect on a drone that did not crash."""

    title = "a recovery from a crash"

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to stand on the floor, landed; commanders call this only for crashed drones.

        Raises:
            ValueError: The drone does not stand upright.
        """
        del rules
        if not uprightness(np.asarray(start.quat)) >= TUMBLED:
            raise ValueError("it does not stand upright, and cannot recover")
        return no_motion(start, FlightState.landed)


@dataclass(frozen=True)
class SwitchOff(Setpoint):
    """Take the power from a drone: its rotors stop, and it ignores all setpoints until a reset."""

    title = "an order to switch off"

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to stop the rotors and lock the drone."""
        return no_motion(start, FlightState.locked, _rotors_stop(start, rules))


def _rotors_stop(start: StartState, rules: Rules) -> str:
    """Say that the drone falls, if it does."""
    if start.state.stands or start.state.needs_reset:
        return ""
    height = start.reference.pos[2] - rules.rest_height
    return f"stops its rotors {height:z.2f} m above the floor"
