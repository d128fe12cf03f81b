"""Conversions between forces, rotor speeds and PWM, for arrays of any library."""

from __future__ import annotations

from typing import Any

from crazyflow_ros.elementwise import like, sqrt

__all__ = ["force2pwm", "motor_force2rotor_vel", "pwm2force"]


def motor_force2rotor_vel(motor_forces: Any, rpm2thrust: Any) -> Any:
    """Return rotor speeds [RPM] for forces [N], f = c + b * rpm + a * rpm^2.

    Args:
        motor_forces: (..., n).
        rpm2thrust: (3,), (1, 3) or (..., n, 3): c, b, a.
    """
    curve = like(rpm2thrust, motor_forces)
    c, b, a = curve[..., 0], curve[..., 1], curve[..., 2]
    return (sqrt(b**2 - 4 * a * (c - motor_forces)) - b) / (2 * a)


def force2pwm(thrust: Any, thrust_max: Any, pwm_max: Any) -> Any:
    """Return the PWM of a thrust [N], which is proportional to it."""
    return thrust / thrust_max * pwm_max


def pwm2force(pwm: Any, thrust_max: Any, pwm_max: Any) -> Any:
    """Return the thrust [N] of a PWM."""
    return pwm / pwm_max * thrust_max
