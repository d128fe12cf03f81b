"""Distortion of lenses, with the models and coefficients of OpenCV and `sensor_msgs/CameraInfo`.

Points are on a plane at a depth of 1 m, x to the right and y downwards, as in an optical frame. A
fisheye also sees what such a plane does not show: it sends rays by their angles from the axis.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

DistortionModel: TypeAlias = Literal["plumb_bob", "rational_polynomial", "equidistant"]

_COUNTS: dict[DistortionModel, tuple[int, ...]] = {
    "plumb_bob": (4, 5),
    "rational_polynomial": (8,),
    "equidistant": (4,),
}
"""How many coefficients there may be; none at all is a lens without distortion."""
_ROUNDS = 50  # of Newton's method, which needs 5 where the lens is not almost folded
_EXACT = 1e-10  # m on the plane
_STEPS = 512  # radii or angles at which a lens is checked
_NEAR_AXIS = 1e-9  # of the length of a ray, within which it is on the axis


class Distortion(NamedTuple):
    """Where a lens sends points of the plane."""

    model: DistortionModel = "plumb_bob"
    """Brown and Conrady's "plumb_bob" or "rational_polynomial", or the fisheye "equidistant"."""
    coefficients: tuple[float, ...] = ()
    """k1, k2, p1, p2, then k3, then k4, k5, k6; of "equidistant" k1 to k4. None: no distortion."""

    @property
    def padded(self) -> tuple[float, ...]:
        """All coefficients of the model; those that are not given are zero."""
        missing = max(_COUNTS[self.model]) - len(self.coefficients)
        return (*self.coefficients, *[0.0] * missing)

    def check(self) -> None:
        """Check the number of coefficients.

        Raises:
            ValueError: It is wrong, or one is not finite.
        """
        counts, given = _COUNTS[self.model], self.coefficients
        if given and len(given) not in counts:
            rule = " or ".join(map(str, (0, *counts)))
            raise ValueError(
                f"the distortion {self.model} has {rule} coefficients, got {len(given)}"
            )
        if not all(map(math.isfinite, given)):
            raise ValueError(f"the coefficients of a distortion must be finite, got {given}")

    @property
    def is_fisheye(self) -> bool:
        """Whether `angles` and `slopes_of_rays` tell what the lens does, and not the others."""
        return self.model == "equidistant" and bool(self.coefficients)

    def angles(self, radius: np.ndarray) -> np.ndarray:
        """Return the angles [rad] from the axis of rays that a fisheye sends to radii.

        Up to pi; NaN where there are none. Where the image is folded, the smallest angle counts.
        """
        angles = np.linspace(0.0, math.pi, 2 * _STEPS)
        sent = self._of_angle(angles)
        shrinking = np.diff(sent) <= 0.0
        end = int(np.argmax(shrinking)) + 1 if shrinking.any() else len(sent)
        found = np.interp(radius, sent[:end], angles[:end], right=np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(_ROUNDS):
                wrong = self._of_angle(found) - radius
                if not (abs(wrong) > _EXACT).any():
                    break
                found = found - wrong / self._by_angle(found)
        good = abs(self._of_angle(found) - radius) < 100 * _EXACT
        return np.where(good & (found <= angles[end - 1] + _EXACT), found, np.nan)

    def slopes_of_rays(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the derivatives of where a fisheye sends rays by their components, (..., 2, 3).

        Args:
            x: To the right; the length of rays does not matter.
            y: Downwards.
            z: Ahead.
        """
        away, length = np.hypot(x, y), np.sqrt(x * x + y * y + z * z)
        on_axis = away < _NEAR_AXIS * length
        across = np.where(on_axis, 1.0, away)
        angle = np.arctan2(away, z)
        scale = np.where(on_axis, 1.0 / length, self._of_angle(angle) / across)
        turning = self._by_angle(angle) / length**2
        unit = np.stack([x / across, y / across], -1)
        outwards = (turning * z - scale)[..., None, None] * unit[..., :, None] * unit[..., None, :]
        by_plane = scale[..., None, None] * np.eye(2) + outwards
        ahead = -(turning * away)[..., None, None] * unit[..., :, None]
        return np.concatenate([by_plane, ahead], -1)

    def bent(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where the lens sends points."""
        scale, _ = self._scale(x * x + y * y)
        p1, p2 = self._tangential()
        q, xy = x * x + y * y, x * y
        return (
            x * scale + 2 * p1 * xy + p2 * (q + 2 * x * x),
            y * scale + p1 * (q + 2 * y * y) + 2 * p2 * xy,
        )

    def slopes(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the derivatives of both results of `bent` by x and y, (..., 2, 2)."""
        scale, change = self._scale(x * x + y * y)
        p1, p2 = self._tangential()
        mixed = 2 * x * y * change + 2 * (p1 * x + p2 * y)
        along_x = scale + 2 * x * x * change + 2 * p1 * y + 6 * p2 * x
        along_y = scale + 2 * y * y * change + 6 * p1 * y + 2 * p2 * x
        rows = np.stack([along_x, mixed], -1), np.stack([mixed, along_y], -1)
        return np.stack(rows, -2)

    def straight(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the points that the lens sends to others; NaN where there are none.

        Where the image is folded, several points go to one: those nearest to the axis count.
        """
        if not self.coefficients:
            return x, y
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._solved(x, y)

    def _solved(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = x, y
        for _ in range(_ROUNDS):
            to_x, to_y = self.bent(u, v)
            wrong = np.stack([to_x - x, to_y - y], -1)
            if not (abs(wrong) > _EXACT).any():
                break
            slopes = self.slopes(u, v)
            (a, b), (_, d) = np.moveaxis(slopes, (-2, -1), (0, 1))
            inverse = 1.0 / np.where(a * d == b * b, np.nan, a * d - b * b)
            u = u - inverse * (d * wrong[..., 0] - b * wrong[..., 1])
            v = v - inverse * (a * wrong[..., 1] - b * wrong[..., 0])
        to_x, to_y = self.bent(u, v)
        good = (np.hypot(to_x - x, to_y - y) < 100 * _EXACT) & self._is_before_fold(np.hypot(u, v))
        return np.where(good, u, np.nan), np.where(good, v, np.nan)

    def _is_before_fold(self, radius: np.ndarray) -> np.ndarray:
        """Return whether the image grows outwards up to radii."""
        largest = float(np.nan_to_num(radius, nan=0.0, posinf=0.0).max(initial=0.0))
        radii = np.tan(np.linspace(0.0, math.atan(largest), _STEPS))
        scale, _ = self._scale(radii * radii)
        shrinking = np.diff(radii * scale) <= 0.0
        end = radii[np.argmax(shrinking)] if shrinking.any() else np.inf
        return radius <= end

    def _tangential(self) -> tuple[float, float]:
        if not self.coefficients:
            return 0.0, 0.0
        return self.coefficients[2], self.coefficients[3]

    def _scale(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much points are scaled, and its derivative, by their squared radii."""
        if not self.coefficients:
            return np.ones_like(q), np.zeros_like(q)
        k1, k2, _, _, k3, k4, k5, k6 = (*self.coefficients, 0.0, 0.0, 0.0, 0.0)[:8]
        above, below = 1 + q * (k1 + q * (k2 + q * k3)), 1 + q * (k4 + q * (k5 + q * k6))
        d_above, d_below = k1 + q * (2 * k2 + q * 3 * k3), k4 + q * (2 * k5 + q * 3 * k6)
        return above / below, (d_above * below - above * d_below) / below**2

    def _of_angle(self, angle: np.ndarray) -> np.ndarray:
        """Return the radii to which a fisheye sends angles."""
        k1, k2, k3, k4 = self.coefficients
        t = angle * angle
        return angle * (1 + t * (k1 + t * (k2 + t * (k3 + t * k4))))

    def _by_angle(self, angle: np.ndarray) -> np.ndarray:
        """Return the derivative of `_of_angle`."""
        k1, k2, k3, k4 = self.coefficients
        t = angle * angle
        return 1 + t * (3 * k1 + t * (5 * k2 + t * (7 * k3 + t * 9 * k4)))
