"""Errors of real sensors, reproducible: the same seed gives the same readings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.sensors.sensor import WorldIds

EXACT = NoiseCfg()
"""No errors."""

_DRAWN_AT_ONCE = 32  # samples: a call of the generator takes longer than a few more numbers
_SKIPPED_AT_ONCE = 4096  # samples


class Noise:
    """Errors in B worlds, each with its own random numbers.

    A reset draws new biases and scales, and continues with other random numbers than before: they
    depend on the seed, the world and how often it has been reset.

    Args:
        cfg: The errors.
        n_worlds: B.
        n_axes: Components of a reading.
        seed: Distinguishes this noise from others.
        keys: Distinguish the worlds from each other; by default their numbers.
    """

    def __init__(
        self,
        cfg: NoiseCfg,
        n_worlds: int,
        n_axes: int,
        seed: Sequence[int],
        keys: Sequence[Sequence[int]] | None = None,
    ) -> None:
        cfg.check("noise", n_axes)
        self.cfg = cfg
        self._seed = tuple(seed)
        self._keys = [(world,) for world in range(n_worlds)] if keys is None else keys
        self._axes = n_axes
        self._resets = np.full(n_worlds, -1)
        self._generators = [np.random.default_rng(0)] * n_worlds
        self._walks = bool(np.any(cfg.random_walk))
        self._is_white = bool(np.any(cfg.density) or np.any(cfg.std))
        self._grows = bool(np.any(cfg.growth))
        # For each sample, the numbers of the random walk, if any, then those of the white noise.
        self._shape = (self._walks + self._is_white, n_axes)
        self._numbers = np.zeros((_DRAWN_AT_ONCE, n_worlds, *self._shape))
        self._next = _DRAWN_AT_ONCE
        self._dt = math.nan  # of the next two
        self._variance = self._white = self._step = np.zeros(n_axes)
        self._bias = np.zeros((n_worlds, n_axes))
        self._gain = np.ones((n_worlds, n_axes))
        self._saturates = bool(np.isfinite(cfg.saturation).any())
        self.reset()

    def reset(self, ids: WorldIds = None) -> None:
        """Restart in worlds."""
        for world in np.arange(len(self._resets))[slice(None) if ids is None else ids]:
            self.begin(world, self._resets[world] + 1)

    def begin(self, world: int, resets: int) -> None:
        """Restart in a world, as after this number of resets."""
        self._resets[world] = resets
        rng = np.random.default_rng((*self._seed, *self._keys[world], resets))
        self._generators[world] = rng
        self._bias[world] = np.multiply(self.cfg.bias, rng.standard_normal(self._axes))
        self._gain[world] = 1.0 + np.multiply(self.cfg.scale, rng.standard_normal(self._axes))
        left = self._numbers[self._next :, world]
        left[:] = rng.standard_normal(left.shape)

    def take_over(self, other: Noise, worlds: Mapping[int, int]) -> None:
        """Continue in some worlds, before the first sample, where another noise stopped.

        Args:
            other: The other noise, which must not be used any more.
            worlds: Numbers of these worlds in `other`, by their numbers here.
        """
        self._next = other._next
        for world in range(len(self._resets)):
            if world in worlds:
                there = worlds[world]
                self._generators[world] = other._generators[there]
                self._numbers[:, world] = other._numbers[:, there]
                for own, others in zip(self._state(), other._state()):
                    own[world] = others[there]
            else:
                self.begin(world, self._resets[world])

    def _state(self) -> tuple[np.ndarray, ...]:
        return self._resets, self._bias, self._gain

    def skip(self, counts: np.ndarray, dt: float) -> None:
        """Skip samples: later readings are the same as if these had been taken.

        Args:
            counts: Number of samples in each world, (B,).
            dt: Sampling period [s].
        """
        self._use(dt)
        if self._walks or self._is_white:
            for world, count in enumerate(counts.tolist()):
                self._skip(world, count)

    def _skip(self, world: int, count: int) -> None:
        left, rng = self._numbers[self._next :, world], self._generators[world]
        used = left[:count]
        self._walk(world, used)
        for start in range(len(used), count, _SKIPPED_AT_ONCE):
            n = min(count - start, _SKIPPED_AT_ONCE)
            self._walk(world, rng.standard_normal((n, *self._shape)))
        left[:] = np.concatenate([left[len(used) :], rng.standard_normal(used.shape)])

    def _walk(self, world: int, normal: np.ndarray) -> None:
        """Advance the bias by the random numbers of n samples."""
        if len(normal) and self._walks:
            steps = self._step * normal[:, 0]
            steps[0] += self._bias[world]
            self._bias[world] = np.cumsum(steps, axis=0)[-1]

    def apply(self, values: np.ndarray, dt: float) -> np.ndarray:
        """Add the errors to true values, one sampling period `dt` [s] after the last.

        Args:
            values: True values of T moments in a row, (T * B, n_axes). The errors do not depend on
                whether the moments are given at once or one by one.
            dt: Time between two moments.
        """
        truth = values.reshape(-1, *self._bias.shape)
        start, end = self._next, self._next + len(truth)
        if end <= _DRAWN_AT_ONCE:
            self._next, normal = end, self._numbers[start:end]
        else:
            normal = self._drawn_anew(len(truth))
        if dt != self._dt:
            self._use(dt)
        bias = self._bias
        if self._walks:
            steps = self._step * normal[:, :, 0]
            steps[0] += bias
            bias = np.cumsum(steps, axis=0)
            self._bias = bias[-1].copy()
        readings = truth * self._gain
        readings += bias
        if self._is_white:
            white = self._white * self.cfg.spread(truth) if self._grows else self._white
            readings += white * normal[:, :, -1]
        if self._saturates:  # two functions take a third of the time of `clip`
            np.maximum(readings, np.negative(self.cfg.saturation), out=readings)
            np.minimum(readings, self.cfg.saturation, out=readings)
        return readings.reshape(values.shape)

    def variance(self, dt: float) -> np.ndarray:
        """Return the variance of the white noise at a sampling period [s], (n_axes,), read-only."""
        if dt != self._dt:
            self._use(dt)
        return self._variance

    def _use(self, dt: float) -> None:
        self._dt, self._variance = dt, self.cfg.variance(dt, self._axes)
        self._variance.flags.writeable = False
        self._white = np.sqrt(self._variance)
        self._step = np.multiply(self.cfg.random_walk, math.sqrt(dt))

    def _drawn_anew(self, n_samples: int) -> np.ndarray:
        """Return the random numbers of the next samples, (n_samples, B, up to 2, n_axes)."""
        parts: list[np.ndarray] = []
        while n_samples:
            if self._next == _DRAWN_AT_ONCE:
                self._numbers, self._next = np.empty_like(self._numbers), 0
                for world, rng in enumerate(self._generators):
                    self._numbers[:, world] = rng.standard_normal(self._numbers[:, world].shape)
            parts.append(self._numbers[self._next : self._next + n_samples])
            self._next += len(parts[-1])
            n_samples -= len(parts[-1])
        return np.concatenate(parts)
