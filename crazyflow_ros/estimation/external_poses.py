"""Poses from outside, such as those of motion capture, as measurements of the Kalman filter."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import Vec3, Vec4
from crazyflow_ros.estimation import kalman
from crazyflow_ros.estimation.kalman import Belief, Measure, Measurement
from crazyflow_ros.estimation.parts import is_zero
from crazyflow_ros.xla.kernels import apart

POS_STD, QUAT_STD = 0.01, 4.5e-3
"""Errors that the firmware expects, m and rad."""
SIZE = 10
"""Length of `Estimate.external`."""


def told(belief: Belief, external: tuple[Array, ...], taken: Array) -> Belief:
    """Return the belief after an external pose, if there is a new one."""
    is_new = external[-1] != taken
    x, y, z, *quat, pos_std, quat_std, _ = external
    has_attitude = is_new & ~is_zero(tuple(quat))

    measures = _pose((x, y, z), tuple(quat), pos_std, quat_std)  # type: ignore[arg-type]

    def after(belief: Belief) -> Belief:
        for measure, valid in zip(measures, (is_new, is_new, is_new, has_attitude)):
            for measurement in apart(measure, belief):
                belief = kalman.updated(belief, measurement._replace(valid=valid))
        return belief

    return jax.lax.cond(jnp.any(is_new), after, lambda belief: belief, belief)


def captured(pos: Vec3, quat: Vec4, comes: Array | bool) -> list[Measure]:
    """Return the measurements of a pose with the errors that the firmware expects.

    Args:
        pos: Position, m, world frame.
        quat: Attitude, xyzw.
        comes: Where there is a pose.
    """
    return [partial(_where_there, each, comes) for each in _pose(pos, quat, POS_STD, QUAT_STD)]


def _pose(pos: Vec3, quat: Vec4, pos_std: Array | float, quat_std: Array | float) -> list[Measure]:
    """Return the measurements of a pose: three coordinates, then the attitude."""

    def coordinate(axis: int, belief: Belief) -> list[Measurement]:
        return [kalman.coordinate(belief, axis, pos[axis], pos_std)]

    places = [partial(coordinate, axis) for axis in range(3)]
    return [*places, lambda belief: kalman.attitude(belief, quat, quat_std)]


def _where_there(measure: Measure, valid: Array | bool, belief: Belief) -> list[Measurement]:
    return [measurement._replace(valid=valid) for measurement in measure(belief)]
