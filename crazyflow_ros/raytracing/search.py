"""The nearest shape on each ray, for many pictures at once.

On the CPU, each tile of a picture is computed to the end before the next one starts: its rays are a
vector, and one shape after another is intersected with all of them. A word of bits says which
shapes may be in the tile, so that most cost nothing, and a tile stays in the first-level cache. On
other devices, each shape is intersected with all rays of all pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap

from crazyflow_ros.raytracing.entry import entries
from crazyflow_ros.raytracing.pixels import COLUMNS, ROWS, Directions, Tiles
from crazyflow_ros.raytracing.unit_shapes import WORD, UnitShape, UnitShapes
from crazyflow_ros.raytracing.visibility import (
    NUMBERS,
    Masks,
    mask_of_tile,
    masks_of_tiles,
    table_of,
    tile_masks,
)
from crazyflow_ros.xla.kernels import apart, one_kernel, separate_kernels, zero

T = TypeVar("T")

Found: TypeAlias = tuple[Array, Array]
"""Depths [m], infinite where there is nothing, and numbers of the shapes, int32, -1 there."""
Entries: TypeAlias = Callable[[UnitShape, Array, Directions, Array | None], Array]


@custom_vmap
def search(
    shapes: UnitShapes, tiles: Tiles, frames: Array, cameras: Array, near: Array | None
) -> Found:
    """Find the nearest shapes. This has no derivative.

    Args:
        shapes: P shapes.
        tiles: Those of each picture, T of them.
        frames: Of geoms, the components of positions and of axes, (N, ngeom, 12).
        cameras: Likewise, (N, 12).
        near: Least depths that count, (N, T, pixels) m, None for `NEAR`.

    Returns:
        What is found, (N, height, width) of whole tiles.
    """
    args = shapes, tiles, frames, cameras, near
    return lax.platform_dependent(*args, cpu=by_tile, default=by_shape)


@search.def_vmap
def _(
    size: int, batched: list[Any], shapes: UnitShapes, tiles: Tiles, *args: Any
) -> tuple[Found, tuple[bool, bool]]:
    def flat(x: Array, is_batched: bool) -> Array:
        whole = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
        return whole.reshape(-1, *whole.shape[2:])

    pictures = jax.tree.map(flat, list(args), list(batched[2:]))
    depth, number = (x.reshape(size, -1, *x.shape[1:]) for x in search(shapes, tiles, *pictures))
    return (depth, number), (True, True)


def by_tile(*args: Any) -> Found:
    """Return the result of `search` on the CPU."""
    return one_kernel(_by_tile)(*args)


def by_shape(
    shapes: UnitShapes, tiles: Tiles, frames: Array, cameras: Array, near: Array | None
) -> Found:
    """Return the result of `search` on other devices."""
    table, masks = jax.vmap(lambda *args: _view(shapes, tiles, *args))(frames, cameras)
    in_tiles, entry = (
        jax.vmap(masks_of_tiles)(masks),
        partial(entries, orthographic=tiles.orthographic),
    )
    size = (*in_tiles.shape[:2], tiles.rays.x.shape[1])
    nearest = jnp.full(size, jnp.inf, table.dtype), jnp.full(size, -1, jnp.int32)
    start = 0
    for kind, n_words in shapes.words:

        def step(shape: Array, nearest: Found, kind: UnitShape = kind) -> Found:
            depth, found = nearest
            row = lax.dynamic_index_in_dim(table, shape, 2, keepdims=False)
            new = entry(kind, row.T[:, :, None, None], tiles.rays, near)
            mask = lax.dynamic_index_in_dim(in_tiles, shape // WORD, 2, keepdims=False)
            here = (mask >> (shape % WORD).astype(jnp.uint32)) & 1
            new = jnp.where(here[..., None] == 1, new, jnp.inf)
            return jnp.minimum(depth, new), jnp.where(new < depth, shape, found)

        nearest = lax.fori_loop(WORD * start, WORD * (start + n_words), step, nearest)
        start += n_words
    return tiles.joined(nearest[0]), tiles.joined(nearest[1])


def _view(shapes: UnitShapes, tiles: Tiles, frames: Array, camera: Array) -> tuple[Array, Masks]:
    """Return the table of shapes, and the masks of `tile_masks`."""
    own = shapes.rows
    frames = apart(lambda frames, geom: frames[geom].T, frames, shapes.geom)
    table, axes = apart(table_of, own, frames, camera)
    return table, apart(tile_masks, tiles, own, table, axes)


def _by_tile(
    shapes: UnitShapes, tiles: Tiles, frames: Array, cameras: Array, near: Array | None
) -> Found:
    n_pictures, (n_tiles, pixels) = len(frames), tiles.rays.x.shape
    none = zero((shapes, tiles, frames, cameras, near))
    entry = partial(entries, orthographic=tiles.orthographic)

    def picture(number: Array, found: Found) -> Found:
        frame, camera = (
            lax.dynamic_index_in_dim(part, number, keepdims=False) for part in (frames, cameras)
        )
        table, masks = _view(shapes, tiles, frame, camera)

        def tile(place: Array, found: Found) -> Found:
            rays = jax.tree.map(
                lambda part: lax.dynamic_index_in_dim(part, place, keepdims=False), tiles.rays
            )
            least = None if near is None else near[number, place]
            nearest = jnp.full(pixels, jnp.inf, table.dtype), jnp.full(pixels, -1, jnp.int32)
            start = 0
            for kind, n_words in shapes.words:

                def word(number: Array, nearest: Found, kind: UnitShape = kind) -> Found:
                    mask = mask_of_tile(tiles, masks, place, number)
                    if least is not None:
                        mask = jnp.where(least.min() < jnp.inf, mask, 0)
                    return _in_word(kind, entry, table, WORD * number, mask, rays, least, nearest)

                nearest = lax.fori_loop(start + none, start + n_words + none, word, nearest)
                start += n_words
            at = (number, ROWS * (place // tiles.columns), COLUMNS * (place % tiles.columns))
            depth, shape = (
                lax.dynamic_update_slice(whole, part.reshape(1, ROWS, COLUMNS), at)
                for whole, part in zip(found, nearest)
            )
            return depth, shape

        return lax.fori_loop(0, n_tiles + none, tile, found)

    size = (n_pictures, *tiles.whole)
    found = jnp.zeros(size, frames.dtype), jnp.zeros(size, jnp.int32)
    with separate_kernels(none > -1):
        return lax.fori_loop(0, n_pictures + none, picture, found)


def _in_word(
    kind: UnitShape, entry: Entries, table: Array, first: Array, mask: Array, rays: Directions,
    near: Array | None, nearest: Found,
) -> Found:  # fmt: skip
    """Return the nearest shapes in a tile, given those of other words.

    Args:
        kind: That of the shapes.
        entry: Returns where rays enter one.
        table: (13, P).
        first: Number of the word's first shape.
        mask: The shapes that may be in the tile.
        rays: Of the lens, (pixels,).
        near: Least depths, (pixels,), or None.
        nearest: Those of other words, (pixels,).
    """

    def step(shape: Array, nearest: Found) -> Found:
        depth, found = nearest
        row = lax.dynamic_slice(table, (0, shape), (NUMBERS, 1))[:, 0]
        new = apart(lambda *args: entry(kind, *args), row, rays, near)
        return jnp.minimum(depth, new), jnp.where(new < depth, shape, found)

    return each_shape(mask, first, step, nearest)


def each_shape(mask: Array, first: Array, step: Callable[[Array, T], T], carry: T) -> T:
    """Return what is left of `carry` after a step for each shape in a word of bits.

    Args:
        mask: The word.
        first: Number of its first shape.
        step: Takes the number of a shape and what the step before returned.
        carry: What the first step takes.
    """

    def next_shape(state: tuple[Array, T]) -> tuple[Array, T]:
        mask, carry = state
        lowest = mask & -mask
        shape = first + (WORD - 1 - lax.clz(lowest)).astype(jnp.int32)
        return mask ^ lowest, step(shape, carry)

    return lax.while_loop(lambda state: state[0] != 0, next_shape, (mask, carry))[1]
