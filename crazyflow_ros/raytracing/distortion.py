"""Distortion of lenses, with the models and coefficients of OpenCV and `sensor_msgs/CameraInfo`.

Points are on a plane at a depth of 1 m, x to the right and y downwards, as in an optical frame.
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
_STEPS = 512  # radii at which a lens is checked


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
        if self.model == "equidistant":
            u, v = self._unrolled(x, y)
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

    def _unrolled(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return points of "equidistant" by their angles, for a start."""
        end = np.hypot(x, y)
        angles = np.linspace(0.0, math.pi / 2 - 1e-3, _STEPS)
        sent = self._of_angle(angles)
        rising = np.maximum.accumulate(sent)
        radius = np.tan(np.interp(end, rising, angles, right=np.nan))
        scale = np.divide(radius, end, where=end > 0, out=np.ones_like(end))
        return x * scale, y * scale

    def _is_before_fold(self, radius: np.ndarray) -> np.ndarray:
        """Return whether the image grows outwards up to radii."""
        largest = float(np.nan_to_num(radius, nan=0.0, posinf=0.0).max(initial=0.0))
        radii = np.tan(np.linspace(0.0, math.atan(largest), _STEPS))
        scale, _ = self._scale(radii * radii)
        shrinking = np.diff(radii * scale) <= 0.0
        end = radii[np.argmax(shrinking)] if shrinking.any() else np.inf
        return radius <= end

    def _tangential(self) -> tuple[float, float]:
        if self.model == "equidistant" or not self.coefficients:
            return 0.0, 0.0
        return self.coefficients[2], self.coefficients[3]

    def _scale(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much points are scaled, and its derivative, by their squared radii."""
        if not self.coefficients:
            return np.ones_like(q), np.zeros_like(q)
        if self.model == "equidistant":
            return self._angular_scale(q)
        k1, k2, _, _, k3, k4, k5, k6 = (*self.coefficients, 0.0, 0.0, 0.0, 0.0)[:8]
        above, below = 1 + q * (k1 + q * (k2 + q * k3)), 1 + q * (k4 + q * (k5 + q * k6))
        d_above, d_below = k1 + q * (2 * k2 + q * 3 * k3), k4 + q * (2 * k5 + q * 3 * k6)
        return above / below, (d_above * below - above * d_below) / below**2

    def _angular_scale(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k1, k2, k3, k4 = self.coefficients
        near = q < 1e-8  # where the first terms of the series are exact
        radius = np.sqrt(np.where(near, 1.0, q))
        angle = np.arctan(radius)
        sent = self._of_angle(angle)
        t = angle * angle
        slope = 1 + t * (3 * k1 + t * (5 * k2 + t * (7 * k3 + t * 9 * k4)))
        change = (slope / (1 + radius**2) * radius - sent) / (2 * radius**3)
        return (
            np.where(near, 1 + (k1 - 1 / 3) * q, sent / radius),
            np.where(near, k1 - 1 / 3, change),
        )

    def _of_angle(self, angle: np.ndarray) -> np.ndarray:
        k1, k2, k3, k4 = self.coefficients
        t = angle * angle
        return angle * (1 + t * (k1 + t * (k2 + t * (k3 + t * k4))))
