"""Digital filters of measured signals."""

from __future__ import annotations

from math import pi, sqrt

import jax.numpy as jnp
from jax import Array


class LowPass:
    """Second-order Butterworth low-pass filter, by the bilinear transform.

    It is in the transposed direct form II: two numbers of memory for each signal.

    Args:
        cutoff: Frequency at which the gain is half of the power [Hz], below half the sampling rate.
        dt: Sampling period [s].
    """

    def __init__(self, cutoff: Array, dt: float) -> None:
        k = jnp.tan(pi * cutoff * dt)
        norm = 1 / (k * k + sqrt(2) * k + 1)
        self._b0, self._b1 = k * k * norm, 2 * k * k * norm
        self._a1 = 2 * (k * k - 1) * norm
        self._a2 = (k * k - sqrt(2) * k + 1) * norm

    def settled(self, signal: Array) -> tuple[Array, Array]:
        """Return the memory after the signal has been constant for long."""
        return (1 - self._b0) * signal, (self._b0 - self._a2) * signal

    def __call__(
        self, signal: Array, memory: tuple[Array, Array]
    ) -> tuple[Array, tuple[Array, Array]]:
        """Return the filtered signal and the new memory."""
        first, second = memory
        filtered = self._b0 * signal + first
        return filtered, (
            self._b1 * signal - self._a1 * filtered + second,
            self._b0 * signal - self._a2 * filtered,
        )
