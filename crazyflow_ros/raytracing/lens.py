"""The rays of a camera's pixels."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.distortion import Distortion
from crazyflow_ros.scene.intrinsics import Intrinsics
from crazyflow_ros.struct import Struct, static_field

T = TypeVar("T", np.ndarray, Array)

ROWS, COLUMNS = 8, 16
"""Pixels of a tile."""
_STEEPEST = math.radians(85.0)  # between a ray and the axis: depth is measured along the axis
_MARGIN = 1e-4  # m at a depth of 1 m, by which tiles are taken larger than they are


class Lens(NamedTuple):
    """Where the rays of pixels pass a plane at a depth of 1 m, in MuJoCo's axes of the camera."""

    x: np.ndarray
    """To the right [m], shape (height, width)."""
    y: np.ndarray
    """Upwards [m], shape (height, width)."""
    orthographic: bool = False
    """Whether rays are parallel, instead of starting at the camera."""

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
            return cls(Intrinsics.of_number(model, number, width, height), False, distortion)
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
        size = self.intrinsics
        column, row = np.meshgrid(np.arange(size.width), np.arange(size.height))
        x, y = (column - size.cx) / size.fx, (row - size.cy) / size.fy
        x, y = self.distortion.straight(x, y)
        if not self.orthographic:
            good = np.arctan(np.hypot(x, y)) <= _STEEPEST  # NaN is not
            if not good.all():
                v, u = np.argwhere(~good)[0]
                raise ValueError(
                    f"with the distortion {self.distortion.model} {self.distortion.coefficients}, "
                    f"the pixel in column {u}, row {v} gets no ray within 85 degrees of the axis"
                )
        return Lens(x, -y, self.orthographic)

    def slopes(self, lens: Lens) -> np.ndarray:
        """Return the derivatives of column and row by `Lens.x` and `y`, (height, width, 2, 2)."""
        size = self.intrinsics
        by_plane = self.distortion.slopes(lens.x, -lens.y)
        return by_plane * np.array([[size.fx], [size.fy]]) * np.array([1.0, -1.0])


class Tiles(Struct):
    """A picture as tiles of `ROWS` x `COLUMNS` pixels, of which shapes are seen in few."""

    height: int = static_field()
    """Rows of pixels."""
    width: int = static_field()
    """Pixels in a row."""
    orthographic: bool = static_field()
    """See `Lens`."""
    x: Array
    """Those of the lens, (T, pixels) float32; repeated beyond the edges of the picture."""
    y: Array
    """Likewise."""
    left: Array
    """Least x of each column of tiles, (columns,) float32."""
    right: Array
    """Greatest x."""
    bottom: Array
    """Least y of each row of tiles, (rows,) float32."""
    top: Array
    """Greatest y."""

    @classmethod
    def of(cls, lens: Lens) -> Tiles:
        """Return the tiles of a lens."""
        (height, width), rows = lens.size, -(-lens.size[0] // ROWS)
        beyond = (0, -height % ROWS), (0, -width % COLUMNS)
        x, y = (
            np.ascontiguousarray(_cut(np.pad(part, beyond, "edge")), np.float32)
            for part in (lens.x, lens.y)
        )
        in_column, in_row = x.reshape(rows, -1, x.shape[1]), y.reshape(rows, -1, x.shape[1])
        left, right = in_column.min(axis=(0, 2)), in_column.max(axis=(0, 2))
        bottom, top = in_row.min(axis=(1, 2)), in_row.max(axis=(1, 2))
        edges = left - _MARGIN, right + _MARGIN, bottom - _MARGIN, top + _MARGIN
        return cls(height, width, lens.orthographic, *map(jnp.asarray, (x, y, *edges)))

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
