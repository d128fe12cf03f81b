"""The rays of a camera's pixels."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.distortion import Distortion
from crazyflow_ros.scene.intrinsics import Intrinsics
from crazyflow_ros.xla.struct import Struct, static_field

T = TypeVar("T", np.ndarray, Array)

ROWS, COLUMNS = 8, 16
"""Pixels of a tile."""
_STEEPEST = math.radians(85.0)  # between a ray and the axis: depth is measured along the axis
_MARGIN = 1e-4  # m at a depth of 1 m, or rad, by which tiles are taken larger than they are


class Lens(NamedTuple):
    """The rays of pixels, in MuJoCo's axes of the camera.

    They are given by where they pass a plane at a depth of 1 m, or if some of them do not, by unit
    vectors.
    """

    x: np.ndarray
    """To the right [m], shape (height, width)."""
    y: np.ndarray
    """Upwards [m], shape (height, width)."""
    orthographic: bool = False
    """Whether rays are parallel, instead of starting at the camera."""
    z: np.ndarray | None = None
    """Of unit vectors backwards, (height, width); None for -1. With unit vectors, depths are
    distances along the rays."""

    @classmethod
    def of_camera(cls, model: mujoco.MjModel, number: int, width: int, height: int) -> Lens:
        """Return the lens of a camera in a model, without distortion."""
        return Optics.of_camera(model, number, width, height).lens()

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        height, width = self.x.shape
        return height, width


class Optics(NamedTuple):
    """The figures of a lens. Lenses with the same figures are equal."""

    intrinsics: Intrinsics
    """If orthographic, focal lengths are pixels per metre."""
    orthographic: bool = False
    """See `Lens`."""
    distortion: Distortion = Distortion()
    """Not for orthographic ones."""

    @classmethod
    def of_camera(
        cls,
        model: mujoco.MjModel,
        number: int,
        width: int,
        height: int,
        distortion: Distortion = Distortion(),  # noqa: B008
    ) -> Optics:
        """Return the figures of a camera in a model.

        Raises:
            ValueError: It is orthographic, and has a distortion.
        """
        if model.cam_projection[number] != mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC:
            return cls(Intrinsics.of_camera(model, number, width, height), False, distortion)
        if distortion.coefficients:
            raise ValueError("an orthographic camera has no distortion")
        scale = height / float(model.cam_fovy[number])
        centre = (width - 1) / 2, (height - 1) / 2
        return cls(Intrinsics(width, height, scale, scale, *centre), True)

    def lens(self) -> Lens:
        """Return the rays of the pixels.

        Raises:
            ValueError: The distortion sends no ray to a pixel, or one that is too oblique.
        """
        size, bent = self.intrinsics, self.distortion
        column, row = np.meshgrid(np.arange(size.width), np.arange(size.height))
        x, y = (column - size.cx) / size.fx, (row - size.cy) / size.fy
        if self.orthographic:
            return Lens(x, -y, True)
        if not bent.is_fisheye:
            x, y = bent.straight(x, y)
            self._check(np.arctan(np.hypot(x, y)) <= _STEEPEST, " within 85 degrees of the axis")
            return Lens(x, -y)
        radius = np.hypot(x, y)
        angle = bent.angles(radius)
        self._check(angle <= math.pi, "")
        is_flat = bool((angle <= _STEEPEST).all())
        away = np.tan(angle) if is_flat else np.sin(angle)
        scale = np.divide(away, radius, where=radius > 0, out=np.ones_like(radius))
        return Lens(x * scale, -y * scale, z=None if is_flat else -np.cos(angle))

    def slopes(self, lens: Lens) -> np.ndarray:
        """Return the derivatives of column and row by `Lens.x`, `y` and `z`, (height, width, 2, 3).

        The length of rays changes nothing.
        """
        size, bent = self.intrinsics, self.distortion
        if bent.is_fisheye:
            ahead = np.ones_like(lens.x) if lens.z is None else -lens.z
            slopes = bent.slopes_of_rays(lens.x, -lens.y, ahead)
        else:
            by_plane = bent.slopes(lens.x, -lens.y)
            place = np.stack([lens.x, -lens.y], -1)[..., None]
            along = np.zeros_like(place) if self.orthographic else -(by_plane @ place)
            slopes = np.concatenate([by_plane, along], -1)
        return slopes * np.array([[size.fx], [size.fy]]) * np.array([1.0, -1.0, -1.0])

    def _check(self, good: np.ndarray, rule: str) -> None:
        """Refuse pixels without rays, NaN among their angles."""
        if good.all():
            return
        v, u = np.argwhere(~good)[0]
        raise ValueError(
            f"with the distortion {self.distortion.model} {self.distortion.coefficients}, "
            f"the pixel in column {u}, row {v} gets no ray{rule}"
        )


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


def _cut(pictures: T) -> T:
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
