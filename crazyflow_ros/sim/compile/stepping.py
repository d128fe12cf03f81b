"""A pipeline as a function of data and number of ticks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.sim.arguments import steps_of
from crazyflow_ros.sim.compile.advance import advance
from crazyflow_ros.sim.compile.ticks import Ending, Ticks, replaced
from crazyflow_ros.sim.data import SimData, SimStateDeriv, check_precision
from crazyflow_ros.sim.leaves import layout
from crazyflow_ros.sim.pipeline import run_stage
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds
from crazyflow_ros.xla.kernels import inlined
from crazyflow_ros.xla.on_device import on_device

StepFn = Callable[[SimData, Array | int], SimData]
Derivative = Callable[[SimData], SimStateDeriv]


def tick_of(pipeline: tuple[Stage, ...]) -> Stage:
    """Return a stage that runs all stages of a pipeline."""

    @inlined
    def tick(data: SimData) -> SimData:
        check_precision(data)  # during tracing, which is repeated for another precision
        for stage in pipeline:
            data = run_stage(stage, data)
        return data

    return tick


def step_fn(tick: Stage, last: Ending | None, worlds: Worlds) -> StepFn:
    """Return a function of data and number of ticks, compiled unless within a transformation."""
    known: dict[object, Ticks] = {}

    def pure(data: SimData, n_steps: Array | int = 1) -> SimData:
        key = layout(data)
        if key not in known:
            known[key] = Ticks(tick, last, data, worlds.owned(data), together=False)
        ticks = known[key]
        flown = ticks.unpack(advance(ticks, ticks.pack(data), n_steps, worlds))
        leaves, treedef = jax.tree.flatten(unsynced(data))
        return jax.tree.unflatten(treedef, replaced(leaves, list(flown), list(flown.values())))

    compiled = jax.jit(pure)

    def step(data: SimData, n_steps: Array | int = 1) -> SimData:
        if not hasattr(n_steps, "dtype"):
            n_steps = steps_of(n_steps)
        if any(isinstance(x, jax.core.Tracer) for x in (n_steps, *jax.tree.leaves(data))):
            return pure(data, n_steps)
        return compiled(data, np.int32(n_steps))  # so that another number does not recompile

    return step


@lru_cache(maxsize=64)
def count(n: int) -> Array:
    """Return a number as an array, which compiled functions accept in a third of the time."""
    with jax.ensure_compile_time_eval():
        return on_device(np.int32(n))


def unsynced(data: SimData) -> SimData:
    """Return the data, marked as not shown by the MJX data."""
    synced = data.core.mjx_synced
    if not isinstance(synced, jax.core.Tracer) and not synced:
        return data
    return data.replace(core=data.core.replace(mjx_synced=jnp.zeros_like(synced)))


def deriving(derivative: Derivative) -> Ending:
    """Return the ending of a step that evaluates the derivative."""
    return lambda _, data: data.replace(states_deriv=derivative(data))


def compiled_derivative(derivative: Derivative, worlds: Worlds) -> Derivative:
    """Return the derivative as a compiled function."""

    @jax.jit
    def derive(data: SimData) -> SimStateDeriv:
        return worlds.placed(data.replace(states_deriv=derivative(data))).states_deriv

    return derive


def finishing(derivative: Derivative) -> Stage:
    """Return the stage after a reset: derivatives, and MJX data marked out of date."""
    derive = deriving(derivative)
    return lambda data: unsynced(derive(data, data))
