"""Wind with gusts, a stage of the step pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, factorial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import Vec3, split, stack

if TYPE_CHECKING:
    from crazyflow_ros.sim.data import SimData

N_FILTERS = 5
"""Number of states of the gusts' shaping filters, and of random numbers that they need."""
N_NUMBERS = 19
"""Length of `Dryden.numbers`."""
INTENSITY = 5
"""Index in `Dryden.numbers` of the intensity of the vertical gusts; 0 means no gusts."""

ALTITUDES = (3.0, 300.0)
"""Heights above ground for which the model is valid, m."""

_FEET = 0.3048  # m
_MEMORY = "dryden"
_SLOWEST = 1e-3  # m/s, speed of the air that carries the gusts


@dataclass(frozen=True)
class Dryden:
    """Steady wind and Dryden turbulence near the ground, the same for all drones of a world.

    MIL-F-8785C, section 3.7, low-altitude model, for an observer at rest: the mean wind carries the
    gusts past. They are sampled exactly. Models without drag do not feel them.

    Attributes:
        wind: x and y of the mean wind in the world, m/s, and optionally z.
        altitude: Height above ground, m; within `ALTITUDES`.
        intensity: Standard deviation of the vertical gusts, m/s. None: a tenth of the mean wind, as
            in the standard, which takes the wind at 6 m. Stronger gusts are carried by the wind
            that would cause them.
    """

    wind: tuple[float, float] | tuple[float, float, float]
    altitude: float = 6.0
    intensity: float | None = None

    def __post_init__(self) -> None:
        """Check that the model is valid for the parameters.

        Raises:
            ValueError: There is no wind from which to compute the intensity, or a number is out of
                range.
        """
        if not np.isfinite(self.wind).all() or (self.intensity is None and self.speed <= 0):
            raise ValueError(
                f"wind must be finite, and not zero without an intensity, got {self.wind}"
            )
        low, high = ALTITUDES
        if not low <= self.altitude <= high:
            expected = f"from {low:g} to {high:g} m"
            raise ValueError(f"altitude must be {expected}, got {self.altitude}")
        if self.intensity is not None and not 0 <= self.intensity < np.inf:
            raise ValueError(f"intensity must be 0 m/s or more, got {self.intensity}")

    @property
    def speed(self) -> float:
        """Speed of the mean wind over the ground, m/s."""
        return float(np.hypot(*self.wind[:2]))

    @property
    def carrier(self) -> float:
        """Speed at which the gusts move past, m/s."""
        return max(self.speed, 10 * self.intensities[2], _SLOWEST)

    @property
    def intensities(self) -> tuple[float, float, float]:
        """Standard deviations along the wind, across it and vertically, m/s."""
        vertical = 0.1 * self.speed if self.intensity is None else self.intensity
        horizontal = vertical / (0.177 + 0.000823 * self.altitude / _FEET) ** 0.4
        return horizontal, horizontal, vertical

    @property
    def lengths(self) -> tuple[float, float, float]:
        """Turbulence scales along the wind, across it and vertically, m."""
        horizontal = self.altitude / (0.177 + 0.000823 * self.altitude / _FEET) ** 1.2
        return horizontal, horizontal, self.altitude

    def begin(self, data: SimData) -> SimData:
        """Return the data with the mean wind and without gusts.

        Raises:
            ValueError: The dynamics have no drag.
        """
        check_feels_wind(data)
        filters = jnp.zeros((data.core.n_worlds, 1, N_FILTERS), data.states.pos.dtype)
        data = data.replace(plugins=data.plugins | {_MEMORY: filters})
        return self._blow(data, (filters[..., 0],) * 3)

    def __call__(self, data: SimData) -> SimData:
        """Set the wind of the next tick."""
        filters = data.plugins[_MEMORY]
        key, subkey = jax.random.split(data.core.rng_key)
        noise = jax.random.normal(subkey, filters.shape, filters.dtype)
        filters, gust = self.gust(filters, noise, 1 / data.core.freq)
        data = data.replace(
            plugins=data.plugins | {_MEMORY: filters}, core=data.core.replace(rng_key=key)
        )
        return self._blow(data, gust)

    def gust(self, filters: Array, noise: Array, dt: float) -> tuple[Array, Vec3]:
        """Return the gust after a time `dt`.

        Args:
            filters: (..., 5) state of the shaping filters.
            noise: (..., 5) standard normal numbers.
            dt: Time step, s.

        Returns:
            The new state, and the speeds along the wind, across it and vertically, m/s.
        """
        numbers = self.numbers(dt).tolist()
        filters = filtered(filters, noise, numbers)
        return filters, gust_of(filters, numbers)

    def numbers(self, dt: float) -> np.ndarray:
        """Return the input of `filtered`, `gust_of` and `blow`, (19,), for ticks of `dt` [s].

        The mean wind (3), its direction over the ground (2), the intensities of vertical and
        horizontal gusts (2), and the coefficients of a tick of the filters: along the wind (2),
        across it and vertically (5 each).
        """
        x, y, *z = self.wind
        direction = (x / self.speed, y / self.speed) if self.speed else (1.0, 0.0)
        along, _, vertical = self.intensities
        times = [length / self.carrier for length in self.lengths]
        decay = np.exp(-dt / times[0])
        kick = np.sqrt(-np.expm1(-2 * dt / times[0]))
        filters = [decay, kick, *_two_lags(dt / times[1]), *_two_lags(dt / times[2])]
        return np.array([x, y, *(z or [0.0]), *direction, vertical, along, *filters])

    def _blow(self, data: SimData, gust: Vec3) -> SimData:
        numbers = self.numbers(1 / data.core.freq).tolist()
        return data.replace(params=data.params.replace(wind=stack(blow(gust, numbers))))


