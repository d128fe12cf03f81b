"""Reset of worlds to their default data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.sim.compile.stepping import Derivative, finishing, unsynced
from crazyflow_ros.sim.data import SimData, check_precision
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.worlds import Worlds

ResetFn = Callable[[SimData, SimData, Array | np.ndarray | None], SimData]


def restoring(pipeline: tuple[ResetStage, ...], worlds: Worlds) -> ResetFn:
    """Return a pure function of data, default data and mask that leaves `states_deriv` as it is."""

    def reset(data: SimData, default_data: SimData, mask: Any) -> SimData:
        key, rate = data.core.rng_key, data.states_deriv
        noise = None if data.estimate is None else data.estimate.noise
        if mask is None:
            data = default_data
        else:

            def restore(own: bool, now: Array, default: Array) -> Array:
                where = mask.reshape(-1, *[1] * (now.ndim - 1))
                return jnp.where(where, default, now) if own else now

            owned = jax.tree.unflatten(jax.tree.structure(data), worlds.owned(data))
            data = data.replace(states_deriv=default_data.states_deriv)  # which is not read
            data = jax.tree.map(restore, owned, data, default_data)
        data = data.replace(core=data.core.replace(rng_key=key))
        if data.estimate is not None:
            data = data.replace(estimate=data.estimate.replace(noise=noise))
        for stage in pipeline:
            data = stage(data, default_data, mask)
        return data.replace(states_deriv=rate)

    return reset


def reset_fn(
    pipeline: tuple[ResetStage, ...], derivative: Derivative | None, worlds: Worlds
) -> ResetFn:
    """Return a pure, compiled function of data, default data and mask, (n_worlds,) bool or None.

    With a derivative it evaluates `states_deriv`.
    """
    restore = restoring(pipeline, worlds)
    finish = unsynced if derivative is None else finishing(derivative)

    @jax.jit
    def reset(data: SimData, default_data: SimData, mask: Array | None = None) -> SimData:
        check_precision(data)  # during tracing, which is repeated for another precision
        data = restore(data, default_data, mask)
        return worlds.placed(finish(data))

    return reset
