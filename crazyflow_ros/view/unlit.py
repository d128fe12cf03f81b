"""Surfaces that are seen in exactly the colours that are asked for, whatever the light.

viser's browser maps all colours with the ACES curve of three.js, which greys what is bright. The
colours of these surfaces are therefore sent as that which the curve maps to what is asked for.
"""

from __future__ import annotations

import numpy as np

from crazyflow_ros.view.glb import GlbPart

# ACESFilmicToneMapping of three.js: curve(x) = OUT @ fit(IN @ x / 0.6), x in linear sRGB.
_INTO = np.array(
    [[0.59719, 0.35458, 0.04823], [0.07600, 0.90834, 0.01566], [0.02840, 0.13383, 0.83777]]
)
_OUT = np.array(
    [[1.60475, -0.53108, -0.07367], [-0.10208, 1.10813, -0.00605], [-0.00327, -0.07276, 1.07602]]
)
_EXPOSURE = 1 / 0.6
_LARGEST = 0.985  # of a curve that reaches 1 at infinity


def linear(seen: np.ndarray) -> np.ndarray:
    """Return linear values of sRGB ones, both from 0 to 1."""
    seen = np.asarray(seen, float)
    return np.where(seen <= 0.04045, seen / 12.92, ((seen + 0.055) / 1.055) ** 2.4)


def before_curve(seen: np.ndarray) -> np.ndarray:
    """Return linear colours (..., 3) that the browser maps to these sRGB ones (..., 3)."""
    y = np.clip(linear(seen) @ np.linalg.inv(_OUT).T, 0.0, _LARGEST)
    a, b = 1 - 0.983729 * y, 0.0245786 - 0.4329510 * y  # the fit is a ratio of parabolas
    c = -0.000090537 - 0.238081 * y
    x = (-b + np.sqrt(b**2 - 4 * a * c)) / (2 * a)
    return np.maximum(x @ np.linalg.inv(_INTO).T / _EXPOSURE, 0.0)


def unlit(
    corners: np.ndarray, seen: np.ndarray, faces: np.ndarray, *, is_double_sided: bool = False
) -> GlbPart:
    """Return a surface that is seen in its colours.

    Args:
        corners: Corners of the triangles [m], shape (n, 3).
        seen: Red, green, blue and opacity, from 0 to 1, of all, shape (4,), or of each corner,
            shape (n, 4).
        faces: Indices of corners, counter-clockwise seen from outside, shape (k, 3).
        is_double_sided: Whether it is seen from inside, too.
    """
    rgba = np.concatenate([before_curve(seen[..., :3]), seen[..., 3:]], axis=-1)
    return GlbPart(corners, faces, rgba, is_lit=False, is_double_sided=is_double_sided)
