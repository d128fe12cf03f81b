"""The pixels of pictures: their rays, the tiles in which they are computed, and functions of them.

On the CPU, each tile of a picture is computed to the end before the next one starts, so that its
arrays stay in the first-level cache. It shows few shapes: their numbers are given to all pixels one
shape after another, by vectors, which is several times faster than to look them up for each pixel.
On other devices, all pixels of all pictures are computed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from crazyflow_ros.raytracing.optics import Lens
from crazyflow_ros.xla.kernels import one_kernel, separate_kernels, zero
from crazyflow_ros.xla.struct import Struct, static_field

T = TypeVar("T")
A = TypeVar("A", np.ndarray, Array)

Vector: TypeAlias = tuple[Array, ...]
"""The three components of vectors; each is an array of rays or pixels, (R,)."""

ROWS, COLUMNS = 8, 16
"""Pixels of a tile."""
_MARGIN = 1e-4  # m at a depth of 1 m, or rad, by which tiles are taken larger than they are


class Directions(NamedTuple):
    """Rays of any number of pixels, see `Lens`."""

    x: Array
    """float32, as the others."""
    y: Array
    z: Array | None
    """None for -1."""

    @property
    def ahead(self) -> Array | float:
        """`z`, as a number where it is the same for all."""
        return -1.0 if self.z is None else self.z


class Edges(NamedTuple):
    """Where tiles end on a plane at a depth of 1 m; float32."""

    left: Array
    """Least x of each column of tiles, (columns,)."""
    right: Array
    """Greatest x."""
    bottom: Array
    """Least y of each row of tiles, (rows,)."""
    top: Array
    """Greatest y."""


class Cones(NamedTuple):
    """Cones that contain the rays of tiles; float32."""

    axis: Array
    """Unit vectors, (3, T)."""
    angle: Array
    """From the axis to the side [rad], (T,)."""


class Tiles(Struct):
    """A picture as tiles of `ROWS` x `COLUMNS` pixels, of which shapes are seen in few."""

    height: int = static_field()
    """Rows of pixels."""
    width: int = static_field()
    """Pixels in a row."""
    orthographic: bool = static_field()
    """See `Lens`."""
    rays: Directions
    """Those of the lens, (T, pixels); repeated beyond the edges of the picture."""
    bounds: Edges | Cones
    """Between which the rays of tiles are."""

    @classmethod
    def of(cls, lens: Lens) -> Tiles:
        """Return the tiles of a lens."""
        height, width = lens.size
        beyond = (0, -height % ROWS), (0, -width % COLUMNS)

        def tiles(part: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(_cut(np.pad(part, beyond, "edge")), np.float32)

        x, y = tiles(lens.x), tiles(lens.y)
        z = None if lens.z is None else tiles(lens.z)
        bounds = _edges(x, y, -(-height // ROWS)) if z is None else _cones(np.stack([x, y, z]))
        rays = Directions(jnp.asarray(x), jnp.asarray(y), None if z is None else jnp.asarray(z))
        return cls(height, width, lens.orthographic, rays, jax.tree.map(jnp.asarray, bounds))

    @property
    def rows(self) -> int:
        """Number of rows of tiles."""
        return -(-self.height // ROWS)

    @property
    def columns(self) -> int:
        """Number of columns of tiles."""
        return -(-self.width // COLUMNS)

    @property
    def whole(self) -> tuple[int, int]:
        """Height and width of whole tiles [pixels]."""
        return self.rows * ROWS, self.columns * COLUMNS

    def whole_of(self, pictures: Array) -> Array:
        """Cut pictures (N, height, width) to (N, T, pixels), repeated beyond the edges."""
        beyond = (0, 0), (0, -self.height % ROWS), (0, -self.width % COLUMNS)
        return _cut(jnp.pad(pictures, beyond, "edge"))

    def joined(self, tiles: Array) -> Array:
        """Join tiles (..., T, pixels) to pictures of whole tiles, (..., height, width)."""
        before = tiles.shape[:-2]
        by_place = tiles.reshape(*before, self.rows, self.columns, ROWS, COLUMNS)
        return by_place.swapaxes(-3, -2).reshape(*before, self.rows * ROWS, self.columns * COLUMNS)

    def pictures(self, tiles: Array) -> Array:
        """Join tiles (..., T, pixels) to pictures, (..., height, width)."""
        return self.joined(tiles)[..., : self.height, : self.width]


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


def _cut(pictures: A) -> A:
    """Cut pictures of whole tiles (..., height, width) to (..., T, pixels)."""
    *before, height, width = pictures.shape
    tiles = pictures.reshape(*before, height // ROWS, ROWS, width // COLUMNS, COLUMNS)
    return tiles.swapaxes(-3, -2).reshape(*before, -1, ROWS * COLUMNS)


def _edges(x: np.ndarray, y: np.ndarray, rows: int) -> Edges:
    in_column, in_row = (part.reshape(rows, -1, part.shape[1]) for part in (x, y))
    left, right = in_column.min(axis=(0, 2)), in_column.max(axis=(0, 2))
    bottom, top = in_row.min(axis=(1, 2)), in_row.max(axis=(1, 2))
    return Edges(left - _MARGIN, right + _MARGIN, bottom - _MARGIN, top + _MARGIN)


def _cones(rays: np.ndarray) -> Cones:
    """Return the cones around unit vectors (3, T, pixels)."""
    axis = rays.mean(axis=2)
    axis /= np.linalg.norm(axis, axis=0)
    least = (axis[..., None] * rays).sum(0).min(axis=1)
    return Cones(axis, np.arccos(np.clip(least, -1.0, 1.0)) + _MARGIN)
