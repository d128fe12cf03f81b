"""Reset of worlds to their default data."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.sim.compile.stepping import Derivative, finishing
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.worlds import Worlds

ResetFn = Callable[[SimData, SimData, Array | np.ndarray | None], SimData]


def reset_fn(pipeline: tuple[ResetStage, ...], derivative: Derivative, worlds: Worlds) -> ResetFn:
    """Return a pure, compiled function of data, default data and mask, (n_worlds,) bool or None."""

    @jax.jit
    def reset(data: SimData, default_data: SimData, mask: Array | None = None) -> SimData:
        key = data.core.rng_key
        if mask is None:
            data = default_data
        else:

            def restore(own: bool, now: Array, default: Array) -> Array:
                where = mask.reshape(-1, *[1] * (now.ndim - 1))
                return jnp.where(where, default, now) if own else now

            owned = jax.tree.unflatten(jax.tree.structure(data), worlds.owned(data))
            data = jax.tree.map(restore, owned, data, default_data)
        data = data.replace(core=data.core.replace(rng_key=key))
        for stage in pipeline:
            data = stage(data, default_data, mask)
        return worlds.placed(finishing(derivative)(data))

    return reset
