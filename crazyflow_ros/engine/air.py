"""Wind of the runtime: a stage whose parameters are data, so that they can change at run time."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import split, stack
from crazyflow_ros.engine.form import GUSTS, WIND, counted, gust_period
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.wind import (
    INTENSITY,
    N_FILTERS,
    N_NUMBERS,
    blow,
    check_feels_wind,
    correlated,
    filtered,
    gust_of,
)


class Blow:
    """Computes the wind of each tick, from `Dryden.numbers` for `gust_period` in `data.plugins`.

    The random numbers of a tick depend on the seed and the number of the tick alone. So they are
    the same however ticks are grouped, after a restart, and when a checkpoint is loaded.
    """

    def begin(self, data: SimData) -> SimData:
        """Return the data with calm air.

        Raises:
            ValueError: The dynamics have no drag.
        """
        check_feels_wind(data)
        (n, m, _), dtype = data.states.pos.shape, data.states.pos.dtype
        shapes = {WIND: (n, 1, N_NUMBERS), GUSTS: (n, m, N_FILTERS)}
        memory = {name: jnp.zeros(shape, dtype) for name, shape in shapes.items()}
        wind = jnp.zeros((n, m, 3), dtype)
        return data.replace(plugins=data.plugins | memory, params=data.params.replace(wind=wind))

    def __call__(self, data: SimData) -> SimData:
        """Set the wind of the next tick."""
        numbers, filters = split(data.plugins[WIND]), data.plugins[GUSTS]

        tick = data.core.steps[0, 0] % counted(data.core.freq)
        due = tick % gust_period(data.core.freq) == 0

        def later() -> Array:
            key = jax.random.fold_in(data.core.rng_key, tick)
            noise = jax.random.normal(key, filters.shape, filters.dtype)
            return filtered(filters, correlated(noise, data.states.pos, numbers), numbers)

        now = jax.lax.cond(due & jnp.any(numbers[INTENSITY] > 0), later, lambda: filters)
        params = data.params.replace(wind=_wind(now, numbers))
        return data.replace(plugins=data.plugins | {GUSTS: now}, params=params)


def with_wind(data: SimData, numbers: Array) -> SimData:
    """Return the data with the wind that `Dryden.numbers` and the present gust give."""
    wind = _wind(data.plugins[GUSTS], split(numbers))
    return data.replace(
        plugins=data.plugins | {WIND: numbers[None, None]}, params=data.params.replace(wind=wind)
    )


def with_calm_wind(data: SimData, numbers: Array) -> SimData:
    """Return the data with the mean wind only, which needs no `Blow`."""
    return data.replace(params=data.params.replace(wind=numbers[:3]))


def _wind(filters: Array, numbers: Sequence[Array]) -> Array:
    """Return the wind, (N, M, 3)."""
    return stack(blow(gust_of(filters, numbers), numbers))
