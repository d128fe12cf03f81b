"""Distances of points from the surfaces of shapes, in the axes of the shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.obstacles import Shape, signed_distance

APART = 1e-6
"""Places that are nearer to each other differ by rounding [m]."""

_HALVINGS = 40  # of the interval of a root, on a logarithmic scale
_LEAST = 1e-10  # of coordinates, in semi-axes

Surface: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
"""Takes a point [m] (3,) and the size of the shape as in MuJoCo [m] (3,); returns the distance [m],
negative inside, and the outward unit normal (3,), which may be zero where all are as near."""


def cylinder(point: Array, size: Array) -> tuple[Array, Array]:
    """See `signed_distance`."""
    x, y, z = point
    radius, length, _ = size
    shape = jnp.asarray(Shape.cylinder)
    distance, normal = signed_distance(shape, (radius, length, length), (x, y, z))
    return distance, jnp.stack(normal)


def ellipsoid(point: Array, size: Array) -> tuple[Array, Array]:
    """Distance and outward unit normal of a point.

    After D. Eberly, "Distance from a point to an ellipse, an ellipse, or a hyperellipsoid" (2013):
    the nearest point of the surface is the root of a function that falls, of one variable.
    """
    sign, least = jnp.where(point < 0, -1.0, 1.0), size.min()
    ratios = (size / least) ** 2 - 1
    reach = jnp.maximum(jnp.abs(point) / size, _LEAST) * (ratios + 1)

    def foot(root: Array) -> Array:
        """The nearest point, divided by the semi-axes; of length 1 for the root."""
        return reach / (root + ratios)

    def halved(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        is_low = (foot(middle) ** 2).sum() > 1
        return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

    ends = reach[jnp.argmin(ratios)], jnp.linalg.norm(reach)
    low, high = jax.lax.stop_gradient(jax.lax.fori_loop(0, _HALVINGS, halved, ends))
    # One step of Newton's method, which has the derivatives of the root.
    start = jnp.sqrt(low * high)
    square = foot(start) ** 2
    step = (square.sum() - 1) / (2 * (square / (start + ratios)).sum())
    nearest = foot(jnp.maximum(start + step, start / 2))
    nearest = sign * nearest / jnp.linalg.norm(nearest)
    normal = nearest / size
    normal = normal / jnp.linalg.norm(normal)
    return normal.dot(point - nearest * size), normal


def polytope(corners: np.ndarray) -> Surface:
    """Return the surface of a convex polytope, which ignores the size.

    Args:
        corners: (F, 3, 3) corners of its triangles [m], counter-clockwise seen from outside.
    """
    sides = np.roll(corners, -1, axis=1) - corners
    normals = np.cross(sides[:, 0], sides[:, 1])
    area = np.linalg.norm(normals, axis=1)
    corners, sides, normals = (x[area > 0] for x in (corners, sides, normals))
    normals = normals / area[area > 0, None]
    inwards = np.cross(normals[:, None], sides)

    def surface(point: Array, _: Array) -> tuple[Array, Array]:
        arms = point - corners
        heights = (arms[:, 0] * normals).sum(axis=1)
        # Outside, the nearest point is below the point, on a face, or on a side.
        is_over = ((arms * inwards).sum(axis=2) >= 0).all(axis=1) & (heights > 0)
        share = ((arms * sides).sum(axis=2) / (sides**2).sum(axis=2)).clip(0, 1)
        ways = (arms - share[..., None] * sides).reshape(-1, 3)
        way = ways[jnp.argmin((ways**2).sum(axis=1))]
        square = way @ way
        by_face = is_over.any() | (heights.max() <= 0) | (square < APART**2)
        face = jnp.argmax(jnp.where(is_over.any(), is_over, heights))
        length = jnp.sqrt(jnp.where(by_face, 1.0, square))
        distance = jnp.where(by_face, heights[face], length)
        return distance, jnp.where(by_face, jnp.asarray(normals)[face], way / length)

    return surface
