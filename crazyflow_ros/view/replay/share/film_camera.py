"""The camera of a film: where it is, and where it looks, at each picture."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import NamedTuple

import numpy as np

FOV = np.deg2rad(45.0)
"""Angle of view from the lower to the upper edge [rad]."""
_TURN = np.deg2rad(10.0)  # rad/s of the film's time
_ELEVATION, _AZIMUTH = np.deg2rad(24.0), np.deg2rad(-120.0)
_NEAREST, _FARTHEST = 1.2, 40.0  # m
_FOLLOWING = 1.6  # m behind a drone that is followed
_LAG = 0.6  # s by which the camera is calmer than the drones
_ROOM = 1.15  # of what is seen, around the flight


class FilmView(StrEnum):
    """What the camera does."""

    ORBIT = auto()
    """Goes around the drones, and keeps them all in view."""
    FOLLOW = auto()
    """Stays beside one drone."""
    FIXED = auto()
    """Stands still, and sees the whole flight."""


class Shots(NamedTuple):
    """The camera of K pictures."""

    eyes: np.ndarray
    """Where it is [m], shape (K, 3)."""
    targets: np.ndarray
    """Where it looks [m], shape (K, 3)."""

    @property
    def axes(self) -> np.ndarray:
        """Its axes as columns, to the right, upwards and backwards, shape (K, 3, 3)."""
        back = self.eyes - self.targets
        back = back / np.linalg.norm(back, axis=1, keepdims=True)
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right, axis=1, keepdims=True)
        return np.stack([right, np.cross(back, right), back], axis=2)


def shots(
    view: FilmView, places: np.ndarray, followed: int, fps: float, aspect: float, floor: float
) -> Shots:
    """Return the camera of each picture.

    Args:
        view: What it does.
        places: Positions of M drones [m], shape (K, M, 3); NaN where a drone is not there.
        followed: Number of the drone that is followed.
        fps: Pictures per second.
        aspect: Width of a picture over its height.
        floor: Height of the floor [m], below which the camera does not go.
    """
    count = len(places)
    known = places[np.isfinite(places).all(axis=2)]
    low, high = known.min(axis=0), known.max(axis=0)
    middle = np.tile((low + high) / 2, (count, 1))
    azimuth = np.full(count, _AZIMUTH)
    distance = _distance(float(np.linalg.norm(high - low)) / 2, aspect)
    if view is FilmView.FOLLOW:
        middle, distance = _calm(_held(places[:, followed], middle), fps), _FOLLOWING
    elif view is FilmView.ORBIT:
        azimuth = azimuth + _TURN * np.arange(count) / fps
        there = np.isfinite(places).all(axis=2)[..., None]
        sums = np.where(there, places, 0.0).sum(axis=1)
        means = np.where(there.any(axis=1), sums / np.maximum(there.sum(axis=1), 1), np.nan)
        middle = _calm(_held(means, middle), fps)
        reach = np.linalg.norm(places - middle[:, None], axis=2)
        distance = _distance(float(np.nanmax(reach)), aspect)
    flat = np.cos(_ELEVATION) * distance
    away = np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth)])
    heights = np.full((count, 1), np.sin(_ELEVATION) * distance)
    eyes = middle + np.concatenate([away, heights], axis=1)
    eyes[:, 2] = np.maximum(eyes[:, 2], floor + 0.2)
    return Shots(eyes, middle)


def _distance(radius: float, aspect: float) -> float:
    """Return from how far a ball of this radius [m] is seen whole [m]."""
    narrow = np.arctan(np.tan(FOV / 2) * min(aspect, 1.0))
    return float(np.clip(_ROOM * radius / np.sin(narrow), _NEAREST, _FARTHEST))


def _held(places: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return places (K, 3), the last known one where there is none."""
    is_known = np.isfinite(places).all(axis=1)
    if not is_known.any():
        return otherwise
    rows = np.maximum.accumulate(np.where(is_known, np.arange(len(places)), -1))
    return places[np.where(rows < 0, int(np.argmax(is_known)), rows)]


def _calm(places: np.ndarray, fps: float) -> np.ndarray:
    """Return the mean of places (K, 3) over the time around each."""
    half = min(round(_LAG * fps), len(places) - 1)
    padded = np.concatenate([places[:1].repeat(half, 0), places, places[-1:].repeat(half, 0)])
    sums = np.concatenate([np.zeros((1, 3)), padded.cumsum(axis=0)])
    width = 2 * half + 1
    return (sums[width:] - sums[:-width]) / width
