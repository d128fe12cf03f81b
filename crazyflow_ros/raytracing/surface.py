"""The surface of shapes where rays hit them.

Everything is computed by component, see `visibility`, for the R pixels of one picture: from a
shape's row of the table, which says where the camera is in its coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.raytracing.pixels import Directions, Vector
from crazyflow_ros.raytracing.unit_shapes import UnitShape, UnitShapes
from crazyflow_ros.raytracing.visibility import KIND, NUMBERS
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.struct import Struct, static_field

SURFACE_ROWS = NUMBERS + 1
"""Numbers of a shape that `surface_of` needs."""


class PixelRays(Struct):
    """Rays of R pixels of a picture, with the depths at which they hit."""

    of_lens: Directions
    """(R,)."""
    depth: Array
    """(R,) m."""
    orthographic: bool = static_field()
    """Whether they are parallel."""

    def ends(self) -> Vector:
        """Return where they hit in the axes of the camera [m]."""
        across, rays = 1.0 if self.orthographic else self.depth, self.of_lens
        return rays.x * across, rays.y * across, rays.ahead * self.depth

    def steps(self) -> Vector:
        """Return how the ends change with the depth, in the axes of the camera."""
        across, rays = 0.0 if self.orthographic else 1.0, self.of_lens
        return rays.x * across, rays.y * across, jnp.zeros_like(self.depth) + rays.ahead


class Surface(NamedTuple):
    """The surface at the ends of rays."""

    kind: Array
    """Values of the shapes' kinds, (R,)."""
    local: Vector
    """Place in the coordinates of the shape."""
    facing: Vector
    """Normal in the coordinates of the shape, not of unit length."""
    normal: Vector
    """Unit normal in the axes of the camera."""
    place: Vector
    """Of triangles, where they are in textures, see `Triangles`; of others, as `local`."""
    length: Array
    """Of capsules, half the length of the axis in the coordinates of the shape."""


def surface_rows(own: Array, table: Array) -> Array:
    """Return what `surface_of` needs to know of all shapes, (P, SURFACE_ROWS).

    Args:
        own: `UnitShapes.rows`.
        table: That of the picture, see `table_of`, (14, P).
    """
    return jnp.concatenate([table, own[KIND : KIND + 1]]).T


def surface_of(shapes: UnitShapes, rows: Array, rays: PixelRays) -> Surface:
    """Return the surface at the ends of rays.

    Args:
        shapes: P shapes.
        rows: Those of `surface_rows` that are hit, (SURFACE_ROWS, R).
        rays: The rays.
    """

    def local(rows: Array, rays: PixelRays) -> Vector:
        ends = rays.ends()
        return tuple(
            rows[9 + i] + sum(rows[3 * i + j] * ends[j] for j in range(3)) for i in range(3)
        )

    kind = rows[NUMBERS]
    place: Vector = apart(local, rows, rays)
    facing = apart(lambda *args: _facing(shapes, *args), kind, place, rows[12])
    return Surface(kind, place, facing, apart(in_camera, rows, facing), place, rows[12])


def in_camera(rows: Array, facing: Vector) -> Vector:
    """Return unit normals in the axes of the camera, given those in the shapes' coordinates."""
    a, b, c = (sum(rows[3 * i + j] * facing[i] for i in range(3)) for j in range(3))
    inverse = 1.0 / jnp.sqrt(a * a + b * b + c * c)
    return a * inverse, b * inverse, c * inverse


def _facing(shapes: UnitShapes, kind: Array, local: Vector, length: Array) -> Vector:
    x, y, z = local
    zero, one = jnp.zeros_like(z), jnp.ones_like(z)
    side = jnp.sign(z)
    size = [abs(part) for part in local]
    most = jnp.maximum(jnp.maximum(size[0], size[1]), size[2])
    on_face = tuple(jnp.where(part == most, jnp.sign(at), 0.0) for part, at in zip(size, local))
    round_side = x * x + y * y > z * z
    of_kind: dict[UnitShape, Vector] = {
        UnitShape.ball: local,
        UnitShape.capsule: (x, y, z - jnp.clip(z, -length, length)),
        UnitShape.box: on_face,
        UnitShape.cylinder: (
            jnp.where(round_side, x, 0.0), jnp.where(round_side, y, 0.0),
            jnp.where(round_side, 0.0, side),
        ),
    }  # fmt: skip
    facing: Vector = zero, zero, one  # planes and triangles
    for present, _ in shapes.words:
        if present in of_kind:
            here = kind == present.value
            pairs = zip(of_kind[present], facing)
            facing = tuple(jnp.where(here, own, other) for own, other in pairs)
    return facing


def smoothed(surface: Surface, rows: Array, corners: Array) -> Surface:
    """Return a surface of which triangles look as if they were curved, as MuJoCo lights them.

    Args:
        surface: The surface.
        rows: See `surface_of`.
        corners: Of `UnitShapes.corners`, those of the shapes that are hit, (CORNER_ROWS, R).
    """
    x, y, _ = surface.local
    second, third = (x + 1) / 2, (y + 1) / 2
    shares = 1 - second - third, second, third
    blended = [
        sum(share * corners[i + 3 * k] for k, share in enumerate(shares))
        for i in (0, 1, 2, 9, 10, 11)
    ]
    is_triangle = surface.kind == UnitShape.triangle.value
    others = *surface.facing, *surface.place
    new = tuple(jnp.where(is_triangle, x, y) for x, y in zip(blended, others))
    return surface._replace(normal=in_camera(rows, new[:3]), place=new[3:])
