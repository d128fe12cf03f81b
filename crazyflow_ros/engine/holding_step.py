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
    Wrench,
    add,
    stack,
    subtract,
    vector,
)
from crazyflow_ros.engine.form import POS_LOW
from crazyflow_ros.engine.isolation import keep_held
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.compile.packing import Components, in_components
from crazyflow_ros.sim.data import SimStateDeriv, check_precision
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.leaves import changed_leaves, traced
from crazyflow_ros.sim.motion import as_impulses, derivative, free_derivative, with_contacts
from crazyflow_ros.sim.pipeline import names
from crazyflow_ros.xla.kernels import inlined

_Carry: TypeAlias = tuple[Components, BodyDerivative, Array]
"""Components of the data, derivative, and largest accelerations by contacts until now."""
_Tick: TypeAlias = Callable[[Array, _Carry], _Carry]


class HoldingStep:
    """`Sim.build_step_fn` for drones that can be held; a lost drone is held.

    It adds `POS_LOW` to the data of the simulation. The largest contact of a drone is the largest
    force of its contacts along an axis of the world [N], shape (N, M); 0 with an integrator that
    evaluates intermediate states.
    """

    def __init__(self, sim: Sim) -> None:
        """Take the stages of the simulation."""
        exact = {POS_LOW: jnp.zeros_like(sim.data.states.pos)}
        sim.data = sim.data.replace(plugins=sim.data.plugins | exact)
        place = names(sim.step_pipeline).index("integrate")
        self._before, self._after = sim.step_pipeline[:place], sim.step_pipeline[place + 1 :]
        # Others, such as rk4, also evaluate intermediate states.
        self._is_simple = sim.integrator in (Integrator.euler, Integrator.symplectic_euler)
        self._integrator, self._forces = sim.integrator, sim.forces
        self._commanded = inlined(self._command)
        self._rate_of, self._moved = inlined(self._rates), inlined(self._move)

    def step(self, data: SimData, n_ticks: Array | int) -> tuple[SimData, Array]:
        """Return the data after some ticks, and the largest contacts in these ticks."""
        tick, carry, join = self._ticks(data)
        parts, rate, worst = jax.lax.fori_loop(
            0, n_ticks + 1, lambda i, carry: tick(i == n_ticks, carry), carry
        )
        data = join(parts).replace(states_deriv=SimStateDeriv.from_components(rate))
        return data, self.largest(data, worst)

    def tick(
        self, data: SimData, is_end: Array, push: Array, contact: Wrench | None = None
    ) -> tuple[SimData, Array]:
        """Return the data after a tick, or the same data with accelerations. Not for rk4.

        Args:
            data: The data.
            is_end: Whether to compute only the accelerations, at the end of a step.
            push: Largest accelerations by contacts until now, for `largest`; they are the second
                result, too.
            contact: Wrench of contacts that are computed elsewhere, before all others.
        """
        tick, (parts, rate, _), join = self._ticks(data, contact)
        parts, rate, push = tick(is_end, (parts, rate, push))
        return join(parts).replace(states_deriv=SimStateDeriv.from_components(rate)), push

    def free(self, data: SimData, is_end: Array) -> BodyDerivative:
        """Return the derivative in a tick, see `tick`, without contacts."""
        data = jax.lax.cond(is_end, lambda now: now, self._commanded, data)
        return free_derivative(data, data.states.components, self._forces)

    @staticmethod
    def largest(data: SimData, push: Array) -> Array:
        """Return the largest contacts, from the accelerations by them."""
        moves = ~data.controls.held[..., 0]  # type: ignore[attr-defined]
        return jnp.where(moves & jnp.isfinite(push), push * data.params.mass[..., 0], 0)

    def _ticks(
        self, data: SimData, contact: Wrench | None = None
    ) -> tuple[_Tick, _Carry, Callable[[Components], SimData]]:
        """Return the function of a tick, its initial carry, and a function from parts to data."""
        check_precision(data)
        split, join = in_components(data, changed_leaves(traced(self._whole_tick, data)))

        def tick(is_last: Array, carry: _Carry) -> _Carry:
            parts, old_rate, worst = carry
            parts = jax.lax.cond(
                is_last, lambda now: now, lambda now: split(self._commanded(join(now))), parts
            )
            data = join(parts)
            if self._is_simple:
                rate, step_rate, push = self._rate_of(data, contact)
                # The end is where the next step begins, and counts there.
                worst = jnp.where(is_last, worst, jnp.maximum(worst, push))
            else:
                rate = jax.lax.cond(
                    is_last, lambda: self._rate_of(data, contact)[0], lambda: old_rate
                )
                step_rate = rate
            parts = jax.lax.cond(
                is_last,
                lambda now, _: now,
                lambda now, rate: split(self._moved(join(now), rate)),
                *(parts, step_rate),
            )
            return parts, rate, worst

        shapes = jax.eval_shape(self._rate_of, data, contact)
        rate, _, worst = jax.tree.map(jnp.zeros_like, shapes)
        return tick, (split(data), rate, worst), join

    def _whole_tick(self, data: SimData) -> SimData:
        data = self._commanded(data)
        return self._moved(data, self._rate_of(data, None)[1])

    def _command(self, data: SimData) -> SimData:
        for stage in self._before:
            data = stage(data)
        return data

    def _rates(
        self, data: SimData, contact: Wrench | None
    ) -> tuple[BodyDerivative, BodyDerivative, Array]:
        """Return the derivative, the derivative to advance with, and the largest contact."""
        state = data.states.components
        free = free_derivative(data, state, self._forces)
        rate = free if contact is None else data.params.pushed(state, free, contact)
        rate = with_contacts(data, state, rate, self._forces)
        push = reduce(jnp.maximum, (jnp.abs(x - y) for x, y in zip(rate.acc, free.acc)))
        is_euler = self._integrator is Integrator.euler
        return rate, as_impulses(data, state, free, rate) if is_euler else rate, push

    def _move(self, data: SimData, rate: BodyDerivative) -> SimData:
        now, low = data.states.components, vector(data.plugins[POS_LOW])

        def rate_at(state: BodyState) -> BodyDerivative:
            if self._is_simple:
                return rate
            return derivative(data, state._replace(pos=add(now.pos, state.pos)), self._forces)

        # Relative to the drones' positions, so that displacements are small numbers.
        state = self._integrator.fn(now._replace(pos=low), rate_at, 1 / data.core.freq)
        pos = add(now.pos, state.pos)
        lost = subtract(state.pos, subtract(pos, now.pos))
        data = data.replace(states=data.states.with_components(state._replace(pos=pos)))
        for stage in self._after:
            data = stage(data)
        data = keep_held(data, now)
        held = data.controls.held[..., 0]  # type: ignore[attr-defined]
        kept = tuple(jnp.where(held, old, new) for old, new in zip(low, lost))
        return data.replace(plugins=data.plugins | {POS_LOW: stack(kept)})
