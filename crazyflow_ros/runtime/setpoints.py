"""What a drone is told to do: setpoints as functions of simulation time.

A setpoint is checked when it is made and bound when it takes effect, with what the drone was told
before. The bound setpoint gives the command of any later instant, so that a flight does not depend
on when it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, field
from math import cos, isfinite, sin

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.sim.functional import check_command


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

    moves = False
    """The command changes with time."""

    @abstractmethod
    def check(self, control: Control) -> None:
        """Raise ValueError if drones in this control mode cannot follow."""

    @abstractmethod
    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """The command at a time, in the form of the control mode."""


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
    pos: ArrayLike, yaw: float, vel: ArrayLike = 0.0, acc: ArrayLike = 0.0, yaw_rate: float = 0.0
) -> np.ndarray:
    command = np.zeros(16)
    command[0:3], command[3:6], command[6:9] = pos, vel, acc
    command[11], command[12], command[15] = sin(yaw / 2), cos(yaw / 2), yaw_rate
    return command


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
        return _state_command(self.pos, self.yaw)


@dataclass(frozen=True)
class Velocity(StateSetpoint):
    """Move at a velocity and turn at a rate, from where the drone was told to be."""

    vel: ArrayLike
    """(3,) m/s in the heading frame: x ahead, y left, z up. Turns with the heading."""
    yaw_rate: float
    """rad/s."""
    moves = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "vel", _vector("velocity", self.vel, (3,)))
        object.__setattr__(self, "yaw_rate", _number("yaw rate", self.yaw_rate))

    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """A point that runs along a circle, or along a line without a yaw rate."""
        vx, vy, vz = np.asarray(self.vel)
        rate, t = self.yaw_rate, (time_ns - start.time_ns) * 1e-9
        turn = rate * t
        # Integrals of cos and sin over the turn, which np.sinc keeps exact through rate = 0.
        chord = t * np.sinc(turn / (2 * np.pi))
        middle, yaw = start.yaw + turn / 2, start.yaw + turn
        forward = np.array([cos(middle), sin(middle), 0.0]) * chord
        pos = start.pos + vx * forward + vy * np.array([-forward[1], forward[0], 0.0])
        pos[2] += vz * t
        vel = np.array([vx * cos(yaw) - vy * sin(yaw), vx * sin(yaw) + vy * cos(yaw), vz])
        acc = np.array([-rate * vel[1], rate * vel[0], 0.0])
        return _state_command(pos, yaw, vel, acc, rate)


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
    moves = True
    _points: np.ndarray = field(init=False, repr=False)

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

    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """The point of the polynomial that the time falls into."""
        times = np.asarray(self.times_ns)
        t = time_ns - (start.time_ns if self.start_ns is None else self.start_ns)
        k = bisect_right(times, t)
        if k == len(times):
            x, y, z, yaw = self._points[-1, 0]
            return _state_command((x, y, z), yaw)
        if k == 0:
            origin = 0 if self.start_ns is None else min(0, start.time_ns - self.start_ns)
            turn = np.round((self._points[0, 0, 3] - start.yaw) / (2 * np.pi)) * 2 * np.pi
            before = np.zeros((3, 4))
            before[0] = (*start.pos, start.yaw + turn)
        else:
            origin, before = int(times[k - 1]), self._points[k - 1]
        duration = (int(times[k]) - origin) * 1e-9
        p, v, a = _quintic(before, self._points[k], duration, (t - origin) * 1e-9)
        return _state_command(p[:3], p[3], v[:3], a[:3], v[3])


def _quintic(
    before: np.ndarray, after: np.ndarray, duration: float, t: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, first and second derivative of the polynomial between two points.

    Args:
        before: (3, k) value and derivatives at time 0.
        after: (3, k) value and derivatives at time `duration`.
        duration: s.
        t: s.
    """
    scale = np.array([1, duration, duration**2])[:, None]
    (p0, v0, a0), (p1, v1, a1) = before * scale, after * scale
    jump = p1 - p0
    c3 = 10 * jump - 6 * v0 - 4 * v1 - (3 * a0 - a1) / 2
    c4 = -15 * jump + 8 * v0 + 7 * v1 + (3 * a0 - 2 * a1) / 2
    c5 = 6 * jump - 3 * (v0 + v1) - (a0 - a1) / 2
    s = t / duration
    value = p0 + s * (v0 + s * (a0 / 2 + s * (c3 + s * (c4 + s * c5))))
    first = v0 + s * (a0 + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)))
    second = a0 + s * (6 * c3 + s * (12 * c4 + s * 20 * c5))
    return value, first / duration, second / duration**2


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
