"""Which pixels are in the shadow of something, seen from a light."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from crazyflow_ros.raytracing.entry import ENTRIES, TINY
from crazyflow_ros.raytracing.pixels import Vector, if_any
from crazyflow_ros.raytracing.search import each_shape
from crazyflow_ros.raytracing.unit_shapes import WORD, UnitShape, UnitShapes
from crazyflow_ros.raytracing.visibility import ENDS, EXISTS, EXTENT, as_words
from crazyflow_ros.scene.renderers import NEAR
from crazyflow_ros.xla.kernels import apart

_MARGIN = 1e-3  # m by which tiles are taken larger than they are


class ShadowRays:
    """Rays from the pixels of a picture to lights.

    What is nearer than `NEAR` to the surface casts no shadow on it.

    Args:
        shapes: P shapes that cast shadows.
        rows: Those of the picture, see `Tracer.rows`, (P, K).
        in_tile: Whether the pixels are those of a tile.
    """

    def __init__(self, shapes: UnitShapes, rows: Array, in_tile: bool) -> None:
        self._shapes, self._rows, self._in_tile = shapes, rows, in_tile

    def blocked(self, lit: Array, ends: Vector, way: Vector, distance: Array) -> Array:
        """Return which of R pixels a light does not reach.

        Args:
            lit: Those that it reaches if nothing is in between; others do not count.
            ends: What the pixels show, in the axes of the camera [m].
            way: Unit vectors from there to the light.
            distance: How far away the light is [m].
        """
        search = self._by_word if self._in_tile else self._by_shape
        return if_any(lit, search, jnp.zeros_like(lit), lit, ends, way, distance)

    def _by_shape(self, lit: Array, ends: Vector, way: Vector, distance: Array) -> Array:
        blocked, start = jnp.zeros_like(lit), 0
        for kind, n_words in self._shapes.words:

            def step(shape: Array, blocked: Array, kind: UnitShape = kind) -> Array:
                new = _reaches(kind, self._rows[shape], ends, way) < distance
                return blocked | (new & (self._shapes.rows[EXISTS, shape] > 0.0))

            end = start + WORD * n_words
            blocked, start = lax.fori_loop(start, end, step, blocked), end
        return blocked

    def _by_word(self, lit: Array, ends: Vector, way: Vector, distance: Array) -> Array:
        words = apart(_between, self._shapes.rows, self._rows, lit, ends, way, distance)
        blocked, start = jnp.zeros_like(lit), 0
        for kind, n_words in self._shapes.words:

            def word(number: Array, blocked: Array, kind: UnitShape = kind) -> Array:
                def step(shape: Array, blocked: Array) -> Array:
                    row = lax.dynamic_index_in_dim(self._rows, shape, keepdims=False)
                    new = apart(lambda *args: _reaches(kind, *args), row, ends, way)
                    return blocked | (new < distance)

                return each_shape(words[number], WORD * number, step, blocked)

            end = start + n_words
            blocked, start = lax.fori_loop(start, end, word, blocked), end
        return blocked


def _reaches(kind: UnitShape, row: Array, ends: Vector, way: Vector) -> Array:
    """Return how far rays reach before they enter a shape [m]."""
    start = tuple(row[9 + i] + sum(row[3 * i + j] * ends[j] for j in range(3)) for i in range(3))
    step = tuple(
        row[3 * i] * way[0] + row[3 * i + 1] * way[1] + row[3 * i + 2] * way[2] + TINY
        for i in range(3)
    )
    enter = ENTRIES[kind](start, step, (row[12], row[13]))
    return jnp.where(enter > NEAR, enter, jnp.inf)


def _between(
    own: Array, rows: Array, lit: Array, ends: Vector, way: Vector, distance: Array
) -> Array:
    """Return which shapes may be between pixels and a light, as words of bits.

    The pixels are in a ball; their rays stay in a capsule from there to the light. A shape is left
    out if the axis of the capsule misses the box around it, which is made larger by the radius.
    """
    least = [jnp.where(lit, part, jnp.inf).min() for part in ends]
    most = [jnp.where(lit, part, -jnp.inf).max() for part in ends]
    centre = [(a + b) / 2 for a, b in zip(least, most)]
    radius = jnp.sqrt(sum((b - a) ** 2 for a, b in zip(least, most))) / 2 + _MARGIN
    # The light, from any of the pixels.
    one = lit.argmax()
    light = [part[one] + distance[one] * to[one] for part, to in zip(ends, way)]
    axis = [a - b for a, b in zip(light, centre)]
    length = jnp.sqrt(sum(part * part for part in axis))
    enter, leave = jnp.zeros(len(rows)), jnp.broadcast_to(length, len(rows))
    for i in range(3):
        row = [rows[:, 3 * i + j] for j in range(3)]
        start = own[ENDS + i] * rows[:, 9 + i] + sum(a * b for a, b in zip(row, centre))
        step = sum(a * b for a, b in zip(row, axis)) / length + TINY
        half = own[EXTENT + i] + radius * jnp.sqrt(sum(a * a for a in row))
        middle, reach = -start / step, abs(half / step)
        enter, leave = jnp.maximum(enter, middle - reach), jnp.minimum(leave, middle + reach)
    return as_words((enter <= leave) & (own[EXISTS] > 0.0))
