"""What a drone is told to do: setpoints as functions of simulation time.

A setpoint is checked when it is made and bound when it takes effect, with what the drone was told
before. The bound setpoint gives the command of any later instant, so that a flight does not depend
on when it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import cos, inf, isfinite, sin

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.sim.functional import check_command

_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Start:
    """What a drone was told, or where it was, when a setpoint took effect."""

    time_ns: int
    pos: np.ndarray
    """(3,) m, world frame."""
    yaw: float
    """rad."""


class Setpoint(ABC):
    """Something that a drone can be told."""

    @abstractmethod
    def check(self, control: Control) -> None:
        """Raise ValueError if drones in this control mode cannot follow."""

    @abstractmethod
    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """The command at a time, in the form of the control mode."""

    def settled(self, start: Start) -> float:
        """The simulation time from which on the command is always the same [ns]."""
        return start.time_ns


def _vector(name: str, value: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    array = np.array(value, float)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {shape} finite numbers, got {array.tolist()}")
    return array


def _number(name: str, value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)


def _state_command(
    pos: Iterable[float],
    yaw: float,
    vel: Iterable[float] = _ZERO,
    acc: Iterable[float] = _ZERO,
    yaw_rate: float = 0.0,
) -> np.ndarray:
    half = yaw / 2
    return np.array([*pos, *vel, *acc, 0.0, 0.0, sin(half), cos(half), 0.0, 0.0, yaw_rate])


class StateSetpoint(Setpoint):
    """A setpoint of the position controller."""

    def check(self, control: Control) -> None:
        """Needs state control."""
        if control is not Control.state:
            kind = type(self).__name__.lower()
            raise ValueError(f"a {kind} setpoint needs control=state, the drones have {control}")


@dataclass(frozen=True)
class Pose(StateSetpoint):
    """Hold a position and heading."""

    pos: ArrayLike
    """(3,) m, world frame."""
    yaw: float
    """rad."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos", _vector("position", self.pos, (3,)))
        object.__setattr__(self, "yaw", _number("yaw", self.yaw))

    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """The same at any time."""
        return _state_command(np.asarray(self.pos).tolist(), self.yaw)


