"""The rays of a camera's pixels, through lenses as those of OpenCV and `sensor_msgs/CameraInfo`.

Distortions send points to others on a plane at a depth of 1 m, x to the right and y downwards, as
in an optical frame. A fisheye also sees what such a plane does not show: it sends rays by their
angles from the axis.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.intrinsics import Intrinsics
from crazyflow_ros.sensors.camera_model import Distortion

_STEEPEST = math.radians(85.0)  # between a ray and the axis: depth is measured along the axis
_ROUNDS = 50  # of Newton's method, which needs 5 where the lens is not almost folded
_EXACT = 1e-10  # m on the plane
_STEPS = 512  # radii or angles at which a lens is checked
_NEAR_AXIS = 1e-9  # of the length of a ray, within which it is on the axis


class Lens(NamedTuple):
    """The rays of pixels, in MuJoCo's axes of the camera.

    They are given by where they pass a plane at a depth of 1 m, or if some of them do not, by unit
    vectors.
    """

    x: np.ndarray
    """To the right [m], shape (height, width)."""
    y: np.ndarray
    """Upwards [m], shape (height, width)."""
    orthographic: bool = False
    """Whether rays are parallel, instead of starting at the camera."""
    z: np.ndarray | None = None
    """Of unit vectors backwards, (height, width); None for -1. With unit vectors, depths are
    distances along the rays."""

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
            return cls(Intrinsics.of_camera(model, number, width, height), False, distortion)
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
        size, bent = self.intrinsics, self.distortion
        column, row = np.meshgrid(np.arange(size.width), np.arange(size.height))
        x, y = (column - size.cx) / size.fx, (row - size.cy) / size.fy
        if self.orthographic:
            return Lens(x, -y, True)
        if not bent.is_fisheye:
            x, y = _straight(bent, x, y)
            self._check(np.arctan(np.hypot(x, y)) <= _STEEPEST, " within 85 degrees of the axis")
            return Lens(x, -y)
        radius = np.hypot(x, y)
        angle = _fisheye_angles(bent, radius)
        self._check(angle <= math.pi, "")
        is_flat = bool((angle <= _STEEPEST).all())
        away = np.tan(angle) if is_flat else np.sin(angle)
        scale = np.divide(away, radius, where=radius > 0, out=np.ones_like(radius))
        return Lens(x * scale, -y * scale, z=None if is_flat else -np.cos(angle))

    def slopes(self, lens: Lens) -> np.ndarray:
        """Return the derivatives of column and row by `Lens.x`, `y` and `z`, (height, width, 2, 3).

        The length of rays changes nothing.
        """
        size, bent = self.intrinsics, self.distortion
        if bent.is_fisheye:
            ahead = np.ones_like(lens.x) if lens.z is None else -lens.z
            slopes = _fisheye_slopes(bent, lens.x, -lens.y, ahead)
        else:
            by_plane = _slopes(bent, lens.x, -lens.y)
            place = np.stack([lens.x, -lens.y], -1)[..., None]
            along = np.zeros_like(place) if self.orthographic else -(by_plane @ place)
            slopes = np.concatenate([by_plane, along], -1)
        return slopes * np.array([[size.fx], [size.fy]]) * np.array([1.0, -1.0, -1.0])

    def _check(self, good: np.ndarray, rule: str) -> None:
        """Refuse pixels without rays, NaN among their angles."""
        if good.all():
            return
        v, u = np.argwhere(~good)[0]
        raise ValueError(
            f"with the distortion {self.distortion.model} {self.distortion.coefficients}, "
            f"the pixel in column {u}, row {v} gets no ray{rule}"
        )


def _fisheye_angles(bend: Distortion, radius: np.ndarray) -> np.ndarray:
    """Return the angles [rad] from the axis of rays that a fisheye sends to radii.

    Up to pi; NaN where there are none. Where the image is folded, the smallest angle counts.
    """
    angles = np.linspace(0.0, math.pi, 2 * _STEPS)
    sent = _of_angle(bend, angles)
    shrinking = np.diff(sent) <= 0.0
    end = int(np.argmax(shrinking)) + 1 if shrinking.any() else len(sent)
    found = np.interp(radius, sent[:end], angles[:end], right=np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_ROUNDS):
            wrong = _of_angle(bend, found) - radius
            if not (abs(wrong) > _EXACT).any():
                break
            found = found - wrong / _by_angle(bend, found)
    good = abs(_of_angle(bend, found) - radius) < 100 * _EXACT
    return np.where(good & (found <= angles[end - 1] + _EXACT), found, np.nan)


def _fisheye_slopes(bend: Distortion, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the derivatives of where a fisheye sends rays by their components, (..., 2, 3).

    Args:
        bend: That of the lens.
        x: To the right; the length of rays does not matter.
        y: Downwards.
        z: Ahead.
    """
    away, length = np.hypot(x, y), np.sqrt(x * x + y * y + z * z)
    on_axis = away < _NEAR_AXIS * length
    across = np.where(on_axis, 1.0, away)
    angle = np.arctan2(away, z)
    scale = np.where(on_axis, 1.0 / length, _of_angle(bend, angle) / across)
    turning = _by_angle(bend, angle) / length**2
    unit = np.stack([x / across, y / across], -1)
    outwards = (turning * z - scale)[..., None, None] * unit[..., :, None] * unit[..., None, :]
    by_plane = scale[..., None, None] * np.eye(2) + outwards
    ahead = -(turning * away)[..., None, None] * unit[..., :, None]
    return np.concatenate([by_plane, ahead], -1)


