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
from crazyflow_ros.sim.pipeline import run_stage
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.shapes import is_param
from crazyflow_ros.sim.worlds import Worlds

ResetFn = Callable[[SimData, SimData, Array | np.ndarray | None], SimData]


def restoring(pipeline: tuple[ResetStage, ...], worlds: Worlds) -> ResetFn:
    """Return a pure function of data, default data and mask that leaves `states_deriv` as it is.

    Stages get a mask also where all worlds are reset. It is then a constant, of which the compiler
    makes nothing.
    """

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
        if mask is None:
            mask = jnp.ones(data.core.n_worlds, bool)
        for stage in pipeline:
            data = run_reset_stage(stage, data, default_data, mask)
        return data.replace(states_deriv=rate)

    return reset


def run_reset_stage(
    stage: ResetStage, data: SimData, default_data: SimData, mask: Array
) -> SimData:
    """Return what a stage of a reset makes of data, see `pipeline.run_stage`.

    Unlike a stage of a tick, it may give parameters axes of worlds, drones and rotors.
    """
    core = data.core
    sizes = {1, core.n_worlds, core.n_drones, data.states.rotor_vel.shape[-1]}

    def is_wider(path: Any, old: Any, new: Any) -> bool:
        if not is_param(path) or getattr(new, "dtype", None) != old.dtype:
            return False
        pairs = zip(old.shape[::-1], new.shape[::-1])
        fits = all(a == b or 1 in (a, b) for a, b in pairs)
        return fits and set(new.shape) <= {*sizes, *old.shape}

    return run_stage(stage, data, default_data, mask, allowed=is_wider)


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
