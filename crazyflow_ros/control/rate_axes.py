"""Axes that follow a body rate instead of an angle: the rate modes of the firmware's setpoints."""

from __future__ import annotations

from jax import Array

from crazyflow_ros.dynamics.components import (
    Vec3,
    Vec4,
    rotation_matrix,
    rpy_from_rotation_matrix,
)
from crazyflow_ros.elementwise import where

RateAxes = tuple[Array, Array] | None
"""Whether roll and pitch follow body rates; None if neither does for any drone."""


def with_present_angles(rpy: Vec3, quat: Vec4, axes: RateAxes) -> Vec3:
    """Return `rpy` with the present angles, which give no error, on axes that follow rates."""
    if axes is None:
        return rpy
    roll, pitch, _ = rpy_from_rotation_matrix(rotation_matrix(quat))
    return where(axes[0], roll, rpy[0]), where(axes[1], pitch, rpy[1]), rpy[2]


def with_rates(wanted: Vec3, rates: Vec3, axes: RateAxes) -> Vec3:
    """Return the desired rates `wanted`, with those of `rates` on axes that follow rates."""
    if axes is None:
        return wanted
    return where(axes[0], rates[0], wanted[0]), where(axes[1], rates[1], wanted[1]), wanted[2]
