"""The rays of a camera's pixels."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.scene.intrinsics import Intrinsics

T = TypeVar("T", np.ndarray, Array)

ROWS, COLUMNS = 8, 16
"""Pixels of a tile."""
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
        """Return the lens of a camera in a model."""
        column, row = np.arange(width), np.arange(height)
        if model.cam_projection[number] == mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC:
            pixel = float(model.cam_fovy[number]) / height
            x, y = (column - (width - 1) / 2) * pixel, ((height - 1) / 2 - row) * pixel
            x, y = np.meshgrid(x, y)
            return cls(x, y, orthographic=True)
        lens = Intrinsics.of_number(model, number, width, height)
        x, y = np.meshgrid((column - lens.cx) / lens.fx, (lens.cy - row) / lens.fy)
        return cls(x, y)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        height, width = self.x.shape
        return height, width


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
