"""Sensors of drones: samples of the truth, with errors and delay."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import mujoco
import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import Noise
from crazyflow_ros.sensors.objects import ObjRef
from crazyflow_ros.sensors.sensor import Sensor, SensorCfg, WorldIds

C = TypeVar("C", bound="SampledSensorCfg")
F = TypeVar("F", bound="FrameSensorCfg")
T = TypeVar("T")


@dataclass(kw_only=True)
class SampledSensorCfg(SensorCfg):
    """Base configuration of sensors that are sampled."""

    seed: int = 0
    """Seed of the noise, together with the sensor's name."""
    delay: float = 0.0
    """Age of a reading when it is reported [s]; at the start, the oldest reading is reported."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.delay < math.inf:
            raise ValueError(f"{self.name}: delay must be 0 s or more, got {self.delay:g}")
        if self.seed < 0:
            raise ValueError(f"{self.name}: seed must not be negative, got {self.seed}")


class _Sample(NamedTuple):
    """The values measured at one moment."""

    values: np.ndarray
    """Shape (B, n)."""
    numbers: np.ndarray
    """Number of samples between the last reset and this one, shape (B,)."""


class SampledSensor(Sensor[T], Generic[C, T]):
    """A sensor that samples once per `update`, whose `dt` is thus the sampling period.

    Its arrays are NumPy's, whatever the back end. If the back end shows T moments in a row, the
    sensor samples all of them at once, `dt` apart. Its data then have T * B rows, those of a moment
    side by side, with the same readings as one by one.
    """

    def __init__(self, cfg: C) -> None:
        super().__init__()
        self.cfg = cfg
        self._noises: list[Noise] = []
        self._samples: deque[_Sample] = deque()  # with a delay, those not yet reported
        self._dt = math.nan
        self._data: T | None = None
        self.ages = np.zeros((1, 1))
        """Age in each world at each of T moments [s], shape (T, B)."""

    def initialize(self, backend: Backend) -> None:
        """Read from `backend` from now on."""
        super().initialize(backend)
        self._fresh = np.ones(backend.n_worlds, bool)
        self.n_samples = np.zeros(backend.n_worlds, int)
        """Number of samples since the last reset, including skipped ones, shape (B,)."""

    @property
    def age(self) -> float:
        """Age of the readings in `data` [s]: `delay` in whole samples, less at the beginning.

        If worlds differ, the greatest age counts.
        """
        return float(self.ages[-1].max())

    @property
    def data(self) -> T:
        """The readings of the last `update`.

        Raises:
            RuntimeError: The sensor has taken no sample yet.
        """
        if self._data is None:
            raise RuntimeError(f"{self.cfg.name}: no sample yet: call update() first")
        return self._data

    def update(self, dt: float) -> None:
        """Sample, a sampling period `dt` [s] after the last sample.

        Raises:
            ValueError: The period is not positive, or differs from that of delayed samples.
        """
        if not dt > 0.0 or (self.cfg.delay and len(self._samples) > 1 and dt != self._dt):
            text = f"the sampling period must stay {self._dt:g} s, got {dt:g} s"
            raise ValueError(f"{self.cfg.name}: {text}")
        self._dt = dt
        rows, n_worlds = self._measure(dt), len(self.n_samples)
        moments = len(rows) // n_worlds
        first, self.n_samples = self.n_samples, self.n_samples + moments
        if self.cfg.delay:
            numbers = first + np.arange(moments)[:, None]
            samples = zip(rows.reshape(moments, n_worlds, -1), numbers.copy())
            reported = [self._delayed(_Sample(*sample)) for sample in samples]
            self.ages = (numbers - [sample.numbers for sample in reported]) * dt
            rows = np.stack([sample.values for sample in reported]).reshape(rows.shape)
        else:
            self.ages = np.zeros((moments, n_worlds))
        self._data = self._decode(rows, dt)

    def _delayed(self, sample: _Sample) -> _Sample:
        """Queue a sample; return the one that is reported now."""
        self._samples.append(sample)
        if self._fresh.any():
            for older in self._samples:  # of worlds that have restarted
                for own, new in zip(older, sample):
                    own[self._fresh] = new[self._fresh]
            self._fresh[:] = False
        while len(self._samples) > 1 + round(self.cfg.delay / self._dt):
            self._samples.popleft()
        return self._samples[0]

    def reset(self, ids: WorldIds = None) -> None:
        """Restart in worlds, with new biases; earlier readings are not reported any more."""
        self._forget(slice(None) if ids is None else ids)
        for noise in self._noises:
            noise.reset(ids)

    def begin(self, world: int, resets: int) -> None:
        """Restart in a world, as after this number of resets."""
        self._forget(world)
        for noise in self._noises:
            noise.begin(world, resets)

    def _forget(self, worlds: int | slice | Sequence[int] | np.ndarray) -> None:
        self._fresh[worlds], self.n_samples[worlds] = True, 0

    def skip(self, counts: np.ndarray, dt: float) -> None:
        """Skip samples: later ones have the same errors as if these had been taken.

        Args:
            counts: Number of samples in each world, (B,).
            dt: Sampling period [s].
        """
        for noise in self._noises:
            noise.skip(counts, dt)
        self.n_samples = self.n_samples + counts
        self._fresh |= counts > 0  # delayed samples are too old

    def take_over(self, other: SampledSensor[C, T], worlds: Mapping[int, int]) -> None:
        """Continue in some worlds, before the first sample, where another sensor stopped.

        Args:
            other: The other sensor, which must not be used any more.
            worlds: Numbers of these worlds in `other`, by their numbers here.
        """
        for noise, others in zip(self._noises, other._noises):
            noise.take_over(others, worlds)
        here, there = list(worlds), list(worlds.values())
        self._dt, n_worlds = other._dt, self.backend.n_worlds
        self.n_samples[here], self._fresh[here] = other.n_samples[there], other._fresh[there]
        for sample in other._samples:
            own = _Sample(*(np.zeros((n_worlds, *part.shape[1:]), part.dtype) for part in sample))
            for part, others_part in zip(own, sample):
                part[here] = others_part[there]
            self._samples.append(own)

    def _noise(self, cfg: NoiseCfg, n_axes: int) -> Noise:
        """Create noise of this sensor, for `_measure`."""
        seed = (self.cfg.seed, *self.cfg.name.encode(), len(self._noises))
        backend = self.backend
        self._noises.append(Noise(cfg, backend.n_worlds, n_axes, seed, backend.keys))
        return self._noises[-1]

    @abstractmethod
    def _measure(self, dt: float) -> np.ndarray:
        """Take a new sample (B, n) with its errors, or those of T moments (T * B, n)."""

    @abstractmethod
    def _decode(self, sample: np.ndarray, dt: float) -> T:
        """Convert a sample, which nobody else uses, to data."""


@dataclass(kw_only=True)
class FrameSensorCfg(SampledSensorCfg):
    """Base configuration of sensors that need only the pose of a frame from the model.

    Raises:
        ValueError: The frame is not of a type that has a pose.
    """

    frame: ObjRef
    """Body, site or geom that the sensor is fixed to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.frame.check(f"{self.name}: frame", ("body", "xbody", "site", "geom"))


class FrameSensor(SampledSensor[F, T]):
    """A sensor that needs only the pose of a frame from the model."""

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """The body, site or geom that it is fixed to."""
        return (self.cfg.frame,)

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add nothing: poses need no elements in the model."""

    def initialize(self, backend: Backend) -> None:
        """Find the frame."""
        super().initialize(backend)
        self.cfg.frame.id(backend.model)
