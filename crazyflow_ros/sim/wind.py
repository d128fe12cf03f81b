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

from crazyflow_ros.dynamics.components import Vec3, split, stack, total

if TYPE_CHECKING:
    from crazyflow_ros.sim.data import SimData

N_FILTERS = 5
"""Number of states of the gusts' shaping filters, and of random numbers that they need."""
N_NUMBERS = 21
"""Length of `Dryden.numbers`."""
INTENSITY = 5
"""Index in `Dryden.numbers` of the intensity of the vertical gusts; 0 means no gusts."""

ALTITUDES = (3.0, 300.0)
"""Heights above ground for which the model is valid, m."""

_FEET = 0.3048  # m
_MEMORY = "dryden"
_SLOWEST = 1e-3  # m/s, speed of the air that carries the gusts
_EXACT = 64  # drones, up to which all correlations are exact
_AXIS = np.array([0, 1, 1, 2, 2])  # of the states of the filters: along the wind, across, vertical
_SAME = 1e-5  # variance of gusts at a place, given those elsewhere, that is taken for none
_ELSEWHERE = 1e9  # m, between places of drones that are lost


@dataclass(frozen=True)
class Dryden:
    """Steady wind and Dryden turbulence near the ground, in which drones feel gusts of their own.

    MIL-F-8785C, section 3.7, low-altitude model, for an observer at rest: the mean wind carries the
    gusts past. They are sampled exactly. Models without drag do not feel them. The gusts of two
    drones of a world are correlated as at two places of the field, see `correlated`.

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
        filters = jnp.zeros((*data.states.pos.shape[:2], N_FILTERS), data.states.pos.dtype)
        data = data.replace(plugins=data.plugins | {_MEMORY: filters})
        return self._blow(data, (filters[..., 0],) * 3)

    def __call__(self, data: SimData) -> SimData:
        """Set the wind of the next tick."""
        filters = data.plugins[_MEMORY]
        key, subkey = jax.random.split(data.core.rng_key)
        noise = jax.random.normal(subkey, filters.shape, filters.dtype)
        dt = 1 / data.core.freq
        noise = correlated(noise, data.states.pos, self.numbers(dt).tolist())
        filters, gust = self.gust(filters, noise, dt)
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
        """Return the input of the functions below, (21,), for ticks of `dt` [s].

        The mean wind (3), its direction over the ground (2), the intensities of vertical and
        horizontal gusts (2), the coefficients of a tick of the filters: along the wind (2), across
        it and vertically (5 each), and the horizontal and vertical turbulence scales (2).
        """
        x, y, *z = self.wind
        direction = (x / self.speed, y / self.speed) if self.speed else (1.0, 0.0)
        along, _, vertical = self.intensities
        times = [length / self.carrier for length in self.lengths]
        decay = np.exp(-dt / times[0])
        kick = np.sqrt(-np.expm1(-2 * dt / times[0]))
        filters = [decay, kick, *_two_lags(dt / times[1]), *_two_lags(dt / times[2])]
        mean = (x, y, *(z or [0.0]))
        return np.array([*mean, *direction, vertical, along, *filters, *self.lengths[1:]])

    def _blow(self, data: SimData, gust: Vec3) -> SimData:
        numbers = self.numbers(1 / data.core.freq).tolist()
        return data.replace(params=data.params.replace(wind=stack(blow(gust, numbers))))


def filtered(filters: Array, noise: Array, numbers: Sequence[Array] | Sequence[float]) -> Array:
    """Advance the filters by a tick, see `Dryden.gust` and `Dryden.numbers` (may be traced)."""
    decay, kick, *lags = numbers[INTENSITY + 2 :]
    state = [filters[..., 0] * decay + noise[..., 0] * kick]
    for i, (e, u, a, b, c) in ((1, lags[:5]), (3, lags[5:10])):
        # Two lags in series.
        first, second = filters[..., i], filters[..., i + 1]
        state += [
            e * first + a * noise[..., i],
            e * (u * first + second) + b * noise[..., i] + c * noise[..., i + 1],
        ]
    return stack(tuple(state))


def correlated(noise: Array, pos: Array, numbers: Sequence[Array] | Sequence[float]) -> Array:
    """Return random numbers for `filtered`, correlated as gusts at several places are.

    In isotropic turbulence with Dryden's spectra the gusts in one direction, at two places a
    distance r apart, have the correlation

        exp(-r / L) (1 - (r^2 - s^2) / (2 L r))

    where s is the part of r in that direction: f = exp(-r / L) along it, g = f (1 - r / 2L) across
    it (G. K. Batchelor, "The Theory of Homogeneous Turbulence", 1953, section 3.4). L is the scale
    of gusts in that direction, which near the ground differs between horizontal and vertical ones.
    Left out are correlations between different directions, at most r / 4L, and that gusts reach
    the drone further down the wind later.

    Of more than 64 drones of a world, 64 spread over their order have all these correlations with
    all drones. The others correlate with one another as far as those explain.

    Args:
        noise: (N, M, 5) independent standard normal numbers.
        pos: (N, M, 3) places of the drones, m. Gradients take the correlations as given.
        numbers: `Dryden.numbers`.
    """
    n_drones = noise.shape[-2]
    if n_drones == 1:
        return noise
    n, (x, y), lengths = min(n_drones, _EXACT), numbers[3:5], (*numbers[-2:-1], *numbers[-2:])
    pos = jax.lax.stop_gradient(pos)
    apart = _ELSEWHERE * jnp.arange(1, n_drones + 1, dtype=pos.dtype)[:, None]
    pos = jnp.where(jnp.isfinite(pos).all(axis=-1, keepdims=True), pos, apart)
    east, north, up = split(pos)
    scales = [
        jnp.broadcast_to(jnp.asarray(each, pos.dtype), (*pos.shape[:1], 1)) for each in lengths
    ]
    length = jnp.stack(scales, axis=-2)  # (N, 3, 1)
    place = jnp.stack((x * east + y * north, x * north - y * east, up), axis=-2)  # (N, 3, M)

    def at(array: Array, drone: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(array, drone, 1, axis=-1)

    def column(i: Array, factors: Array) -> Array:
        """Add the i-th column of the Cholesky factors of the correlations, as a row."""
        drone = i * n_drones // n
        along = place - at(place, drone)
        along = along * along
        square = total(along)[..., None, :]
        r = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        wanted = jnp.exp(-r / length) * (1 - (square - along) / (2 * length * r))
        left = jnp.where(square > 0, wanted, 1.0) - total(factors * at(factors, drone))
        own = at(left, drone)
        is_new = own > _SAME
        new = jnp.where(is_new, left / jnp.sqrt(jnp.where(is_new, own, 1.0)), 0.0)
        return jax.lax.dynamic_update_slice_in_dim(factors, new[..., None, :], i, axis=-2)

    empty = jnp.zeros((*place.shape[:-1], n, n_drones), noise.dtype)
    factors = jax.lax.fori_loop(0, n, column, empty)
    rest = 1 - total(factors * factors)
    rest = jnp.where(rest > _SAME, jnp.sqrt(jnp.where(rest > _SAME, rest, 1.0)), 0.0)
    own = jnp.moveaxis(noise, -1, -2)  # (N, 5, M)
    known = own[..., np.arange(n) * n_drones // n, None]
    mixed = total(factors[..., _AXIS, :, :] * known) + rest[..., _AXIS, :] * own
    return jnp.moveaxis(mixed, -1, -2)


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
