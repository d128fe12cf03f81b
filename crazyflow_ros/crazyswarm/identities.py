"""Which drone a motion capture system takes each body for: it may confuse two that come close."""

from __future__ import annotations

import numpy as np


class Identities:
    """Exchanges the names of two bodies in half of the cases in which they come near.

    They keep the wrong names until they come near again, as with a tracker of equal markers that
    continues from where it saw them last.

    Args:
        n: Number of bodies.
        distance: How near, m; 0: never.
        seed: Seed of the chance.

    Attributes:
        numbers: (n,) number of the drone for which each body is taken.
    """

    def __init__(self, n: int, distance: float, seed: int) -> None:
        self._distance, self._random = distance, np.random.default_rng(seed)
        self.numbers = np.arange(n)
        self._near = np.zeros((n, n), bool)

    def see(self, pos: np.ndarray) -> np.ndarray:
        """Return `numbers` after a sample of positions (n, 3) [m], NaN where a body is not seen."""
        gaps = np.linalg.norm(pos[:, None] - pos, axis=-1)
        near = np.triu(gaps < self._distance, 1)  # not so where NaN
        for pair in np.argwhere(near & ~self._near).tolist():
            if self._random.random() < 0.5:
                self.numbers[pair] = self.numbers[pair[::-1]]
        self._near = near
        return self.numbers
