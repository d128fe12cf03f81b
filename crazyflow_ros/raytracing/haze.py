"""Haze over the horizon of a scene.

Around the camera, MuJoCo draws a band in front of the sky: the side of a truncated cone, from the
first plane without end up to the height of the camera, where it has the radius of the sky.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.pixels import Vector
from crazyflow_ros.raytracing.unit_shapes import seen
from crazyflow_ros.scene.renderers import FAR

_SKY = 0.7 * FAR
"""Distance of the sky [m], to which MuJoCo scales it."""


class Haze(NamedTuple):
    """A band of haze."""

    plane: int
    """Id of the geom that it stands on."""
    slope: float
    """How much smaller its lower edge is, as a share of its radius."""
    color: tuple[float, float, float]
    """Red, green and blue."""

    def over(
        self, picture: Vector, plane: Array, eye: Array, start: Vector, step: Vector
    ) -> Vector:
        """Return the sky with the haze before it.

        Args:
            picture: Red, green and blue of the sky, each (R,).
            plane: Position and axes of the plane, (12,).
            eye: Position of the camera, (3,).
            start: Where the rays of pixels start, from the camera, in the axes of the world [m].
            step: Where they go, likewise; of any length.
        """
        normal = plane[5::3]
        height = (normal * (eye - plane[:3])).sum()
        up = sum(a * b for a, b in zip(normal, step))
        along = jnp.sqrt(jnp.maximum(sum(part * part for part in step) - up * up, 1e-12))
        tilt = -up / along
        down = tilt - sum(a * b for a, b in zip(normal, start)) / _SKY
        # Where rays cross the cone: 0 at the height of the camera, 1 on the plane.
        place = down / jnp.maximum(height / _SKY + self.slope * tilt, 1e-12)
        thickest = 1.0 - self._thickest
        share = jnp.minimum(place / thickest, (1.0 - place) / (1.0 - thickest))
        share = jnp.where((height >= 0.0) & (down > 0.0), jnp.clip(share, 0.0, 1.0), 0.0)
        return tuple(a + share * (b - a) for a, b in zip(picture, self.color))

    @property
    def _thickest(self) -> float:
        """Height at which nothing is seen through it, as a share of that of the camera."""
        angle = math.atan2(1.0, self.slope)
        return math.sqrt(0.5) * self.slope * math.sin(angle) / math.sin(0.75 * math.pi - angle)


def haze_of(model: mujoco.MjModel, groups: Sequence[int]) -> Haze | None:
    """Return the haze of a scene, None if it has none."""
    endless = (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE) & ~model.geom_size[:, :2].any(axis=1)
    planes = np.flatnonzero(seen(model, groups) & endless)
    if not planes.size:
        return None
    red, green, blue, _ = map(float, model.vis.rgba.haze)
    return Haze(int(planes[0]), float(model.vis.map.haze), (red, green, blue))
