"""Disturbances of a running simulation: wind, failing motors, discharged batteries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import convert, entries
from crazyflow_ros.drones.rotors import MOST
from crazyflow_ros.sim.wind import ALTITUDES, Dryden


@dataclass(frozen=True)
class Wind:
    """Mean wind, and gusts of the Dryden model, see `sim.Dryden`.

    Raises:
        ValueError: A number is not finite, or out of range.
    """

    mean: Sequence[float] = (0.0, 0.0, 0.0)
    """x, y, z in the map frame, m/s."""
    gust_intensity: float = 0.0
    """Standard deviation of the vertical gusts, m/s."""
    gust_altitude: float = Dryden.altitude
    """Height above ground, which determines the length of gusts, m."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", check_wind("wind", self.mean))
        intensity = limits.number("gust_intensity", self.gust_intensity, limits.GUST)
        if intensity < 0:
            raise ValueError(f"gust_intensity must be 0 m/s or more, got {intensity:g}")
        low, high = ALTITUDES
        if not low <= self.gust_altitude <= high:
            expected = f"from {low:g} to {high:g} m"
            raise ValueError(f"gust_altitude must be {expected}, got {self.gust_altitude}")

    @property
    def is_calm(self) -> bool:
        """Whether there is no wind."""
        return not any(self.mean) and not self.gust_intensity

    def numbers(self, dt: float) -> np.ndarray:
        """Return `Dryden.numbers`."""
        x, y, z = self.mean
        return Dryden((x, y, z), self.gust_altitude, self.gust_intensity).numbers(dt)


@dataclass(frozen=True)
class MotorEfficiency:
    """Efficiency of a motor, until the drone is reset.

    Raises:
        ValueError: No drone has the motor, or the efficiency is out of range.
    """

    drone: str
    motor: int
    """From 0; of quadrotors front right, rear right, rear left, front left."""
    efficiency: float
    """Share of the thrust: 1 for an intact motor, 0 for a stopped one. The rotor turns at the
    square root of this share of the commanded speed."""

    def __post_init__(self) -> None:
        check_motor(self.motor, MOST)
        _share("efficiency", self.efficiency)


@dataclass(frozen=True)
class BatteryCharge:
    """Replaces a drone's battery by one with a given charge.

    Raises:
        ValueError: The charge is out of range.
    """

    drone: str
    charge: float
    """Share of the capacity, 0 to 1."""

    def __post_init__(self) -> None:
        _share("charge", self.charge)


def check_motor(motor: object, n_motors: int) -> None:
    """Raise ValueError unless it is one of the motors of a drone."""
    if type(motor) is not int or motor not in range(n_motors):
        raise ValueError(f"motor must be one of 0 to {n_motors - 1}, got {shown(motor)}")


Disturbance: TypeAlias = Wind | MotorEfficiency | BatteryCharge

_KINDS = {kind.__name__: kind for kind in (Wind, MotorEfficiency, BatteryCharge)}


def from_disturbance(disturbance: Disturbance) -> dict[str, Any]:
    """Convert a disturbance to values for JSON."""
    return {"kind": type(disturbance).__name__} | asdict(disturbance)


def to_disturbance(values: Any) -> Disturbance:
    """Convert values from JSON to a disturbance; the inverse of `from_disturbance`.

    Raises:
        ValueError: The values do not describe a disturbance.
    """
    kind = _KINDS.get(str(values.get("kind"))) if isinstance(values, Mapping) else None
    if kind is None:
        raise ValueError(f"a disturbance is one of {', '.join(_KINDS)}, got {shown(values)}")
    arguments = entries(f"a {kind.__name__}", values, kind, "kind")
    del arguments["kind"]
    disturbance: Disturbance = convert(arguments, kind, kind.__name__)
    return disturbance


def check_wind(name: str, mean: Sequence[float]) -> tuple[float, float, float]:
    """Return a mean wind if drones may fly in it.

    Args:
        name: Its name in messages.
        mean: x, y, z, m/s.

    Raises:
        ValueError: The wind is not three finite numbers, or is too strong.
    """
    x, y, z = limits.vector(name, mean, (3,), limits.WIND).tolist()
    limits.number(f"{name} speed", float(np.linalg.norm((x, y, z))), limits.WIND)
    return x, y, z


def _share(name: str, value: Any) -> None:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {shown(value)}")
