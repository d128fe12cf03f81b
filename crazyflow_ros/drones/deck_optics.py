"""What the optical sensors of the decks see: a cone of rays, and dark or plain surfaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.drones.instruments import VL53L1X_FIELD_OF_VIEW, VL53L1X_MAX_RANGE

N_RAYS, _EDGE = 49, 16
"""Rays of a cone, and how many of them are on its edge. Seen from any side, neighbours are at most
2.7 degrees apart in a cone of 27 degrees, and the outermost is at least 13.2 from the axis."""

REFLECTANCES = (0.0, 0.17, 0.54, 0.88, 1.0)
"""Reflectances of targets whose `REACHES` are known."""
REACHES = (0.0, 1.7, 3.4, 3.6, VL53L1X_MAX_RANGE)
"""Distances up to which a VL53L1X measures such targets in the dark [m]: the data sheet's table of
ranging distances, which has targets of 17, 54 and 88 % that fill the field of view (STEBCN2V1's
manual, page 21: 1.7 to 3.6 m for 17 to 88 % in long distance mode). The last is its
greatest range. Less light returns from darker targets, and from those that the light grazes: in
proportion to reflectance and cosine of the incidence (Lambert) over the square of the distance."""
_DARKEST = 0.04  # reflectance of black paint; no surface reflects less


_DEPTH, _SHARE = 1.15, 0.15  # a target: up to 15 % farther, and at least 15 % of the light


class DeckSurface(NamedTuple):
    """What the decks' sensors notice of a surface."""

    reflectance: float
    """Share of the light that it reflects."""
    texture: float
    """Features that a flow camera finds on it, as a share of those on an ordinary floor."""


ORDINARY = DeckSurface(0.39, 1.0)
"""A surface of which nothing is known, and the floor of the default scene."""

STD_OF_FEATURES = 4.406, -0.01257
"""Noise of the PMW3901 [counts of 0.1 pixel] without features, and its change with the register
SQUAL, a count of features; Bitcraze's fit to flights over little and much texture
(`flowdeck_v1v2.c`)."""
STD_OF_SHUTTER = 0.4335, 7.984e-4
"""The same over the register of the shutter, which the firmware uses with `motion.adaptive`."""
ORDINARY_STD = 2.0
"""Noise over an ordinary floor, as the firmware assumes by default [counts]."""
ORDINARY_SQUAL = (ORDINARY_STD - STD_OF_FEATURES[0]) / STD_OF_FEATURES[1]
"""SQUAL over an ordinary floor."""
LEAST_TEXTURE = 25 / ORDINARY_SQUAL
"""Texture with which the PMW3901 finds no motion: PixArt discards readings with SQUAL below 25."""


def cone(direction: Sequence[float], view: float = VL53L1X_FIELD_OF_VIEW) -> np.ndarray:
    """Return the rays of a cone as unit vectors (R, 3): the axis, then outwards, then the edge.

    Those inside stand for the same solid angle each, and turn by the golden angle.

    Args:
        direction: The axis, of any length.
        view: Full angle at the tip [rad]; 0 for the axis alone.
    """
    axis = np.asarray(direction, float) / np.linalg.norm(direction)
    if not view:
        return axis[None]
    side = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    side /= np.linalg.norm(side)
    inner = np.arange(N_RAYS - _EDGE)
    open_ = np.append(np.sqrt(inner / len(inner)), np.ones(_EDGE)) * view / 2
    golden, even = math.pi * (3 - math.sqrt(5)), math.tau / _EDGE
    around = np.append(inner * golden, np.arange(_EDGE) * even)
    across = np.outer(np.cos(around), side) + np.outer(np.sin(around), np.cross(axis, side))
    return np.cos(open_)[:, None] * axis + np.sin(open_)[:, None] * across


def nearest_target(distances: Any, library: Any = np) -> Any:
    """Return the reading of a cone [m]: the distance to the nearest target that is not too small.

    The light of a ray falls with the square of its distance. Rays up to 15 % farther than a point
    are one target with it, and a target with less than 15 % of the light goes unnoticed: a wall
    that the edge of a cone touches, beside a floor that fills it.

    Args:
        distances: Along the R rays on the first axis [m]; infinite, or far, where nothing is seen.
        library: `numpy` or `jax.numpy`.

    Returns:
        The distance, without the first axis; infinite, or far, where nothing is seen.
    """
    light = 1 / library.maximum(distances, 1e-3) ** 2
    near, far = distances[:, None], distances[None]
    together = library.where((far >= near) & (far <= _DEPTH * near), light[None], 0.0).sum(axis=1)
    return library.where(together >= _SHARE * light.sum(axis=0), distances, library.inf).min(axis=0)


def reach(reflectance: Any, cosine: Any = 1.0, library: Any = np) -> Any:
    """Return how far a VL53L1X sees surfaces [m].

    Args:
        reflectance: Array of NumPy or JAX.
        cosine: Of the angle between ray and normal, likewise.
        library: `numpy` or `jax.numpy`.
    """
    roots = library.sqrt(library.clip(reflectance, _DARKEST, 1.0) * cosine)
    return library.interp(
        roots, library.sqrt(library.asarray(REFLECTANCES)), library.asarray(REACHES)
    )
