"""Motion of points on a moving body, in closed form."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.sensors.backends.backend import Array

_SENSOR = mujoco.mjtSensor
INERTIAL = (_SENSOR.mjSENS_GYRO, _SENSOR.mjSENS_VELOCIMETER, _SENSOR.mjSENS_ACCELEROMETER)
"""Types of MuJoCo's sensors that `RigidMotion.read` computes."""


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

    def read(
        self, kind: mujoco.mjtSensor, place: np.ndarray, axes: np.ndarray, cutoff: float
    ) -> Array:
        """Reading of a sensor of `INERTIAL`, shape (B, 3).

        Args:
            kind: Type of the sensor.
            place: Position in the body [m], shape (3,).
            axes: Axes of the sensor in the body as columns, shape (3, 3).
            cutoff: Largest absolute value of a reading; 0 for none.
        """
        x, y, z = place
        turn, arm = self.ang_vel, np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])  # v @ arm: v x p
        if kind == _SENSOR.mjSENS_GYRO:
            reading = turn
        elif kind == _SENSOR.mjSENS_VELOCIMETER:
            reading = self._in_body(self.vel) + turn @ arm
        else:
            spin = turn * (turn @ place)[:, None] - place * (turn * turn).sum(axis=1)[:, None]
            reading = self._in_body(self.acc - self.gravity) + self.ang_acc @ arm + spin
        reading = reading @ axes
        return reading.clip(-cutoff, cutoff) if cutoff else reading

    def _in_body(self, vectors: Array) -> Array:
        """Rotate from world axes."""
        return (vectors[:, None] @ self.axes)[:, 0]
