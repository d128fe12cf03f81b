"""Errors of the instruments of a Crazyflie and its decks, from data sheets and the firmware."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

PerAxis: TypeAlias = float | tuple[float, ...]
"""One number for all axes, or one for each."""

_MOST = 1e9  # of errors, so that no variance overflows


@dataclass(frozen=True, kw_only=True)
class NoiseCfg:
    """Errors of a quantity with unit u: scale and bias, then white noise, then saturation.

    Raises:
        ValueError: A value is negative, or too large where it is not a limit.
    """

    density: PerAxis = 0.0
    """White noise [u/√Hz]: over a sampling period dt its standard deviation is density / √dt."""
    std: PerAxis = 0.0
    """White noise whose standard deviation [u] is the same at any rate."""
    bias: PerAxis = 0.0
    """Standard deviation [u] of a constant offset, drawn at each reset."""
    random_walk: PerAxis = 0.0
    """Growth of the offset [u/√s]: after a time t its standard deviation is random_walk * √t."""
    scale: PerAxis = 0.0
    """Standard deviation of the relative error of scale, drawn at each reset."""
    saturation: float = math.inf
    """Largest absolute value of a reading [u]."""
    growth: PerAxis = 0.0
    """How the white noise grows with the value v [1/u]: by the factor 1 + exp(growth * (v -
    growth_from)); 0 if it does not."""
    growth_from: PerAxis = 0.0
    """Value at which it has doubled [u]."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            most = math.inf if field.name == "saturation" else _MOST
            if not (np.min(value) >= 0.0 and np.max(value) <= most):
                rule = f"must be from 0 to {most:g}"
                raise ValueError(f"noise: {field.name} {rule}, got {value}")

    def check(self, name: str, n_axes: int) -> None:
        """Raise a ValueError that begins with `name` if a value does not fit `n_axes` axes."""
        for field in fields(self):
            value = getattr(self, field.name)
            if np.size(value) not in (1, n_axes):
                numbers = f"one number or {n_axes}" if n_axes > 1 else "one number"
                raise ValueError(f"{name}: {field.name} must be {numbers}, got {value}")

    def variance(self, dt: float, n_axes: int) -> np.ndarray:
        """Return the variance of the white noise at a sampling period [s], (n_axes,), in u²."""
        white = np.square(self.std) + np.square(self.density) / dt
        return np.broadcast_to(white, n_axes).astype(float)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return by which factor white noise is larger at values [u] than `variance` says."""
        grown = np.exp(np.multiply(self.growth, np.subtract(values, self.growth_from)))
        return np.where(np.asarray(self.growth) > 0, 1 + grown, 1.0)


_G = 9.80665  # m/s^2
_DEGREE = math.radians(1.0)

# Datasheet BST-BMI088-DS000, revision 1.9: tables 4 (accelerometer) and 5 (gyroscope). It
# gives neither a random walk nor a bias instability, so there is none by default.
BMI088_GYRO = NoiseCfg(
    density=0.014 * _DEGREE,
    bias=1.0 * _DEGREE,
    scale=0.01,
    saturation=2000 * _DEGREE,
)
"""Noise of the BMI088's gyroscope [rad/s]: 0.014 °/s/√Hz; zero-rate offset ±1 °/s and sensitivity
tolerance ±1 % are taken as standard deviations. Range as the Crazyflie's firmware sets it."""
BMI088_ACCELEROMETER = NoiseCfg(density=230e-6 * _G, bias=20e-3 * _G, saturation=24 * _G)
"""Noise of the BMI088's accelerometer [m/s^2] in its range of ±24 g, which the Crazyflie's firmware
sets: 230 µg/√Hz (160, on z 190, only at ±3 g); the zero-g offset of 20 mg is taken as a standard
deviation."""

_APERTURE, _PIXELS = 0.71674, 35.0  # rad, pixels across
PMW3901_PERIOD = 0.01
"""Time between two readings of the Flow deck's sensor [s]."""
PMW3901 = NoiseCfg(std=0.2 / _PIXELS * _APERTURE / PMW3901_PERIOD, saturation=7.4)
"""Noise of the Flow deck's sensor [rad/s] at its 100 Hz: 0.2 pixels per reading, as the Crazyflie's
firmware assumes (`flowdeck_v1v2.c`, `mm_flow.c`). Its datasheet states a range of up to
7.4 rad/s."""
PMW3901_MIN_RANGE = 0.08
"""Shortest distance at which the PMW3901 sees the ground sharply [m], from its datasheet."""

VL53L1X = NoiseCfg(std=0.0025, bias=0.01, growth=math.log(0.2 / 0.0025) / 1.5, growth_from=2.5)
"""Noise of the decks' sensor [m]: repeatability as the Crazyflie's firmware assumes it
(`zranger2.c`), 2.5 mm up to 1 m, 5 mm at 2.5 m, 13 mm at 3 m, 20 cm at 4 m; the typical ranging
error in the dark, ±20 mm (ST's user manual of the STEBCN2V1, page 21), is taken as two standard
deviations of an offset."""
VL53L1X_MIN_RANGE, VL53L1X_MAX_RANGE = 0.04, 4.0
"""Shortest range, from that manual, and longest range, from the datasheet, in the dark [m]."""
VL53L1X_FIELD_OF_VIEW = 0.471
"""Full angle [rad], 27 degrees: datasheet DocID031281, revision 3, page 1, for the whole array of
16 x 16 detectors. The firmware leaves its region of interest as it is (`vl53l1x.c`)."""
MULTI_RANGER: tuple[tuple[float, float, float], ...] = (
    (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0),
)  # fmt: skip
"""Directions of the sensors of the Multi-ranger deck in body axes: front, back, left, right, up."""

DWM1000 = NoiseCfg(std=0.1)
"""Noise of the distance from the Loco deck's radio to an anchor [m]: 10 cm by its data sheet."""


def flow_rates(vel: Any, turn: Any, distance: Any) -> tuple[Any, Any]:
    """Return how fast the ground moves through the view of a camera that looks down, rad/s.

    Args:
        vel: Velocity of the camera along its x and y axes [m/s]; further components are ignored.
        turn: Angular velocity of the camera about these axes [rad/s], likewise.
        distance: Distance from the ground along the optical axis [m].

    Returns:
        Rates along x and y, positive if the camera moves along these axes over the ground.
    """
    return vel[0] / distance - turn[1], vel[1] / distance + turn[0]
