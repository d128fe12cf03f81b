"""The flight envelope: bounds within which the position controller can follow a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, radians, tan
from typing import Any

import numpy as np

from crazyflow_ros.scene.conditions import STANDARD, Conditions

_SPEED = 2.0  # m/s
_CLIMB = 1.2  # m/s
# The thrust in excess of the weight holds the altitude of the tilted drone, makes it climb and, for
# the most part, turns it. The firmware's controller does all of this at once.
_LEVEL_SHARE, _LIFT_SHARE = 0.45, 0.25
_FALL_SHARE = (
    2.0  # of the acceleration at the least thrust, relative to the shares of the spare one
)
_LEAST_SPARE = 0.05  # m/s^2, where a drone can hardly fly, or hardly descend
_STEEPEST = radians(20.0)  # tilt of the accelerating thrust; drag adds to it
_JERK = 10.0  # m/s^3, a tilt rate of 1 rad/s
_YAW_RATE, _YAW_ACCELERATION = 2.0, 5.0  # rad/s, rad/s^2
_YAW_JERK_TIME = 0.1  # s to reach the acceleration of a turn
# Share of the yaw torque that the rotors of a hovering drone can produce. With large drones, more
# would reduce the thrust that they need.
_TURN_SHARE = 0.2
# What a drone can do for a moment: a share of what its rotors can, and rates that it can follow.
_UTMOST, _UTMOST_TILT, _UTMOST_LIFT = 0.75, radians(28.0), 0.4
_UTMOST_SPEED, _UTMOST_JERK, _UTMOST_TURN = 5.0, 25.0, 6.0  # m/s, m/s^3, rad/s


@dataclass(frozen=True)
class Envelope:
    """Bounds of a reference; all positive.

    A drone that changes its target in flight may exceed the horizontal bounds by half, because it
    brakes along one axis and accelerates along another, and may double the acceleration as it
    begins to turn. With the values of `of`, it tilts by at most 40 degrees, or 45 in wind of 3 m/s.
    """

    speed: float
    """Horizontal, m/s."""
    climb: float
    """Vertical speed, m/s."""
    acceleration: float
    """Horizontal, m/s^2."""
    lift: float
    """Vertical acceleration, m/s^2."""
    catch: float
    """Vertical acceleration with which a drone is caught that falls or rises faster, m/s^2."""
    jerk: float
    """Horizontal and vertical, m/s^3."""
    yaw_rate: float
    """rad/s."""
    yaw_acceleration: float
    """rad/s^2."""
    yaw_jerk: float
    """rad/s^3."""

    @classmethod
    def of(cls, drone: str, conditions: Conditions = STANDARD) -> Envelope:
        """Compute the envelope of a drone from its weight, and its least and most thrust.

        Raises:
            ValueError: The drone is unknown.
        """
        figures = conditions.figures(drone)
        gravity = -float(figures["gravity_vec"][2])
        spare = max(4 * figures["thrust_max"] / figures["mass"] - gravity, _LEAST_SPARE)
        lift, catch = _lift(figures, gravity, spare)
        turning = min(_YAW_ACCELERATION, _TURN_SHARE * _turn_acceleration(figures, gravity))
        return cls(
            speed=_SPEED,
            climb=_CLIMB,
            acceleration=min(_LEVEL_SHARE * spare, gravity * tan(_STEEPEST)),
            lift=_LIFT_SHARE * lift,
            catch=_UTMOST * catch,
            jerk=_JERK,
            yaw_rate=_YAW_RATE,
            yaw_acceleration=turning,
            yaw_jerk=turning / _YAW_JERK_TIME,
        )

    @classmethod
    def utmost(cls, drone: str, conditions: Conditions = STANDARD) -> Envelope:
        """Compute what the rotors of a drone can do for a moment, at most.

        Raises:
            ValueError: The drone is unknown.
        """
        figures = conditions.figures(drone)
        gravity = -float(figures["gravity_vec"][2])
        most = max(4 * figures["thrust_max"] / figures["mass"], gravity + _LEAST_SPARE)
        lift, catch = _lift(figures, gravity, most - gravity)
        turning = _UTMOST * _turn_acceleration(figures, gravity)
        level = float(np.sqrt(max((_UTMOST * most) ** 2 - gravity**2, _LEAST_SPARE**2)))
        return cls(
            speed=_UTMOST_SPEED,
            climb=_UTMOST_SPEED,
            acceleration=min(level, gravity * tan(_UTMOST_TILT)),
            lift=_UTMOST_LIFT * lift,
            catch=_UTMOST * catch,
            jerk=_UTMOST_JERK,
            yaw_rate=_UTMOST_TURN,
            yaw_acceleration=turning,
            yaw_jerk=turning / _YAW_JERK_TIME,
        )

    def slower(self, speed: float) -> Envelope:
        """Return the envelope of a drone whose controller can follow a speed [m/s] at most."""
        return replace(self, speed=min(self.speed, speed), climb=min(self.climb, speed))


UNBOUNDED = Envelope(*9 * (inf,))
"""For flights that a drone may not be able to follow."""


def _lift(figures: Mapping[str, Any], gravity: float, spare: float) -> tuple[float, float]:
    """Return the accelerations [m/s^2] for lift and catch, which less gravity limits downwards.

    Args:
        figures: Figures of the drone.
        gravity: m/s^2.
        spare: Thrust in excess of the weight, m/s^2.
    """
    falls = max(gravity - 4 * figures["thrust_min"] / figures["mass"], _LEAST_SPARE)
    if _FALL_SHARE * falls >= spare:
        return spare, spare
    return _FALL_SHARE * falls, falls


def _turn_acceleration(figures: Mapping[str, Any], gravity: float) -> float:
    """Return the yaw acceleration if two rotors stopped and the other two carried the weight."""
    offset, slope, square = figures["rpm2thrust"]
    thrust = figures["mass"] * gravity / 4
    rpm = float(np.roots([square, slope, offset - thrust]).max())
    torque = float(np.polynomial.Polynomial(figures["rpm2torque"])(rpm))
    return 4 * torque / float(np.diag(figures["J"])[2])