def filtered(filters: Array, noise: Array, numbers: Sequence[Array] | Sequence[float]) -> Array:
    """Advance the filters by a tick, see `Dryden.gust` and `Dryden.numbers` (may be traced)."""
    decay, kick, *lags = numbers[INTENSITY + 2 :]
    state = [filters[..., 0] * decay + noise[..., 0] * kick]
    for i, (e, u, a, b, c) in ((1, lags[:5]), (3, lags[5:])):
        # Two lags in series.
        first, second = filters[..., i], filters[..., i + 1]
        state += [
            e * first + a * noise[..., i],
            e * (u * first + second) + b * noise[..., i] + c * noise[..., i + 1],
        ]
    return stack(tuple(state))


def gust_of(filters: Array, numbers: Sequence[Array] | Sequence[float]) -> Vec3:
    """Return the gust along the wind, across it and vertically, m/s."""
    vertical, horizontal = numbers[INTENSITY : INTENSITY + 2]
    along, across, across_late, up, up_late = split(filters)
    root = float(np.sqrt(3))
    return (
        horizontal * along,
        horizontal * (root * across + (1 - root) * across_late),
        vertical * (root * up + (1 - root) * up_late),
    )


def blow(gust: Vec3, numbers: Sequence[Array] | Sequence[float]) -> Vec3:
    """Return the wind in the world [m/s] from a mean wind and a gust relative to it.

    Args:
        gust: Along the mean wind, across it and vertically, m/s.
        numbers: `Dryden.numbers`.
    """
    (mean_x, mean_y, mean_z, x, y), (along, across, vertical) = numbers[:INTENSITY], gust
    return (
        mean_x + x * along - y * across,
        mean_y + y * along + x * across,
        mean_z + vertical,
    )


def check_feels_wind(data: SimData) -> None:
    """Check that wind has an effect on the dynamics.

    Raises:
        ValueError: The dynamics have no drag.
    """
    if not hasattr(data.params, "wind"):
        raise ValueError("wind needs dynamics with drag: first_principles, so_rpy_rotor_drag")


def _two_lags(u: float) -> tuple[float, float, float, float, float]:
    """Return the coefficients of a tick of `u` time constants for two lags in series.

    Decay, `u`, and the factors of two random numbers: the Cholesky factors of the covariance that
    the outputs gain in a tick; their stationary covariance is [[1/2, 1/4], [1/4, 1/4]].
    """
    one, two, three = (_incomplete_gamma(n, 2 * u) for n in (1, 2, 3))
    a = np.sqrt(one / 2)
    b = two / 4 / a
    return float(np.exp(-u)), u, a, b, float(np.sqrt(three / 4 - b * b))


def _incomplete_gamma(n: int, x: float) -> float:
    """The regularized lower incomplete gamma function of `n`: `1 - exp(-x) (1 + x + x^2/2 ...)`.

    There are `n` terms in the brackets. Near 0, the sum of all further terms avoids cancellation.
    """
    if x < 1:
        return exp(-x) * sum(x**k / factorial(k) for k in range(n, n + 20))
    return 1 - exp(-x) * sum(x**k / factorial(k) for k in range(n))
