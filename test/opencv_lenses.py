"""Lenses as OpenCV's documentation writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crazyflow_ros.raytracing import Optics


def projected(optics: Optics, x: Any, y: Any, z: Any = 1.0) -> tuple[Any, Any]:
    """Columns and rows of points in the optical frame: `cv2.projectPoints`, or
    `cv2.fisheye.projectPoints`, which may be behind the camera."""
    size, (model, coefficients) = optics.intrinsics, optics.distortion
    if model == "equidistant":
        k1, k2, k3, k4 = coefficients
        r = np.maximum(np.sqrt(x**2 + y**2), 1e-12)
        theta = np.arctan2(r, z)
        bent = theta * (1 + k1 * theta**2 + k2 * theta**4 + k3 * theta**6 + k4 * theta**8)
        u, v = bent / r * x, bent / r * y
    else:
        x, y = x / z, y / z
        k1, k2, p1, p2, k3, k4, k5, k6 = (*coefficients, 0, 0, 0, 0, 0, 0, 0, 0)[:8]
        r2 = x**2 + y**2
        radial = (1 + k1 * r2 + k2 * r2**2 + k3 * r2**3) / (1 + k4 * r2 + k5 * r2**2 + k6 * r2**3)
        u = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x**2)
        v = y * radial + p1 * (r2 + 2 * y**2) + 2 * p2 * x * y
    return size.fx * u + size.cx, size.fy * v + size.cy
