"""How fast a drone may be flown: bounds of a reference that its position controller can follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import radians, tan
from typing import Any

import numpy as np

from crazyflow_ros.drones import load_drone

_SPEED = 2.0  # m/s
_CLIMB = 1.2  # m/s
# What is left of the thrust beside the weight goes to where it is needed: to keep the height while
# the drone leans over, to climb, and most of it to turn the drone, which the firmware's controller
# does all at once.
_LEVEL_SHARE, _LIFT_SHARE = 0.45, 0.25
_STEEPEST = radians(20.0)  # of the thrust that accelerates; drag comes on top of it
_JERK = 10.0  # m/s^3, a tilt rate of 1 rad/s
_YAW_RATE, _YAW_ACCELERATION = 2.0, 5.0  # rad/s, rad/s^2
_YAW_JERK_TIME = 0.1  # s, until the acceleration of a turn is reached
# Of the torque about the vertical that the rotors of a hovering drone can give; more of it takes
# thrust away from where it is needed, with large drones.
_TURN_SHARE = 0.2


@dataclass(frozen=True)
class Envelope:
    """Bounds of a reference; all positive.

    A drone that is led elsewhere in flight may exceed the horizontal ones by half, as it brakes
    along one axis and accelerates along another, and double the acceleration as it begins to turn.
    With the figures of `of` it tilts by at most 40 degrees, in wind of 3 m/s by 45.
    """

    speed: float
    """Horizontal, m/s."""
    climb: float
    """Vertical speed, m/s."""
    acceleration: float
    """Horizontal, m/s^2."""
    lift: float
    """Vertical acceleration, m/s^2."""
    jerk: float
    """Horizontal and vertical, m/s^3."""
    yaw_rate: float
    """rad/s."""
    yaw_acceleration: float
    """rad/s^2."""
    yaw_jerk: float
    """rad/s^3."""

    @classmethod
    def of(cls, drone: str) -> Envelope:
        """Of a drone, from its weight and greatest thrust.

        Raises:
            ValueError: There is no such drone.
        """
        figures = load_drone(drone)
        gravity = -float(figures["gravity_vec"][2])
        spare = 4 * figures["thrust_max"] / figures["mass"] - gravity
        turning = min(_YAW_ACCELERATION, _TURN_SHARE * _turn_acceleration(figures, gravity))
        return cls(
            speed=_SPEED,
            climb=_CLIMB,
            acceleration=min(_LEVEL_SHARE * spare, gravity * tan(_STEEPEST)),
            lift=_LIFT_SHARE * spare,
            jerk=_JERK,
            yaw_rate=_YAW_RATE,
            yaw_acceleration=turning,
            yaw_jerk=turning / _YAW_JERK_TIME,
        )


def _turn_acceleration(figures: Mapping[str, Any], gravity: float) -> float:
    """About the vertical, if two rotors of a hovering drone stopped and two took its weight."""
    offset, slope, square = figures["rpm2thrust"]
    thrust = figures["mass"] * gravity / 4
    rpm = float(np.roots([square, slope, offset - thrust]).max())
    torque = float(np.polynomial.Polynomial(figures["rpm2torque"])(rpm))
    return 4 * torque / float(np.diag(figures["J"])[2])
