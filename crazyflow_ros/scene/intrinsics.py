"""Intrinsics of cameras."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np


class Intrinsics(NamedTuple):
    """A pinhole camera without distortion; the centre of its first pixel is at (0, 0)."""

    width: int
    """Pixels in a row."""
    height: int
    """Pixels in a column."""
    fx: float
    """Focal length in x [pixels]."""
    fy: float
    """Focal length in y [pixels]."""
    cx: float
    """Principal point in x [pixels]."""
    cy: float
    """Principal point in y, downwards [pixels]."""

    @classmethod
    def from_fovy(cls, fovy: float, width: int, height: int) -> Intrinsics:
        """Return intrinsics with square pixels and a centred principal point, as in MuJoCo.

        Raises:
            ValueError: The size or the field of view is invalid.
        """
        if not 0.0 < fovy < 180.0:
            raise ValueError(f"fovy must be between 0 and 180 degrees, got {fovy}")
        focal = height / 2 / math.tan(math.radians(fovy) / 2)
        return cls(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)._checked()

    @classmethod
    def from_matrix(cls, matrix: Sequence[float], width: int, height: int) -> Intrinsics:
        """Return the intrinsics of a matrix fx, 0, cx, 0, fy, cy, 0, 0, 1 [pixels].

        Raises:
            ValueError: The matrix does not have this form.
        """
        if len(matrix) != 9:
            raise ValueError(f"an intrinsic matrix must have 9 numbers, got {len(matrix)}")
        fx, skew, cx, zero, fy, cy, *last = matrix
        if (skew, zero, *last) != (0.0, 0.0, 0.0, 0.0, 1.0):
            form = "fx 0 cx, 0 fy cy, 0 0 1"
            raise ValueError(f"an intrinsic matrix must have the form {form}, got {matrix}")
        return cls(width, height, fx, fy, cx, cy)._checked()

    @classmethod
    def of_camera(
        cls,
        model: mujoco.MjModel,
        name: str | int,
        width: int | None = None,
        height: int | None = None,
    ) -> Intrinsics:
        """Return the intrinsics of a camera in a model, by default at its own resolution.

        Args:
            model: The model.
            name: Name or id of the camera.
            width: Pixels in a row.
            height: Pixels in a column.

        Raises:
            ValueError: The model has no camera of this name, or it is orthographic.
        """
        number = name
        if isinstance(name, str):
            number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, name)
            if number < 0:
                raise ValueError(f"the model has no camera {name!r}")
        if model.cam_projection[number] == mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC:
            raise ValueError(f"camera {name!r} is orthographic: it has no focal length")
        own_width, own_height = map(int, model.cam_resolution[number])
        width, height = width or own_width, height or own_height
        sensor_width, sensor_height = map(float, model.cam_sensorsize[number])
        if not sensor_height:
            return cls.from_fovy(float(model.cam_fovy[number]), width, height)
        fx, fy, cx, cy = map(float, model.cam_intrinsic[number])
        column, row = width / sensor_width, height / sensor_height  # pixels per metre
        return cls(
            width,
            height,
            fx * column,
            fy * row,
            (width - 1) / 2 - cx * column,
            (height - 1) / 2 - cy * row,
        )._checked()

    def directions(self) -> np.ndarray:
        """Return unit vectors through the pixels, (height, width, 3), in MuJoCo's camera frame."""
        column, row = np.arange(self.width), np.arange(self.height)
        x, y = np.meshgrid((column - self.cx) / self.fx, (self.cy - row) / self.fy)
        vectors = np.stack([x, y, np.full_like(x, -1.0)], axis=-1)
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    def _checked(self) -> Intrinsics:
        if self.width < 1 or self.height < 1:
            raise ValueError(
                f"width and height must be at least 1, got {self.width} x {self.height}"
            )
        if not (self.fx > 0.0 and self.fy > 0.0):
            raise ValueError(f"focal lengths must be positive, got {self.fx}, {self.fy}")
        return self
