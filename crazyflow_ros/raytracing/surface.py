"""The surface of shapes where rays hit them: normals, and how depths change with poses."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.raytracing.shapes import UnitShape, UnitShapes


class PixelRays(NamedTuple):
    """PixelRays of N pictures, of R pixels each, with the depths at which they hit."""

    x: Array
    """Of the lens, (R,)."""
    y: Array
    """Of the lens, (R,)."""
    depth: Array
    """(N, R) m."""

    def points(self, orthographic: bool) -> Array:
        """Return the ends in the camera's axes [m], (N, R, 3)."""
        across = jnp.ones_like(self.depth) if orthographic else self.depth
        return jnp.stack([self.x * across, self.y * across, -self.depth], axis=-1)

    def steps(self, orthographic: bool) -> Array:
        """Return the changes of the ends with the depth, (R, 3)."""
        across = jnp.zeros_like(self.x) if orthographic else jnp.ones_like(self.x)
        return jnp.stack([self.x * across, self.y * across, -jnp.ones_like(self.x)], axis=-1)


def taken(values: Array, number: Array) -> Array:
    """Return rows of `values` (N, K, ...) by their numbers (N, R)."""
    index = number.reshape(*number.shape, *[1] * (values.ndim - 2))
    return jnp.take_along_axis(values, index, axis=1)


def normals(shapes: UnitShapes, number: Array, points: Array) -> Array:
    """Return outward normals in the axes of the geoms, (N, R, 3), of unit length.

    Args:
        shapes: The shapes.
        number: Which one is hit, (N, R).
        points: Where, in the frame of its geom [m], (N, R, 3).
    """
    to_unit = jnp.asarray(shapes.to_unit, points.dtype)[number]
    centre = jnp.asarray(shapes.centre, points.dtype)[number]
    local = (to_unit * (points - centre)[..., None, :]).sum(-1)
    kinds = jnp.asarray(shapes.kinds)[number]
    length = jnp.asarray(shapes.length, points.dtype)[number]
    gradient = _gradient(shapes, kinds, local, length)
    normal = (to_unit * gradient[..., :, None]).sum(-2)
    return normal / jnp.sqrt((normal * normal).sum(-1, keepdims=True))


def _gradient(shapes: UnitShapes, kinds: Array, local: Array, length: Array) -> Array:
    """Return normals in the shapes' coordinates, in which a gradient is a row, not normalised."""
    up = jnp.zeros_like(local).at[..., 2].set(1.0)
    present = {kind for kind, _ in shapes.words}
    z = local[..., 2]
    result = up
    if UnitShape.ball in present:
        result = _where(kinds, UnitShape.ball, local, result)
    if UnitShape.capsule in present:
        along = jnp.clip(z, -length, length)
        result = _where(kinds, UnitShape.capsule, local - along[..., None] * up, result)
    if UnitShape.box in present:
        size = jnp.abs(local)
        face = size == size.max(axis=-1, keepdims=True)
        result = _where(kinds, UnitShape.box, jnp.sign(local) * face, result)
    if UnitShape.cylinder in present:
        flat = local.at[..., 2].set(0.0)
        on_side = (flat * flat).sum(-1) > z * z
        of_cylinder = jnp.where(on_side[..., None], flat, jnp.sign(z)[..., None] * up)
        result = _where(kinds, UnitShape.cylinder, of_cylinder, result)
    return result


def _where(kinds: Array, kind: UnitShape, value: Array, other: Array) -> Array:
    return jnp.where((kinds == kind.value)[..., None], value, other)
