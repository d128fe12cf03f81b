"""When the rows of a picture are exposed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_MOST = 256  # instants


class Shutter(NamedTuple):
    """A global shutter, or one that exposes the rows one after another.

    The moment of a picture is the middle of the exposure of its middle row.
    """

    exposure: float = 0.0
    """Time for which each row is exposed [s]."""
    readout: float = 0.0
    """Time from the first to the last row [s]."""
    instants: int = 8
    """Moments at which what is seen is computed."""

    @property
    def is_instant(self) -> bool:
        """Whether all is seen at one moment."""
        return self.exposure == 0.0 and self.readout == 0.0

    def check(self) -> None:
        """Check the figures.

        Raises:
            ValueError: A time is negative or infinite, or there are too many instants.
        """
        for name, time in (("exposure", self.exposure), ("readout", self.readout)):
            if not 0.0 <= time < math.inf:
                raise ValueError(f"{name} must be a time in s, not negative, got {time}")
        if not 1 <= self.instants <= _MOST:
            raise ValueError(f"instants must be from 1 to {_MOST}, got {self.instants}")

    def times(self, *, mean: bool) -> np.ndarray:
        """Return the moments, from that of the picture on [s], (S,).

        Args:
            mean: Whether a row is the mean of its exposure; otherwise it shows the middle of it.
        """
        span = self._span(mean)
        if span == 0.0:
            return np.zeros(1)
        return span * ((np.arange(self.instants) + 0.5) / self.instants - 0.5)

    def shares(self, height: int, *, mean: bool) -> np.ndarray:
        """Return the share of each moment in each row, (S, height); each row's sum is 1."""
        span = self._span(mean)
        if span == 0.0:
            return np.ones((1, height))
        middle = self.readout * ((np.arange(height) + 0.5) / height - 0.5)
        cell = span / self.instants
        if not mean or self.exposure == 0.0:
            number = np.floor((middle + span / 2) / cell).astype(int)
            return np.arange(self.instants)[:, None] == number.clip(0, self.instants - 1)
        times, half = self.times(mean=True)[:, None], self.exposure / 2
        begin, end = (
            np.maximum(times - cell / 2, middle - half),
            np.minimum(times + cell / 2, middle + half),
        )
        overlap = np.maximum(end - begin, 0.0)
        return overlap / overlap.sum(axis=0)

    def _span(self, mean: bool) -> float:
        return self.readout + self.exposure * mean
