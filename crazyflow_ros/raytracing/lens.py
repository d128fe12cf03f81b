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


class Tiles:
    """A picture as tiles of `ROWS` x `COLUMNS` pixels, of which shapes are seen in few.

    Attributes:
        x: Those of the lens, (T, pixels) float32; repeated beyond the edges of the picture.
        y: Likewise.
        left: Least x of each column of tiles, (columns,) float32.
        right: Greatest x.
        bottom: Least y of each row of tiles, (rows,) float32.
        top: Greatest y.
        rows: Number of rows of tiles.
        columns: Number of columns of tiles.
    """

    def __init__(self, lens: Lens) -> None:
        self.height, self.width = lens.size
        self.rows, self.columns = -(-self.height // ROWS), -(-self.width // COLUMNS)
        height, width = self.whole
        beyond = (0, height - self.height), (0, width - self.width)
        self.x, self.y = (
            np.ascontiguousarray(self.cut(np.pad(part, beyond, "edge")), np.float32)
            for part in (lens.x, lens.y)
        )
        by_place = (self.rows, self.columns, -1)
        x, y = self.x.reshape(by_place), self.y.reshape(by_place)
        self.left, self.right = x.min(axis=(0, 2)) - _MARGIN, x.max(axis=(0, 2)) + _MARGIN
        self.bottom, self.top = y.min(axis=(1, 2)) - _MARGIN, y.max(axis=(1, 2)) + _MARGIN

    @property
    def whole(self) -> tuple[int, int]:
        """Height and width of whole tiles [pixels]."""
        return self.rows * ROWS, self.columns * COLUMNS

    def cut(self, pictures: T) -> T:
        """Cut pictures of whole tiles (..., height, width) to (..., T, pixels)."""
        before = pictures.shape[:-2]
        tiles = pictures.reshape(*before, self.rows, ROWS, self.columns, COLUMNS)
        return tiles.swapaxes(-3, -2).reshape(*before, -1, ROWS * COLUMNS)

    def whole_of(self, pictures: Array) -> Array:
        """Cut pictures (N, height, width) to (N, T, pixels), repeated beyond the edges."""
        height, width = self.whole
        beyond = (0, 0), (0, height - self.height), (0, width - self.width)
        return self.cut(jnp.pad(pictures, beyond, "edge"))

    def joined(self, tiles: Array) -> Array:
        """Join tiles (..., T, pixels) to pictures of whole tiles, (..., height, width)."""
        before = tiles.shape[:-2]
        by_place = tiles.reshape(*before, self.rows, self.columns, ROWS, COLUMNS)
        return by_place.swapaxes(-3, -2).reshape(*before, self.rows * ROWS, self.columns * COLUMNS)
