"""Where rays enter shapes of unit size.

A ray is the points `start + t * step` in the coordinates of a shape, in which it has unit size, see
`unit_shapes`. Each function returns the t at which the ray enters the shape from outside, which may
be before it starts, and infinity where it does not. MuJoCo culls back faces, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.raytracing.pixels import Directions, Vector
from crazyflow_ros.raytracing.unit_shapes import UnitShape
from crazyflow_ros.scene.renderers import NEAR

Entry: TypeAlias = Callable[[Vector, Vector, tuple[Array, Array]], Array]
"""Takes start, step and `UnitShapes.extra`."""

TINY = 1e-20
"""Is added to steps, so that none is zero."""
_GAP = 1e-5  # by which triangles are larger, so that no ray passes between two of them


def _plane(start: Vector, step: Vector, extra: tuple[Array, Array]) -> Array:
    """Return where rays cross the square |x|, |y| < 1 at z = 0, from either side.

    Where `extra` is zero, the square is around the start.
    """
    t = -start[2] / step[2]
    x, y = extra[0] * start[0] + t * step[0], extra[1] * start[1] + t * step[1]
    inside = (abs(x) <= 1.0) & (abs(y) <= 1.0)
    return jnp.where(inside, t, jnp.inf)


def _box(start: Vector, step: Vector, extra: tuple[Array, Array]) -> Array:
    """Return where rays enter the cube |x|, |y|, |z| < 1."""
    del extra
    enter, leave = _slab(start[0], step[0])
    for a, b in zip(start[1:], step[1:]):
        near, far = _slab(a, b)
        enter, leave = jnp.maximum(enter, near), jnp.minimum(leave, far)
    return jnp.where(enter <= leave, enter, jnp.inf)


def _ball(start: Vector, step: Vector, extra: tuple[Array, Array]) -> Array:
    """Return where rays enter the unit sphere."""
    del extra
    enter, _ = _round(start, step)
    return enter


def _cylinder(start: Vector, step: Vector, extra: tuple[Array, Array]) -> Array:
    """Return where rays enter the cylinder of radius 1, |z| < 1."""
    del extra
    side, leave = _round(start[:2], step[:2])
    near, far = _slab(start[2], step[2])
    enter = jnp.maximum(side, near)
    return jnp.where(enter <= jnp.minimum(leave, far), enter, jnp.inf)


def _capsule(start: Vector, step: Vector, extra: tuple[Array, Array]) -> Array:
    """Return where rays enter the capsule of radius 1 whose axis is |z| < `extra[0]`."""
    length, _ = extra
    side, _ = _round(start[:2], step[:2])
    height = start[2] + side * step[2]
    end = jnp.where(height > 0.0, length, -length)
    cap, _ = _round((start[0], start[1], start[2] - end), step)
    # Beside the infinite cylinder, `side` is infinite, and so is the height.
    return jnp.where(abs(height) <= length, side, jnp.where(side < jnp.inf, cap, jnp.inf))


def _triangle(start: Vector, step: Vector, extra: tuple[Array, Array]) -> Array:
    """Return where rays cross the triangle (-1, -1), (1, -1), (-1, 1) at z = 0 from above."""
    del extra
    t = -start[2] / step[2]
    x, y = start[0] + t * step[0], start[1] + t * step[1]
    inside = (x >= -1.0 - _GAP) & (y >= -1.0 - _GAP) & (x + y <= _GAP)
    return jnp.where(inside & (step[2] < 0.0), t, jnp.inf)


ENTRIES: dict[UnitShape, Entry] = {
    UnitShape.plane: _plane,
    UnitShape.box: _box,
    UnitShape.ball: _ball,
    UnitShape.cylinder: _cylinder,
    UnitShape.capsule: _capsule,
    UnitShape.triangle: _triangle,
}
"""By kind of shape."""


def entries(
    kind: UnitShape, row: Array, rays: Directions, near: Array | None, *, orthographic: bool
) -> Array:
    """Return the depths at which the rays of a picture enter a shape, infinite where they do not.

    Args:
        kind: That of the shape.
        row: Of the table, see `table_of`, (14,).
        rays: Of the lens; x and y are those of their origins if the camera is orthographic.
        near: Least depths [m], None for `NEAR`.
        orthographic: Whether the rays are parallel.
    """
    across = tuple(row[3 * i] * rays.x + row[3 * i + 1] * rays.y for i in range(3))
    ahead = tuple(row[3 * i + 2] * rays.ahead for i in range(3))
    origin = tuple(row[9 + i] for i in range(3))
    if orthographic:
        start = tuple(o + a for o, a in zip(origin, across))
        step = tuple(b + TINY for b in ahead)
    else:
        start, step = origin, tuple(a + b + TINY for a, b in zip(across, ahead))
    enter = ENTRIES[kind](start, step, (row[12], row[13]))
    return jnp.where(enter > (NEAR if near is None else near), enter, jnp.inf)


def _slab(start: Array, step: Array) -> tuple[Array, Array]:
    """Return where rays enter and leave |x| < 1."""
    inverse = 1.0 / step
    middle, half = -start * inverse, abs(inverse)
    return middle - half, middle + half


def _round(start: tuple[Array, ...], step: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return where rays enter and leave the unit circle or sphere; infinite and less if beside it.

    The distance from the centre is that of the nearest point of the ray. Differences of squares of
    distances from the camera would cancel: 0.1 mm at 1 m would become 1 cm at 100 m.
    """
    inverse = 1.0 / sum(s * s for s in step)
    nearest = -sum(a * b for a, b in zip(start, step)) * inverse
    beside = sum((a + nearest * b) ** 2 for a, b in zip(start, step))
    half = jnp.sqrt(jnp.maximum(1.0 - beside, 0.0) * inverse)
    enter = jnp.where(beside < 1.0, nearest - half, jnp.inf)
    return enter, nearest + half
