"""What a camera's chip makes of light."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


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
