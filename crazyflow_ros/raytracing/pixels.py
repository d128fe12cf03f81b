"""Functions of the pixels of many pictures.

On the CPU, each tile of a picture is computed to the end before the next one starts, so that its
arrays stay in the first-level cache. It shows few shapes: their numbers are given to all pixels one
shape after another, by vectors, which is several times faster than to look them up for each pixel.
On other devices, all pixels of all pictures are computed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import Array, lax

from crazyflow_ros.raytracing.optics import Directions, Tiles
from crazyflow_ros.xla.kernels import one_kernel, separate_kernels, zero

T = TypeVar("T")

Prepare: TypeAlias = Callable[[Any, Any], Any]
"""Takes constants and a scene, a pytree of arrays without the axis of pictures, and returns what
the pixels of its picture have in common."""
OfPixels: TypeAlias = Callable[[Any, Any, Directions, Any, bool], Array]
"""Takes constants, what was prepared, rays and found of R pixels, and whether these are a tile;
returns C numbers for each, (C, R)."""


def of_pixels(
    tiles: Tiles, prepare: Prepare, compute: OfPixels, constants: Any, scenes: Any, found: Any
) -> Array:
    """Return C numbers for each pixel of N pictures, (N, C, height, width).

    Call this in a compiled function: outside of one, it would compile at each call.

    Args:
        tiles: Of the pictures.
        prepare: Is called once for each picture.
        compute: Is called for each tile, or for the whole picture.
        constants: Pytree of arrays that all pictures have in common.
        scenes: Pytree of arrays (N, ...).
        found: Pytree of arrays (N, height, width).
    """
    made: Array = lax.platform_dependent(
        constants, scenes, jax.tree.map(tiles.whole_of, found), tiles.rays,
        cpu=one_kernel(lambda *args: _by_tile(prepare, compute, *args)),
        default=lambda *args: _at_once(prepare, compute, *args),
    )  # fmt: skip
    return tiles.pictures(made)


def rows_of(values: Array, number: Array, in_tile: bool) -> Array:
    """Return rows of `values` (P, K) by their numbers (R,), at least 0, as (K, R).

    Args:
        values: A row for each shape.
        number: Of the shapes.
        in_tile: Whether these are the pixels of a tile, in which there are few different numbers.
    """
    return _spread(values, number) if in_tile else values.at[number].get(mode="clip").T


def if_any(needed: Array, fn: Callable[..., T], other: T, *args: Any) -> T:
    """Return `fn(*args)` if any of the pixels needs it, else `other`."""
    return cast(T, lax.cond(needed.any(), fn, lambda *_: other, *args))


@jax.custom_jvp
def _spread(values: Array, number: Array) -> Array:
    def row(at: Array) -> Array:
        return lax.dynamic_index_in_dim(values, at, keepdims=False)[:, None]

    def next_number(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        at, taken = carry
        return (number * (number < at)).max(), jnp.where(number == at, row(at), taken)

    # From the greatest number down to the second smallest one; all that is left is number 0.
    first = jnp.broadcast_to(row(jnp.int32(0)), (values.shape[1], len(number)))
    _, taken = lax.while_loop(lambda carry: carry[0] > 0, next_number, (number.max(), first))
    return taken


@_spread.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Any]) -> tuple[Array, Array]:
    (values, number), change = primals, tangents[0]
    return _spread(values, number), change.at[number].get(mode="clip").T


def _by_tile(
    prepare: Prepare, compute: OfPixels, constants: Any, scenes: Any, found: Any, rays: Directions
) -> Array:
    """Return numbers (N, C, T, R)."""
    none = zero((constants, scenes, found, rays))

    def picture(args: Any) -> Array:
        scene, found = args
        data = prepare(constants, scene)
        return lax.map(lambda part: compute(constants, data, part[0], part[1], True), (rays, found))

    with separate_kernels(none > -1):
        return jnp.moveaxis(lax.map(picture, (scenes, found)), 1, 2)


def _at_once(
    prepare: Prepare, compute: OfPixels, constants: Any, scenes: Any, found: Any, rays: Directions
) -> Array:
    def picture(scene: Any, found: Any) -> Array:
        data = prepare(constants, scene)
        flat_rays, flat = jax.tree.map(jnp.ravel, (rays, found))
        return compute(constants, data, flat_rays, flat, False)

    made = jax.vmap(picture)(scenes, found)
    return made.reshape(*made.shape[:2], *rays.x.shape)
