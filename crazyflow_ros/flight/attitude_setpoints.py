"""Streamed setpoints of attitude and thrust, which bypass planner and position controller."""

from __future__ import annotations

from dataclasses import dataclass
from math import remainder, tau

from crazyflow_ros.checks import limits
from crazyflow_ros.control import Control
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.plan import Attitude, Plan, Rules, StartState
from crazyflow_ros.flight.setpoint import Setpoint, no_motion
from crazyflow_ros.flight.stop_and_arm import Stop
from crazyflow_ros.flight.streamed import LEVEL_TIMEOUT, STOP_TIMEOUT, Streamed


class AttitudeSetpoint(Streamed):
    """A setpoint of the attitude controller."""

    title = "an attitude setpoint"

    def check(self, control: Control) -> None:
        """Raise ValueError unless the drones have attitude or state control.

        State control works because the position controller is bypassed.
        """
        if control not in (Control.state, Control.attitude):
            expected = "control=state or control=attitude"
            raise ValueError(f"{self.title} needs {expected}, the drones have {control}")


@dataclass(frozen=True)
class AttitudeThrust(AttitudeSetpoint):
    """Roll, pitch, yaw rate and thrust for the attitude controller, passed on unchanged.

    The heading continues from the present reference, or else from the present heading.
    """

    roll: float
    """rad; or rad/s about the body's x axis."""
    pitch: float
    """rad, positive is forward; or rad/s about the body's y axis."""
    yaw_rate: float
    """rad/s, counter-clockwise."""
    thrust: float
    """Collective, N, 0 or more; limited by the motors."""
    roll_is_rate: bool = False
    pitch_is_rate: bool = False

    def __post_init__(self) -> None:
        for name, is_rate in (("roll", self.roll_is_rate), ("pitch", self.pitch_is_rate)):
            if is_rate:
                limits.number(f"{name} rate", getattr(self, name), limits.ANGULAR_VELOCITY)
            else:
                limits.number(name, getattr(self, name), limits.ANGLE)
        limits.number("yaw rate", self.yaw_rate, limits.ANGULAR_VELOCITY)
        _check_thrust(self.thrust)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to hold the attitude; it lapses. Without thrust, a drone on the floor stays idle."""
        del rules
        if start.state.stands and self.thrust == 0:
            return no_motion(start, start.state)
        yaw = _within_a_turn(start.reference)
        are_rates = (bool(self.roll_is_rate), bool(self.pitch_is_rate))
        attitude = Attitude(self.roll, self.pitch, yaw, self.yaw_rate, self.thrust, are_rates)
        return Plan(held=attitude, bounded=False, timeout=LEVEL_TIMEOUT)

    def lapsed(self) -> Setpoint:
        """Level out, with the same thrust."""
        return LevelOut(self.thrust)

    def check(self, control: Control) -> None:
        """Also raise ValueError if drones in attitude control are given rates."""
        super().check(control)
        if self.has_rates and control is Control.attitude:
            raise ValueError("roll and pitch rates need control=state, the drones have attitude")

    @property
    def has_rates(self) -> bool:
        """Whether roll or pitch is a rate."""
        return self.roll_is_rate or self.pitch_is_rate


@dataclass(frozen=True)
class LevelOut(AttitudeSetpoint):
    """Stay level and stop turning for a while, after an `AttitudeThrust` has lapsed."""

    title = "an order to level out"

    thrust: float
    """Collective, N."""

    when_lapsed = f"no setpoint for {STOP_TIMEOUT:g} s: rotors stopped"

    def __post_init__(self) -> None:
        _check_thrust(self.thrust)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a level attitude, until the rotors stop."""
        del rules
        attitude = Attitude(0.0, 0.0, _within_a_turn(start.reference), 0.0, self.thrust)
        return Plan(held=attitude, bounded=False, timeout=STOP_TIMEOUT - LEVEL_TIMEOUT)

    def lapsed(self) -> Setpoint:
        """Stop the rotors."""
        return Stop()


def _check_thrust(thrust: float) -> None:
    if limits.number("thrust", thrust, limits.FORCE) < 0:
        raise ValueError(f"thrust must not be negative, got {thrust:g} N")


def _within_a_turn(reference: Reference) -> float:
    """Return the heading from -pi to pi [rad]; a drone may turn for hours."""
    return remainder(float(reference.pos[3]), tau)
