"""Results of a flight: flown positions compared with the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crazyflow_ros.client.figure_eight.flight_path import FlightPath

ALLOWED_ERROR = 0.02
"""Largest mean distance from the plan in the air [m]."""
LANDED_WITHIN = 0.02  # m, largest difference between final and initial height
GAP = 1.5  # median periods; a longer interval means lost messages
_ROUNDING = 1e-3  # of a period


def find_gaps(times: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of the first message after each gap in increasing `times` (K,)."""
    if len(times) < 2:
        return np.zeros(0, np.intp)
    steps = np.diff(times)
    return np.flatnonzero(steps > GAP * np.median(steps)) + 1


def count_lost(times: NDArray[Any]) -> int:
    """Count the messages missing in the gaps of increasing `times` (K,)."""
    gaps = find_gaps(times)
    if not gaps.size:
        return 0
    steps = np.diff(times)
    return int((np.rint(steps[gaps - 1] / np.median(steps)) - 1).sum())


@dataclass(frozen=True)
class Track:
    """Track of one drone."""

    name: str
    flight: FlightPath
    """Planned path."""
    times: NDArray[np.float64]
    """Times since the start of the flight, s, shape (K,)."""
    pos: NDArray[np.float64]
    """Flown positions in the map frame, m, shape (K, 3)."""

    @cached_property
    def target(self) -> NDArray[np.float64]:
        """Planned positions in the map frame, m, shape (K, 3)."""
        return self.flight(self.times).pos

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """Distance from the plan, m, shape (K,)."""
        return np.linalg.norm(self.pos - self.target, axis=1)

    @cached_property
    def airborne(self) -> NDArray[np.bool_]:
        """Whether the drone was between take-off and touch-down, shape (K,)."""
        begin, end = self.flight.airborne
        return (begin <= self.times) & (self.times <= end)

    @cached_property
    def gaps(self) -> NDArray[np.intp]:
        """Indices of the first poses after lost ones."""
        return find_gaps(self.times)

    @property
    def lost(self) -> int:
        """Number of lost poses; 0 if too few arrived to determine the period."""
        if self.times.size < 2:
            return 0
        period = np.median(np.diff(self.times))
        before = int(self.times[0] / period + _ROUNDING)
        after = int((self.flight.duration - self.times[-1]) / period - _ROUNDING)
        return before + count_lost(self.times) + max(0, after)

    @property
    def mean_error(self) -> float:
        """Mean distance from the plan in the air, m; NaN without poses in the air."""
        return float(self.error[self.airborne].mean()) if self.airborne.any() else np.nan

    @property
    def max_error(self) -> float:
        """Largest distance from the plan in the air, m; NaN without poses in the air."""
        return float(self.error[self.airborne].max()) if self.airborne.any() else np.nan

    def problems(self) -> list[str]:
        """Return descriptions of everything that went wrong."""
        if not self.airborne.any():
            return [f"{self.name}: no pose was received while it should have been in the air"]
        problems = []
        if not self.mean_error < ALLOWED_ERROR:
            problems.append(
                f"{self.name}: mean tracking error {self.mean_error:.3f} m,"
                f" has to be below {ALLOWED_ERROR} m"
            )
        height = self.pos[-1, 2] - self.flight(np.zeros(1)).pos[0, 2]
        if abs(height) > LANDED_WITHIN:
            problems.append(f"{self.name}: ended {height:+.3f} m above where it started")
        return problems


@dataclass(frozen=True)
class FlightRecord:
    """Record of the flight of all drones."""

    tracks: tuple[Track, ...]
    simulated: float
    """Simulated duration, s."""
    elapsed: float
    """Wall-time duration, s."""
    received: int
    """Number of received poses."""
    not_landed: Mapping[str, str] = field(default_factory=dict)
    """States of the drones that have not landed, by name."""

    @property
    def lost(self) -> int:
        """Number of lost poses."""
        return sum(track.lost for track in self.tracks)

    @property
    def factor(self) -> float:
        """Real-time factor: simulated over wall time."""
        return self.simulated / self.elapsed

    def problems(self) -> list[str]:
        """Return descriptions of everything that went wrong; empty after a good flight."""
        problems = [problem for track in self.tracks for problem in track.problems()]
        return problems + [
            f"{name}: it is {state}, has to be landed" for name, state in self.not_landed.items()
        ]

    def summary(self) -> str:
        """Return a table of the drones, with the total durations."""
        width = max(5, *(len(track.name) for track in self.tracks))
        lines = [f"{'drone':<{width}}  mean error  max error  poses   (in the air)"]
        lines += [
            f"{track.name:<{width}}  {track.mean_error:8.3f} m {track.max_error:8.3f} m"
            f"  {np.count_nonzero(track.airborne):5d}"
            for track in self.tracks
        ]
        lines.append(
            f"{self.simulated:.1f} s simulated in {self.elapsed:.1f} s, real-time factor"
            f" {self.factor:.2f}; {self.received} messages received, {self.lost} lost"
        )
        return "\n".join(lines)