def _bent(bend: Distortion, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the lens sends points."""
    scale, _ = _scale(bend, x * x + y * y)
    p1, p2 = _tangential(bend)
    q, xy = x * x + y * y, x * y
    return (
        x * scale + 2 * p1 * xy + p2 * (q + 2 * x * x),
        y * scale + p1 * (q + 2 * y * y) + 2 * p2 * xy,
    )


def _slopes(bend: Distortion, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the derivatives of both results of `_bent` by x and y, (..., 2, 2)."""
    scale, change = _scale(bend, x * x + y * y)
    p1, p2 = _tangential(bend)
    mixed = 2 * x * y * change + 2 * (p1 * x + p2 * y)
    along_x = scale + 2 * x * x * change + 2 * p1 * y + 6 * p2 * x
    along_y = scale + 2 * y * y * change + 6 * p1 * y + 2 * p2 * x
    rows = np.stack([along_x, mixed], -1), np.stack([mixed, along_y], -1)
    return np.stack(rows, -2)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _straight(bend: Distortion, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that the lens sends to others; NaN where there are none.

    Where the image is folded, several points go to one: those nearest to the axis count.
    """
    if not bend.coefficients:
        return x, y
    u, v = x, y
    for _ in range(_ROUNDS):
        to_x, to_y = _bent(bend, u, v)
        wrong = np.stack([to_x - x, to_y - y], -1)
        if not (abs(wrong) > _EXACT).any():
            break
        turned = _slopes(bend, u, v)
        (a, b), (_, d) = np.moveaxis(turned, (-2, -1), (0, 1))
        inverse = 1.0 / np.where(a * d == b * b, np.nan, a * d - b * b)
        u = u - inverse * (d * wrong[..., 0] - b * wrong[..., 1])
        v = v - inverse * (a * wrong[..., 1] - b * wrong[..., 0])
    to_x, to_y = _bent(bend, u, v)
    good = (np.hypot(to_x - x, to_y - y) < 100 * _EXACT) & _is_before_fold(bend, np.hypot(u, v))
    return np.where(good, u, np.nan), np.where(good, v, np.nan)


def _is_before_fold(bend: Distortion, radius: np.ndarray) -> np.ndarray:
    """Return whether the image grows outwards up to radii."""
    largest = float(np.nan_to_num(radius, nan=0.0, posinf=0.0).max(initial=0.0))
    radii = np.tan(np.linspace(0.0, math.atan(largest), _STEPS))
    scale, _ = _scale(bend, radii * radii)
    shrinking = np.diff(radii * scale) <= 0.0
    end = radii[np.argmax(shrinking)] if shrinking.any() else np.inf
    return radius <= end


def _tangential(bend: Distortion) -> tuple[float, float]:
    if not bend.coefficients:
        return 0.0, 0.0
    return bend.coefficients[2], bend.coefficients[3]


def _scale(bend: Distortion, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much points are scaled, and its derivative, by their squared radii."""
    if not bend.coefficients:
        return np.ones_like(q), np.zeros_like(q)
    k1, k2, _, _, k3, k4, k5, k6 = (*bend.coefficients, 0.0, 0.0, 0.0, 0.0)[:8]
    above, below = 1 + q * (k1 + q * (k2 + q * k3)), 1 + q * (k4 + q * (k5 + q * k6))
    d_above, d_below = k1 + q * (2 * k2 + q * 3 * k3), k4 + q * (2 * k5 + q * 3 * k6)
    return above / below, (d_above * below - above * d_below) / below**2


def _of_angle(bend: Distortion, angle: np.ndarray) -> np.ndarray:
    """Return the radii to which a fisheye sends angles."""
    k1, k2, k3, k4 = bend.coefficients
    t = angle * angle
    return angle * (1 + t * (k1 + t * (k2 + t * (k3 + t * k4))))


def _by_angle(bend: Distortion, angle: np.ndarray) -> np.ndarray:
    """Return the derivative of `_of_angle`."""
    k1, k2, k3, k4 = bend.coefficients
    t = angle * angle
    return 1 + t * (3 * k1 + t * (5 * k2 + t * (7 * k3 + t * 9 * k4)))
