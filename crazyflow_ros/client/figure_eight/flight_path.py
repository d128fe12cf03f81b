"""The path of a flight as functions of time: take-off, figure eight, landing.

Positions are in the map frame in m, times in s from the start of the flight. Velocities and
accelerations are in closed form; position, velocity and acceleration are continuous at all joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""Three numbers: x, y, z in the map frame."""

ALTITUDE = 1.0  # m above the floor, height of the lowest figure eight
SIZE = np.array([0.5, 0.25, 0.1])  # m, half extent of the figure eight; z tilts it along x
LAP = 7.0  # s, about the duration of one round
REST = 0.5  # s on the floor before and after the flight
RISE = 3.0  # s
HOVER = 1.0  # s before and after the figure eight
SINK = 3.5  # s, down to CLEARANCE
CLEARANCE = 0.05  # m above the pad, start of the slow touch-down
TOUCH = 2.5  # s, from there to the pad, where the drone lands
MOST_LAG = np.pi / 3  # rad, largest phase lag between two drones
_OVERHEAD = 2 * (REST + HOVER) + RISE + SINK + TOUCH  # s, everything but the figure eight
SHORTEST = 20.0  # s, enough for one fast round


class PathMotion(NamedTuple):
    """Motion at K times, each array of shape (K, 3) in the map frame."""

    pos: NDArray[np.float64]
    """Position, m."""
    vel: NDArray[np.float64]
    """Velocity, m/s."""
    acc: NDArray[np.float64]
    """Acceleration, m/s^2."""


@dataclass(frozen=True)
class Glide:
    """Minimum-jerk straight line from rest to rest; a hover if both ends coincide.

    T. Flash, N. Hogan, "The coordination of arm movements", J. Neurosci. 1985.
    """

    start: Vector
    goal: Vector
    duration: float

    def __call__(self, times: NDArray[np.float64]) -> PathMotion:
        """Return the motion at times (K,) from the beginning of the line."""
        u = (times / self.duration)[:, None]
        way, rate = self.goal - self.start, 1 / self.duration
        return PathMotion(
            self.start + way * u**3 * (10 - 15 * u + 6 * u**2),
            way * rate * 30 * u**2 * (1 - u) ** 2,
            way * rate**2 * 60 * u * (1 - u) * (1 - 2 * u),
        )


@dataclass(frozen=True)
class FigureEightPath:
    """Lemniscate of Gerono, from rest at its centre to rest at its centre.

    With the phase p the offset from the centre is (a sin p, b sin 2p, c sin p). The rate of the
    phase rises from zero to its cruising value along a cubic, and falls likewise at the end.
    """

    centre: Vector
    size: Vector
    """Half extents a, b, c."""
    laps: int
    duration: float
    ramp: float = 2.0
    """Time for the phase to reach its cruising rate, s."""

    def __call__(self, times: NDArray[np.float64]) -> PathMotion:
        """Return the motion at times (K,) from the beginning of the figure."""
        phase, rate, change = (x[:, None] for x in self._phase(times))
        harmonic = np.array([1, 2, 1])
        sine, cosine = np.sin(harmonic * phase), np.cos(harmonic * phase)
        return PathMotion(
            self.centre + self.size * sine,
            self.size * harmonic * cosine * rate,
            self.size * harmonic * (cosine * change - harmonic * sine * rate**2),
        )

    def _phase(self, times: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return the phase in rad and its first two derivatives."""
        cruise = 2 * np.pi * self.laps / (self.duration - self.ramp)
        to_end = self.duration - times
        u = np.clip(np.minimum(times, to_end) / self.ramp, 0, 1)
        ramped = cruise * self.ramp * (u**3 - u**4 / 2)  # phase since the start, or to the end
        past_ramp = cruise * (times - self.ramp / 2)
        phase = np.where(to_end < self.ramp, 2 * np.pi * self.laps - ramped, past_ramp)
        phase = np.where(times < self.ramp, ramped, phase)
        change = np.where(times < to_end, 1, -1) * cruise / self.ramp * 6 * u * (1 - u)
        return phase, cruise * u**2 * (3 - 2 * u), change


@dataclass(frozen=True)
class FlightPath:
    """A sequence of segments; the drone rests before the first and after the last."""

    segments: tuple[Glide | FigureEightPath, ...]
    airborne: tuple[float, float]
    """Interval in the air, s: from the end of the take-off to just before touch-down."""

    @property
    def duration(self) -> float:
        """Total duration, s."""
        return sum(segment.duration for segment in self.segments)

    def __call__(self, times: NDArray[np.float64]) -> PathMotion:
        """Return the motion at times (K,) from the start of the flight."""
        times = np.clip(times, 0, self.duration)
        motion = PathMotion(*(np.zeros((len(times), 3)) for _ in PathMotion._fields))
        begin = 0.0
        for segment in self.segments:
            end = begin + segment.duration
            now = (begin <= times) & (times <= end)
            for whole, part in zip(motion, segment(times[now] - begin)):
                whole[now] = part
            begin = end
        return motion


def plan_flight(
    pad: Vector, duration: float, lag: float = 0.0, altitude: float = ALTITUDE
) -> FlightPath:
    """Plan a flight that starts and ends on a pad.

    Args:
        pad: Position of the drone on the floor, m, shape (3,).
        duration: Duration of the whole flight, s, at least `SHORTEST`.
        lag: Phase lag of the figure eight behind that of a drone with lag 0, rad, up to `MOST_LAG`.
            The latter waits at the end, so that all drones land together.
        altitude: Height of the figure eight above the floor, m.

    Raises:
        ValueError: `duration` or `lag` is out of range.
    """
    if not duration >= SHORTEST:
        raise ValueError(f"a flight lasts at least {SHORTEST:g} s, got {duration:g}")
    if not 0 <= lag <= MOST_LAG:
        raise ValueError(f"lag must be between 0 and {MOST_LAG:.2f} rad, got {lag:g}")
    above, low = (np.array([*pad[:2], z]) for z in (altitude, pad[2] + CLEARANCE))
    # Time for the figure eight and the longest wait, a fraction of a lap.
    cruise, most_wait = duration - _OVERHEAD - FigureEightPath.ramp, MOST_LAG / (2 * np.pi)
    laps = max(1, round(cruise / LAP - most_wait))
    lap = cruise / (laps + most_wait)
    wait, rest_of_wait = lap * lag / (2 * np.pi), lap * (MOST_LAG - lag) / (2 * np.pi)
    return FlightPath(
        (
            Glide(pad, pad, REST),
            Glide(pad, above, RISE),
            Glide(above, above, HOVER + wait),
            FigureEightPath(above, SIZE, laps, laps * lap + FigureEightPath.ramp),
            Glide(above, above, HOVER + rest_of_wait),
            Glide(above, low, SINK),
            Glide(low, pad, TOUCH),
            Glide(pad, pad, REST),
        ),
        airborne=(REST + RISE, duration - TOUCH - REST),
    )
