"""Depth images."""

from math import pi, tan

import numpy as np
from jax import Array
from jax import numpy as jnp

from crazyflow_ros.raytracing.depth_images import build_render_depth_fn, render_depth

__all__ = ["build_render_depth_fn", "render_depth"]


def _camera_rays(resolution: tuple[int, int] = (100, 100), fov_y: float = pi / 4) -> Array:
    """Return unit vectors (height, width, 3) through the pixels, in the camera's frame."""
    width, height = resolution
    pixel = 2 * tan(fov_y / 2) / height
    x = (np.arange(width) - (width - 1) / 2) * pixel
    y = ((height - 1) / 2 - np.arange(height)) * pixel
    rays = np.stack([*np.meshgrid(x, y), -np.ones((height, width))], axis=-1)
    return jnp.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))
