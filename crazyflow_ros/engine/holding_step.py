"""Ticks of drones that can be held, in compiled code that contains the forces once.

A step computes forces in each tick, and once more for the accelerations at its end. XLA would
compile both, which takes seconds with contacts. So the end is one more tick that changes nothing.

A contact may begin and end within the ticks of a step, so the largest one is a result as well.

Single precision resolves 1 mm at a distance of 10 km, where a drone at 0.2 m/s moves by less in a
tick. So positions are sums with compensation (W. Kahan, "Further remarks on reducing truncation
errors", CACM 8, 1965): what a position has lost to rounding is kept, and added in the next tick.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    add,
    stack,
    subtract,
    vector,
)
from crazyflow_ros.engine.form import POS_LOW
from crazyflow_ros.engine.isolation import keep_held
from crazyflow_ros.sim import Integrator, Sim, SimData
from crazyflow_ros.sim.compile.packing import Components, in_components
from crazyflow_ros.sim.data import SimStateDeriv, check_precision
from crazyflow_ros.sim.leaves import changed_leaves, traced
from crazyflow_ros.sim.pipeline import names
from crazyflow_ros.sim.stages import as_impulses, derivative, free_derivative, with_contacts
from crazyflow_ros.xla.kernels import inlined

HoldingStep: TypeAlias = Callable[[SimData, Array | int], tuple[SimData, Array]]
"""Returns the data after some ticks, and the largest force of each drone's contacts along an axis
of the world in these ticks [N], shape (N, M); 0 with rk4."""


def holding_step(sim: Sim) -> HoldingStep:
    """Return `Sim.build_step_fn` for drones that can be held; a lost drone is held.

    It adds `POS_LOW` to the data of the simulation.
    """
    exact = {POS_LOW: jnp.zeros_like(sim.data.states.pos)}
    sim.data = sim.data.replace(plugins=sim.data.plugins | exact)
    place = names(sim.step_pipeline).index("integrate")
    before, after = sim.step_pipeline[:place], sim.step_pipeline[place + 1 :]
    # rk4 also evaluates intermediate states.
    is_simple = sim.integrator is not Integrator.rk4

    @inlined
    def commanded(data: SimData) -> SimData:
        for stage in before:
            data = stage(data)
        return data

    @inlined
    def rate_of(data: SimData) -> tuple[BodyDerivative, BodyDerivative, Array]:
        """Return the derivative, the one to advance with, and the largest contact."""
        state = data.states.components
        free = free_derivative(data, state, sim.forces)
        rate = with_contacts(data, state, free, sim.forces)
        push = reduce(jnp.maximum, (jnp.abs(x - y) for x, y in zip(rate.acc, free.acc)))
        is_euler = sim.integrator is Integrator.euler
        return rate, as_impulses(data, state, free, rate) if is_euler else rate, push

    @inlined
    def moved(data: SimData, rate: BodyDerivative) -> SimData:
        now, low = data.states.components, vector(data.plugins[POS_LOW])

        def rate_at(state: BodyState) -> BodyDerivative:
            if is_simple:
                return rate
            return derivative(data, state._replace(pos=add(now.pos, state.pos)), sim.forces)

        # From where the drones are, so that the ways are small numbers.
        state = sim.integrator.fn(now._replace(pos=low), rate_at, 1 / data.core.freq)
        pos = add(now.pos, state.pos)
        lost = subtract(state.pos, subtract(pos, now.pos))
        data = data.replace(states=data.states.with_components(state._replace(pos=pos)))
        for stage in after:
            data = stage(data)
        data = keep_held(data, now)
        held = data.controls.held[..., 0]  # type: ignore[attr-defined]
        kept = tuple(jnp.where(held, old, new) for old, new in zip(low, lost))
        return data.replace(plugins=data.plugins | {POS_LOW: stack(kept)})

    def whole_tick(data: SimData) -> SimData:
        data = commanded(data)
        return moved(data, rate_of(data)[1])

    def step(data: SimData, n_ticks: Array | int) -> tuple[SimData, Array]:
        check_precision(data)
        split, join = in_components(data, changed_leaves(traced(whole_tick, data)))

        def tick(
            i: Array, carry: tuple[Components, BodyDerivative, Array]
        ) -> tuple[Components, BodyDerivative, Array]:
            parts, old_rate, worst = carry
            is_last = i == n_ticks
            parts = jax.lax.cond(
                is_last, lambda now: now, lambda now: split(commanded(join(now))), parts
            )
            data = join(parts)
            if is_simple:
                rate, step_rate, push = rate_of(data)
                # The end is where the next step begins, and counts there.
                worst = jnp.where(is_last, worst, jnp.maximum(worst, push))
            else:
                rate = jax.lax.cond(is_last, lambda: rate_of(data)[0], lambda: old_rate)
                step_rate = rate
            parts = jax.lax.cond(
                is_last,
                lambda now, _: now,
                lambda now, rate: split(moved(join(now), rate)),
                *(parts, step_rate),
            )
            return parts, rate, worst

        rate, _, worst = jax.tree.map(jnp.zeros_like, jax.eval_shape(rate_of, data))
        parts, rate, worst = jax.lax.fori_loop(0, n_ticks + 1, tick, (split(data), rate, worst))
        data = join(parts).replace(states_deriv=SimStateDeriv.from_components(rate))
        moves = ~data.controls.held[..., 0]  # type: ignore[attr-defined]
        return data, jnp.where(moves & jnp.isfinite(worst), worst * data.params.mass[..., 0], 0)

    return step
