"""What a flight was like: where the drones were against where they should have been."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crazyflow_ros.demo.trajectory import Flight

ALLOWED_ERROR = 0.1  # m, mean over a drone's time in the air
LANDED_WITHIN = 0.02  # m of the height it started from, where the drone has to be in the end


@dataclass(frozen=True)
class Track:
    """Flight of one drone."""

    name: str
    flight: Flight
    """Where it should have been."""
    times: NDArray[np.float64]
    """(K,) s since the start of the flight."""
    pos: NDArray[np.float64]
    """(K, 3) where it was, map frame, m."""

    @cached_property
    def target(self) -> NDArray[np.float64]:
        """(K, 3) where it should have been, map frame, m."""
        return self.flight(self.times).pos

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """(K,) distance from the target, m."""
        return np.linalg.norm(self.pos - self.target, axis=1)

    @cached_property
    def airborne(self) -> NDArray[np.bool_]:
        """(K,) bool: after the take-off, before touching the floor."""
        begin, end = self.flight.airborne
        return (begin <= self.times) & (self.times <= end)

    @property
    def mean_error(self) -> float:
        """Mean distance from the target in the air, m; NaN if it was never seen there."""
        return float(self.error[self.airborne].mean()) if self.airborne.any() else np.nan

    @property
    def max_error(self) -> float:
        """Largest distance from the target in the air, m; NaN if it was never seen there."""
        return float(self.error[self.airborne].max()) if self.airborne.any() else np.nan

    def problems(self) -> list[str]:
        """What went wrong, in words."""
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
class Record:
    """Flight of all drones."""

    tracks: tuple[Track, ...]
    simulated: float
    """s from start to end."""
    elapsed: float
    """s of wall time for it."""
    received: int
    """Poses that arrived."""

    @property
    def factor(self) -> float:
        """Simulated over wall time."""
        return self.simulated / self.elapsed

    def problems(self) -> list[str]:
        """What went wrong, in words; empty if the flight was good."""
        return [problem for track in self.tracks for problem in track.problems()]

    def summary(self) -> str:
        """A table of the drones, and what the whole took."""
        width = max(5, *(len(track.name) for track in self.tracks))
        lines = [f"{'drone':<{width}}  mean error  max error  poses   (in the air)"]
        lines += [
            f"{track.name:<{width}}  {track.mean_error:8.3f} m {track.max_error:8.3f} m"
            f"  {np.count_nonzero(track.airborne):5d}"
            for track in self.tracks
        ]
        lines.append(
            f"{self.simulated:.1f} s simulated in {self.elapsed:.1f} s, real-time factor"
            f" {self.factor:.2f}; {self.received} messages received"
        )
        return "\n".join(lines)