@dataclass(frozen=True)
class Velocity(StateSetpoint):
    """Move at a velocity and turn at a rate, from where the drone was told to be."""

    vel: ArrayLike
    """(3,) m/s in the heading frame: x ahead, y left, z up. Turns with the heading."""
    yaw_rate: float
    """rad/s."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "vel", _vector("velocity", self.vel, (3,)))
        object.__setattr__(self, "yaw_rate", _number("yaw rate", self.yaw_rate))

    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """A point that runs along a circle, or along a line without a yaw rate."""
        # In plain numbers: a control period of a swarm has one of these for each drone.
        vx, vy, vz = np.asarray(self.vel).tolist()
        x, y, z = start.pos.tolist()
        rate, t = self.yaw_rate, (time_ns - start.time_ns) * 1e-9
        half = rate * t / 2
        # Integrals of cos and sin over the turn.
        chord = t * sin(half) / half if half else t
        ahead, left = cos(start.yaw + half) * chord, sin(start.yaw + half) * chord
        pos = (x + vx * ahead - vy * left, y + vx * left + vy * ahead, z + vz * t)
        yaw = start.yaw + 2 * half
        c, s = cos(yaw), sin(yaw)
        vel = (vx * c - vy * s, vx * s + vy * c, vz)
        return _state_command(pos, yaw, vel, (-rate * vel[1], rate * vel[0], 0.0), rate)

    def settled(self, start: Start) -> float:
        """Never, but for a drone that shall stay where it is."""
        return inf if np.any(self.vel) or self.yaw_rate else start.time_ns


@dataclass(frozen=True)
class Trajectory(StateSetpoint):
    """Pass points at given times, with matching velocities and accelerations; hold the last one.

    Between two points position and yaw are polynomials of fifth order.
    """

    times_ns: ArrayLike
    """(K,) ns from the trajectory's start, rising. Before the first one the drone moves there."""
    pos: ArrayLike
    """(K, 3) m, world frame."""
    yaw: ArrayLike
    """(K,) rad."""
    vel: ArrayLike
    """(K, 3) m/s, world frame."""
    acc: ArrayLike
    """(K, 3) m/s^2, world frame."""
    start_ns: int | None = None
    """Simulation time of the trajectory's start; None: when it takes effect."""
    _points: np.ndarray = field(init=False, repr=False)
    _pieces: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times = np.array(self.times_ns, dtype=np.int64)
        n = times.size
        if times.ndim != 1 or n == 0 or times[0] < 0 or (np.diff(times) <= 0).any():
            raise ValueError(f"times must rise strictly from 0 or later, got {times.tolist()}")
        pos, yaw = _vector("positions", self.pos, (n, 3)), _vector("yaws", self.yaw, (n,))
        vel = _vector("velocities", self.vel, (n, 3))
        acc = _vector("accelerations", self.acc, (n, 3))
        yaw = np.unwrap(yaw)
        rate = np.gradient(yaw, times * 1e-9) if n > 1 else np.zeros(1)
        points = np.stack(
            [np.column_stack(p) for p in ((pos, yaw), (vel, rate), (acc, np.zeros(n)))], axis=1
        )
        object.__setattr__(self, "times_ns", times)
        object.__setattr__(self, "_points", points)  # (K, derivative 0..2, x y z yaw)
        pieces = _quintic(points[:-1], points[1:], np.diff(times) * 1e-9)
        object.__setattr__(self, "_pieces", pieces)  # (K - 1, power 0..5, x y z yaw)

    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """The point of the polynomial that the time falls into."""
        times, t = np.asarray(self.times_ns), time_ns - self._begin(start)
        k = int(np.searchsorted(times, t, side="right"))
        if k == len(times):
            *pos, yaw = self._points[-1, 0].tolist()
            return _state_command(pos, yaw)
        if k == 0:
            origin = 0 if self.start_ns is None else min(0, start.time_ns - self.start_ns)
            turn = np.round((self._points[0, 0, 3] - start.yaw) / (2 * np.pi)) * 2 * np.pi
            before = np.zeros((3, 4))
            before[0] = (*start.pos, start.yaw + turn)
            piece = _quintic(before, self._points[0], (int(times[0]) - origin) * 1e-9)
        else:
            origin, piece = int(times[k - 1]), self._pieces[k - 1]
        (*pos, yaw), (*vel, yaw_rate), (*acc, _) = _derivatives(piece, (t - origin) * 1e-9)
        return _state_command(pos, yaw, vel, acc, yaw_rate)

    def settled(self, start: Start) -> float:
        """At the last point."""
        return self._begin(start) + int(np.asarray(self.times_ns)[-1])

    def _begin(self, start: Start) -> int:
        return start.time_ns if self.start_ns is None else self.start_ns


def _quintic(before: np.ndarray, after: np.ndarray, duration: ArrayLike) -> np.ndarray:
    """Polynomials of fifth order between two points.

    Args:
        before: (..., 3, k) value, first and second derivative at time 0.
        after: (..., 3, k) the same at time `duration`.
        duration: (...) s.

    Returns:
        (..., 6, k) coefficients of rising powers of time.
    """
    scale = np.power.outer(np.asarray(duration, float), np.arange(6))[..., None]
    p0, v0, a0 = np.moveaxis(before * scale[..., :3, :], -2, 0)
    p1, v1, a1 = np.moveaxis(after * scale[..., :3, :], -2, 0)
    jump = p1 - p0
    c3 = 10 * jump - 6 * v0 - 4 * v1 - (3 * a0 - a1) / 2
    c4 = -15 * jump + 8 * v0 + 7 * v1 + (3 * a0 - 2 * a1) / 2
    c5 = 6 * jump - 3 * (v0 + v1) - (a0 - a1) / 2
    return np.stack([p0, v0, a0 / 2, c3, c4, c5], axis=-2) / scale


def _derivatives(piece: np.ndarray, t: float) -> list[list[float]]:
    """Value, first and second derivative of polynomials (6, k) at a time."""
    powers = (
        (1, t, t**2, t**3, t**4, t**5),
        (0, 1, 2 * t, 3 * t**2, 4 * t**3, 5 * t**4),
        (0, 0, 2, 6 * t, 12 * t**2, 20 * t**3),
    )
    return (np.array(powers) @ piece).tolist()


@dataclass(frozen=True)
class Raw(Setpoint):
    """A command of the active control mode, as `Sim` takes it."""

    values: ArrayLike
    """Numbers as in `Control`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.array(self.values, float))

    def check(self, control: Control) -> None:
        """The numbers must make sense in the control mode."""
        check_command(control, np.asarray(self.values))

    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """The same at any time."""
        values = np.asarray(self.values)
        if values.size != 13:
            return values
        return _state_command(values[:3], values[9], values[3:6], values[6:9]) + np.pad(
            values[10:], (13, 0)
        )
