"""Wind with gusts, a stage of the step pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import stack
from crazyflow_ros.sim.data import SimData

_FEET = 0.3048  # m
_MEMORY = "dryden"


@dataclass(frozen=True)
class Dryden:
    """Steady wind and Dryden turbulence near the ground, the same for all drones of a world.

    MIL-F-8785C, section 3.7, low-altitude model, for an observer that stands still: the gusts blow
    past with the mean wind. They are sampled exactly. A model without drag does not feel them.

    Attributes:
        wind: x and y of the mean wind in the world, m/s; also its speed at 6 m, to which the
            strength of the gusts is proportional.
        altitude: Height over ground, m; 3 to 300.
    """

    wind: tuple[float, float]
    altitude: float = 6.0

    def __post_init__(self) -> None:
        """Refuse what the model is not made for.

        Raises:
            ValueError: No wind, or an altitude out of range.
        """
        if not np.isfinite(self.wind).all() or self.speed <= 0:
            raise ValueError(f"wind has to be finite and blow, got {self.wind}")
        if not 3 <= self.altitude <= 300:
            raise ValueError(f"altitude has to be from 3 to 300 m, got {self.altitude}")

    @property
    def speed(self) -> float:
        """Of the mean wind, m/s."""
        return float(np.hypot(*self.wind))

    @property
    def intensities(self) -> tuple[float, float, float]:
        """Standard deviation along the wind, across it and vertically, m/s."""
        vertical = 0.1 * self.speed
        horizontal = vertical / (0.177 + 0.000823 * self.altitude / _FEET) ** 0.4
        return horizontal, horizontal, vertical

    @property
    def lengths(self) -> tuple[float, float, float]:
        """Turbulence scales along the wind, across it and vertically, m."""
        horizontal = self.altitude / (0.177 + 0.000823 * self.altitude / _FEET) ** 1.2
        return horizontal, horizontal, self.altitude

    def begin(self, data: SimData) -> SimData:
        """Data with the mean wind and no gust.

        Raises:
            ValueError: The dynamics have no drag.
        """
        if not hasattr(data.params, "wind"):
            raise ValueError("wind needs dynamics with drag: first_principles, so_rpy_rotor_drag")
        filters = jnp.zeros((data.core.n_worlds, 1, 5), data.states.pos.dtype)
        data = data.replace(plugins=data.plugins | {_MEMORY: filters})
        return self._blow(data, (filters[..., 0],) * 3)

    def __call__(self, data: SimData) -> SimData:
        """The wind of the next tick."""
        filters = data.plugins[_MEMORY]
        key, subkey = jax.random.split(data.core.rng_key)
        noise = jax.random.normal(subkey, filters.shape, filters.dtype)
        filters, gust = self.gust(filters, noise, 1 / data.core.freq)
        data = data.replace(
            plugins=data.plugins | {_MEMORY: filters}, core=data.core.replace(rng_key=key)
        )
        return self._blow(data, gust)

    def gust(
        self, filters: Array, noise: Array, dt: float
    ) -> tuple[Array, tuple[Array, Array, Array]]:
        """The gust a time `dt` [s] later.

        Args:
            filters: (..., 5) state of the shaping filters.
            noise: (..., 5) standard normal numbers.
            dt: Time step, s.

        Returns:
            The new state, and the speeds along the wind, across it and vertically, m/s.
        """
        along, across, vertical = self.intensities
        times = [length / self.speed for length in self.lengths]
        decay = float(np.exp(-dt / times[0]))
        state = [filters[..., 0] * decay + noise[..., 0] * float(np.sqrt(1 - decay**2))]
        for i, time in ((1, times[1]), (3, times[2])):
            # Two lags one after the other, whose outputs have these covariances.
            e, covariance = np.exp(-dt / time), np.array([[0.5, 0.25], [0.25, 0.25]])
            turn = np.array([[e, 0], [e * dt / time, e]])
            (a, _), (b, c) = np.linalg.cholesky(covariance - turn @ covariance @ turn.T).tolist()
            first, second = filters[..., i], filters[..., i + 1]
            state += [
                float(e) * first + a * noise[..., i],
                float(turn[1, 0]) * first
                + float(e) * second
                + b * noise[..., i]
                + c * noise[..., i + 1],
            ]
        root = float(np.sqrt(3))
        gust = (
            along * state[0],
            across * (root * state[1] + (1 - root) * state[2]),
            vertical * (root * state[3] + (1 - root) * state[4]),
        )
        return stack(tuple(state)), gust

    def _blow(self, data: SimData, gust: tuple[Array, Array, Array]) -> SimData:
        x, y = (component / self.speed for component in self.wind)
        along, across, vertical = gust
        mean = self.speed + along
        wind = stack((x * mean - y * across, y * mean + x * across, vertical))
        return data.replace(params=data.params.replace(wind=wind))
