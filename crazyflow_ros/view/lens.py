"""Pictures and views of cameras, and the view that shows given points."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.view.access import is_number

FOV = math.radians(45)
"""Vertical angle of view of the cameras that the page moves: of a normal lens."""
_LARGEST = 20_000.0  # pixels
_SMALLEST_SHARE = 0.15  # of the picture: a free area below this is as good as none
_MARGIN = 0.06  # of the free area, on each side


class Picture(NamedTuple):
    """The picture of a tab: its size and the part that nothing covers [CSS pixels]."""

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float
    has_own_camera: bool = False
    """Whether the address of the page says where the camera is."""

    @classmethod
    def uncovered(cls, width: float, height: float) -> Picture:
        """Return a picture that nothing covers."""
        return cls(width, height, 0.0, 0.0, width, height)

    @classmethod
    def read(cls, content: Any) -> Picture:
        """Return the picture that a tab describes.

        Raises:
            ValueError: This is no such description.
        """
        if not isinstance(content, dict) or not isinstance(content.get("free"), list):
            raise ValueError(f"expected the size of a picture, got {content!r}")
        sides = [content.get("width"), content.get("height"), *content["free"]]
        if len(sides) != 6 or not all(is_number(side, 0, _LARGEST) for side in sides):
            raise ValueError(f"expected six lengths, got {sides!r}")
        width, height, left, top, right, bottom = map(float, sides)
        if width < 1 or height < 1:
            raise ValueError(f"expected a picture, got {width} x {height}")
        is_some = right - left > _SMALLEST_SHARE * width and bottom - top > _SMALLEST_SHARE * height
        if not is_some or right > width + 1 or bottom > height + 1:
            left, top, right, bottom = 0.0, 0.0, width, height
        own = content.get("hasOwnCamera") is True
        return cls(width, height, left, top, right, bottom, own)

    def focal(self, fov: float) -> float:
        """Return the focal length [pixels] for a vertical angle of view [rad]."""
        return self.height / 2 / math.tan(fov / 2)


class CameraView(NamedTuple):
    """Position of a camera, and the point that it looks at [m], each of shape (3,)."""

    position: np.ndarray
    look_at: np.ndarray


class Look(NamedTuple):
    """A level camera and its picture."""

    view: CameraView
    fov: float
    """Vertical angle of view [rad]."""
    picture: Picture

    @property
    def focal(self) -> float:
        """Focal length [pixels]."""
        return self.picture.focal(self.fov)

    @property
    def axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Unit vectors right, down and ahead."""
        return axes_of(self.view.look_at - self.view.position)

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Project points (M, 3) [m] into the picture.

        Returns:
            Pixels, right and down, shape (M, 2), which mean nothing for what is behind the camera,
            and distances along its axis [m], shape (M,).
        """
        right, down, along = np.stack(self.axes) @ (points - self.view.position).T
        middle = np.array([self.picture.width, self.picture.height]) / 2
        ratio = self.focal / np.where(np.abs(along) > 1e-9, along, 1e-9)
        return middle + np.column_stack([right * ratio, down * ratio]), along


def axes_of(ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the unit vectors right, down and ahead of a level camera."""
    ahead = ahead / np.linalg.norm(ahead)
    right = np.array([ahead[1], -ahead[0], 0.0])
    if not right.any():  # it looks straight down or up
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return right, np.cross(ahead, right), ahead


def direction(azimuth: float, elevation: float) -> np.ndarray:
    """Return the unit vector towards a camera at an azimuth and an elevation [rad]."""
    flat = math.cos(elevation)
    return np.array(
        [flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)], float
    )


def fit(points: np.ndarray, margin: float, towards: np.ndarray, picture: Picture) -> CameraView:
    """Return the nearest view with all points in the uncovered part of a picture.

    Args:
        points: The points [m], shape (M, 3).
        margin: Around each of them [m].
        towards: Unit vector from the points to the camera, shape (3,).
        picture: The picture, with the angle of view `FOV`.
    """
    right, down, ahead = axes_of(-towards)
    focal = picture.focal(FOV)
    # Tangents of the middle of the free area, and of half its width and height.
    x = ((picture.left + picture.right) / 2 - picture.width / 2) / focal
    y = ((picture.top + picture.bottom) / 2 - picture.height / 2) / focal
    half_x = (0.5 - _MARGIN) * (picture.right - picture.left) / focal
    half_y = (0.5 - _MARGIN) * (picture.bottom - picture.top) / focal
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    p = points - middle
    along = p @ ahead
    wide = (np.abs(p @ right - x * along) + margin) / half_x - along
    high = (np.abs(p @ down - y * along) + margin) / half_y - along
    distance = float(np.maximum(wide, high).max())
    position = middle - distance * (ahead + x * right + y * down)
    return CameraView(position, position + distance * ahead)


def depth(points: np.ndarray, view: CameraView) -> np.ndarray:
    """Return the distance of points (M, 3) along the axis of a view [m], shape (M,)."""
    ahead = view.look_at - view.position
    return np.asarray((points - view.position) @ (ahead / np.linalg.norm(ahead)))
