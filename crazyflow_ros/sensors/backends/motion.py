"""Motion of points on a moving body, in closed form."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.sensors.backends.backend import Array

_SENSOR = mujoco.mjtSensor
INERTIAL = (_SENSOR.mjSENS_GYRO, _SENSOR.mjSENS_VELOCIMETER, _SENSOR.mjSENS_ACCELEROMETER)
"""Types of MuJoCo's sensors that `InertialSensor` computes."""


class RigidMotion(NamedTuple):
    """Motion of B bodies; arrays of NumPy or of JAX."""

    axes: Array
    """Axes of the bodies in the world as columns, shape (B, 3, 3)."""
    vel: Array
    """Velocity of the origin in the world [m/s], shape (B, 3)."""
    ang_vel: Array
    """Angular velocity in body axes [rad/s], shape (B, 3)."""
    acc: Array
    """Acceleration of the origin in the world [m/s^2], shape (B, 3)."""
    ang_acc: Array
    """Time derivative of `ang_vel` [rad/s^2], shape (B, 3)."""
    gravity: Array
    """Gravity in world axes [m/s^2], shape (3,) or (B, 3)."""

    def in_body(self, vectors: Array) -> Array:
        """Rotate vectors (B, 3) from world axes."""
        return (vectors[:, None] @ self.axes)[:, 0]


class InertialSensor:
    """A sensor on a moving body.

    Args:
        kind: Type of the sensor, one of `INERTIAL`.
        place: Position in the body [m], shape (3,).
        axes: Axes of the sensor in the body as columns, shape (3, 3).
        cutoff: Largest absolute value of a reading; 0 for none.
    """

    def __init__(
        self, kind: mujoco.mjtSensor, place: np.ndarray, axes: np.ndarray, cutoff: float
    ) -> None:
        self._kind, self._place, self._axes, self._cutoff = kind, place, axes, cutoff
        x, y, z = place
        self._arm = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])  # v @ arm: v x p

    def read(self, motion: RigidMotion) -> Array:
        """Return the readings, shape (B, 3)."""
        turn, place = motion.ang_vel, self._place
        if self._kind == _SENSOR.mjSENS_GYRO:
            reading = turn
        elif self._kind == _SENSOR.mjSENS_VELOCIMETER:
            reading = motion.in_body(motion.vel) + turn @ self._arm
        else:
            spin = turn * (turn @ place)[:, None] - place * (turn * turn).sum(axis=1)[:, None]
            force = motion.in_body(motion.acc - motion.gravity)
            reading = force + motion.ang_acc @ self._arm + spin
        reading = reading @ self._axes
        return reading.clip(-self._cutoff, self._cutoff) if self._cutoff else reading
