"""The camera whose pictures a policy sees."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.checks.limits import unknown

CHANNELS = {"depth": 1, "rgb": 3}
"""Numbers per pixel of each kind of picture."""

MOST_PIXELS = 4096
"""Largest number of pixels of a picture."""


@dataclass(frozen=True)
class Eye:
    """A camera of the drone, whose pictures are part of the observation.

    Raises:
        ValueError: A number is out of range, or the kind is unknown.
    """

    kind: str = "depth"
    """"depth" or "rgb"."""
    width: int = 48
    """Pixels in a row."""
    height: int = 36
    """Pixels in a column."""
    fovy: float = 70.0
    """Vertical field of view [degrees]."""
    far: float = 6.0
    """Largest depth [m]; what is farther away is not seen."""
    camera: str = "fpv_cam"
    """Name of the camera in the drone's drawing, which mounts it."""

    def __post_init__(self) -> None:
        if self.kind not in CHANNELS:
            raise ValueError(unknown("kind of picture", self.kind, CHANNELS))
        if min(self.width, self.height) < 1 or self.width * self.height > MOST_PIXELS:
            size = f"{self.width} x {self.height}"
            raise ValueError(f"a picture must have from 1 to {MOST_PIXELS} pixels, got {size}")
        if not 0 < self.fovy < 180:
            raise ValueError(f"fovy must be between 0 and 180 degrees, got {self.fovy:g}")
        if not (isfinite(self.far) and self.far > 0):
            raise ValueError(f"far must be finite and above 0, got {self.far:g}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, and numbers per pixel."""
        return self.height, self.width, CHANNELS[self.kind]

    @property
    def size(self) -> int:
        """Number of elements of a picture."""
        height, width, channels = self.shape
        return height * width * channels

    def seen(self, picture: Array) -> Array:
        """Return a picture as the numbers from 0 to 1 that an observation contains.

        Args:
            picture: (..., height, width, 1) depth [m], infinite where there is nothing; or
                (..., height, width, 3) colors from 0 to 255.

        Returns:
            (..., size): nearness, 1 - depth / `far`, and 0 beyond; or colors.

        Raises:
            ValueError: The picture has another shape.
        """
        if picture.shape[-3:] != self.shape:
            raise ValueError(f"a picture must have shape {self.shape}, got {picture.shape[-3:]}")
        x = picture.reshape(*picture.shape[:-3], self.size).astype(jnp.float32)
        return 1 - jnp.clip(x, 0, self.far) / self.far if self.kind == "depth" else x / 255
