"""Where shapes are, seen from a camera.

Everything is computed by component: an array has a number for each of P shapes, as vectors of the
CPU have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.raytracing.pixels import Cones, Tiles
from crazyflow_ros.raytracing.unit_shapes import WORD

Masks: TypeAlias = tuple[Array, ...]
"""Which shapes may be seen in which tiles, see `tile_masks`."""

NUMBERS = 14
"""Numbers of a shape in the table, see `table_of`."""

_AXES, _CENTRE, _TO_UNIT, EXTENT, ENDS, _EXTRA, EXISTS, KIND = 0, 9, 12, 21, 24, 27, 29, 30
"""Rows of `UnitShapes.rows`."""


def table_of(own: Array, frames: Array, camera: Array) -> tuple[Array, Array]:
    """Return the camera in the coordinates of shapes, and the shapes in the axes of the camera.

    Args:
        own: `UnitShapes.rows`.
        frames: Positions and axes of the shapes' geoms in the world, (12, P).
        camera: Position and axes of the camera in the world, (12,).

    Returns:
        The camera's axes in the coordinates of each shape, row by row, its position in them, and
        `UnitShapes.extra`, (14, P); and the unit vectors of each shape's coordinates in the
        axes of the camera [m], as columns, row by row, (9, P).
    """
    away = [camera[i] - frames[i] for i in range(3)]
    geom = [[frames[3 + 3 * i + j] for j in range(3)] for i in range(3)]
    look = [[camera[3 + 3 * i + j] for j in range(3)] for i in range(3)]
    # The camera in the frame of the geom: turned by the transpose of the geom's axes.
    turn = [[_sum(geom[k][i] * look[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    place = [_sum(geom[k][i] * away[k] for k in range(3)) - own[_CENTRE + i] for i in range(3)]
    to_unit = [[own[_TO_UNIT + 3 * i + j] for j in range(3)] for i in range(3)]
    rows = [_sum(to_unit[i][k] * turn[k][j] for k in range(3)) for i in range(3) for j in range(3)]
    origin = [_sum(to_unit[i][k] * place[k] for k in range(3)) for i in range(3)]
    axes = [
        _sum(turn[k][i] * own[_AXES + 3 * k + j] for k in range(3))
        for i in range(3)
        for j in range(3)
    ]
    return jnp.stack([*rows, *origin, own[_EXTRA], own[_EXTRA + 1]]), jnp.stack(axes)


def tile_masks(tiles: Tiles, own: Array, table: Array, axes: Array) -> Masks:
    """Return which shapes may be seen in tiles, as words of bits.

    A shape is left out if the box around it is on the other side of a plane through the camera and
    the edge of the tiles, or the ball around the box is beside the cone of the tile.

    Args:
        tiles: Of the picture.
        own: `UnitShapes.rows`.
        table: See `table_of`.
        axes: See `table_of`.

    Returns:
        Those of each row and of each column of tiles, (rows, words) and (columns, words) uint32, or
        of each tile, (T, words).
    """
    origin = [own[ENDS + j] * table[9 + j] for j in range(3)]
    centre = [-_sum(axes[3 * i + j] * origin[j] for j in range(3)) for i in range(3)]
    half = [[axes[3 * i + j] * own[EXTENT + j] for j in range(3)] for i in range(3)]
    bounds = tiles.bounds
    if isinstance(bounds, Cones):
        return (as_words(_in_cones(bounds, centre, half) & (own[EXISTS] > 0.0)),)
    ahead = (centre[2] - _sum(abs(half[2][j]) for j in range(3)) < 0.0) & (own[EXISTS] > 0.0)

    def words(axis: int, least: Array, greatest: Array) -> Array:
        def reaches(edge: Array, sign: float) -> Array:
            at = edge[:, None]
            if tiles.orthographic:
                return sign * (centre[axis] - at) + _sum(abs(h) for h in half[axis]) >= 0.0
            reach = _sum(abs(half[axis][j] + at * half[2][j]) for j in range(3))
            return sign * (centre[axis] + at * centre[2]) + reach >= 0.0

        return as_words(reaches(least, 1.0) & reaches(greatest, -1.0) & ahead)

    return words(1, bounds.bottom, bounds.top), words(0, bounds.left, bounds.right)


def mask_of_tile(tiles: Tiles, masks: Masks, place: Array, number: Array) -> Array:
    """Return one of the words of a tile, of `tile_masks`."""
    if len(masks) == 1:
        return masks[0][place, number]
    rows, columns = masks
    return rows[place // tiles.columns, number] & columns[place % tiles.columns, number]


def masks_of_tiles(masks: Masks) -> Array:
    """Return the words of all tiles, (T, words), of `tile_masks`."""
    if len(masks) == 1:
        return masks[0]
    rows, columns = masks
    return (rows[:, None] & columns).reshape(-1, rows.shape[-1])


def _in_cones(cones: Cones, centre: Sequence[Array], half: Sequence[Sequence[Array]]) -> Array:
    """Return which balls around boxes reach into cones, (T, P).

    Args:
        cones: T cones.
        centre: Of P boxes, in the axes of the camera.
        half: From there to three of the faces, by component.
    """
    corners = [
        _sum((half[i][0] + a * half[i][1] + b * half[i][2]) ** 2 for i in range(3))
        for a in (1, -1)
        for b in (1, -1)
    ]
    square, distance = jnp.stack(corners).max(axis=0), _sum(part * part for part in centre)
    along = jnp.sqrt(jnp.maximum(distance - square, 0.0))
    side, axis = cones.angle[:, None], cones.axis[..., None]
    reach = jnp.cos(side) * along - jnp.sin(side) * jnp.sqrt(square)
    ahead = _sum(axis[i] * centre[i] for i in range(3)) >= reach
    # Balls around the camera, and those that reach to behind the cone.
    return ahead | (distance <= square) | (jnp.cos(side) * jnp.sqrt(distance) <= -along)


def as_words(bits: Array) -> Array:
    """Return booleans (..., P) as bits of words (..., P / WORD) uint32."""
    bits = bits.reshape(*bits.shape[:-1], -1, WORD).astype(jnp.uint32)
    return (bits << jnp.arange(WORD, dtype=jnp.uint32)).sum(-1, dtype=jnp.uint32)


def _sum(terms: Iterable[Array]) -> Array:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first
