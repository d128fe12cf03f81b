"""How a camera takes a picture: when its rows are exposed, and what its chip makes of the light."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

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


class Chip(NamedTuple):
    """Noise, gain and gamma, in the model of EMVA 1288 without dark current.

    A pixel that is as bright as can be without gain collects `full_well` electrons. Their number
    has the variance of a Poisson distribution, here of a normal one, which it is almost from 20
    electrons on; reading adds normal noise. Black has no offset: what is negative is black.
    """

    gain: float = 1.0
    """Factor of all brightness, noise included."""
    gamma: float = 1.0
    """Brightness is raised to the power 1 / gamma."""
    full_well: float = 0.0
    """Electrons of a brightness of 1; 0: no noise."""
    read_noise: float = 0.0
    """Standard deviation of reading [electrons]."""

    @property
    def is_noisy(self) -> bool:
        """Whether pictures need random numbers."""
        return self.full_well > 0.0

    def check(self) -> None:
        """Check the figures.

        Raises:
            ValueError: One is out of range.
        """
        for name in ("gain", "gamma"):
            if not 0.0 < (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} must be positive, got {value}")
        for name in ("full_well", "read_noise"):
            if not 0.0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} must be electrons, not negative, got {value}")
        if self.read_noise and not self.full_well:
            raise ValueError(f"read_noise {self.read_noise:g} needs a full_well, got 0")

    def develop(self, colors: Array, keys: Array | None) -> Array:
        """Return colors as they are read.

        Args:
            colors: From 0 to 1, (N, height, width, 3).
            keys: Random keys of the pictures, (N,); only needed for noise.
        """
        if self.is_noisy:
            normal = jax.vmap(lambda key: jax.random.normal(key, colors.shape[1:]))(keys)
            electrons = self.full_well * colors
            electrons += jnp.sqrt(electrons + self.read_noise**2) * normal
            colors = electrons / self.full_well
        if self.is_noisy or self.gain != 1.0:
            colors = jnp.clip(self.gain * colors, 0.0, 1.0)
        return colors if self.gamma == 1.0 else colors ** (1.0 / self.gamma)
