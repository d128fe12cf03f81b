"""Digital filters of measured signals."""

from __future__ import annotations

from math import pi, sqrt, tan

import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import split

Pair = tuple[Array, Array]


class LowPass:
    """Second-order Butterworth low-pass filter, by the bilinear transform.

    In its transposed direct form II, the memory is two numbers for each signal.

    Args:
        coefficients: (..., 4) result of `coefficients`.
    """

    def __init__(self, coefficients: Array) -> None:
        self._b0, self._b1, self._a1, self._a2 = split(coefficients)

    @staticmethod
    def coefficients(cutoff: float, freq: float) -> np.ndarray:
        """Return the coefficients, (4,).

        Args:
            cutoff: Frequency at which half of the power passes [Hz], below half of `freq`.
            freq: Sampling rate [Hz].

        Raises:
            ValueError: The cutoff is too high.
        """
        if cutoff >= freq / 2:
            raise ValueError(f"cutoff must be below half of {freq:g} Hz, got {cutoff:g} Hz")
        k = tan(pi * cutoff / freq)
        norm = 1 + sqrt(2) * k + k * k
        return np.array([k * k, 2 * k * k, 2 * (k * k - 1), 1 - sqrt(2) * k + k * k]) / norm

    def settled(self, signal: Array) -> Pair:
        """Return the memory after the signal has been constant for a long time."""
        return (1 - self._b0) * signal, (self._b0 - self._a2) * signal

    def __call__(self, signal: Array, memory: Pair) -> tuple[Array, Pair]:
        """Return the filtered signal and the new memory."""
        first, second = memory
        filtered = self._b0 * signal + first
        return filtered, (
            self._b1 * signal - self._a1 * filtered + second,
            self._b0 * signal - self._a2 * filtered,
        )
