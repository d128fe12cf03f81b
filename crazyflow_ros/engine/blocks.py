"""Many drones, block by block in each tick.

XLA turns each of the thousands of computations of a tick into a loop over the drones, all in one
function of LLVM. The time that LLVM takes grows faster than the number of loops: for 1,000 drones,
it took minutes. Loops over a block of few drones are unrolled to a few vector instructions, whose
data stay in the first-level cache. Forces among drones are computed for all drones, before the
blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, Wrench, no_wrench
from crazyflow_ros.dynamics.forces.aerodynamics import downwash_in_order
from crazyflow_ros.dynamics.forces.collisions import DroneMeetings
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.form import Form
from crazyflow_ros.engine.holding_step import HoldingStep
from crazyflow_ros.engine.isolation import HoldableControls
from crazyflow_ros.engine.slots import BLOCK
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.compile.packing import MovingLeaves, Packing, Vectors
from crazyflow_ros.xla.kernels import apart


class BlockFunction(Protocol):
    """What `Blocks` needs of the function of a block, see `WorldFunction`."""

    split: MovingLeaves[SimData]
    fixed: list[Array]
    step: HoldingStep
    width: int

    def is_held(self, level: Array) -> Array:
        """See `WorldFunction`."""

    def with_inputs(
        self,
        data: SimData,
        inputs: Array,
        wind: Array,
        gains: Array,
        phase: Array | int,
        obstacles: Obstacles | None = None,
    ) -> SimData:
        """See `WorldFunction`."""

    def rows(self, data: SimData, given: Array, impact: Array) -> Array:
        """See `WorldFunction`."""


class Blocks:
    """The ticks of many drones.

    Args:
        block: The function for a block, without what drones do to one another.
        form: Form of all drones.
        data: Data of all drones, for their parameters.
        config: The simulation.
    """

    def __init__(
        self, block: BlockFunction, form: Form, data: SimData, config: SimulationConfig
    ) -> None:
        self._block, self._form, self._data = block, form, data
        self._packing = Packing(list(form.initial.values()))
        drone, freq = config.drone_model, config.freq
        self._downwash = downwash_in_order(drone) if config.downwash else None
        self._meetings = DroneMeetings(drone, freq) if config.drone_collisions else None

    def advance(
        self,
        vectors: Vectors,
        given: Array,
        wind: Array,
        gains: Array,
        phase: Array,
        n_ticks: Array,
        obstacles: Obstacles | None,
        order: Array | None,
    ) -> tuple[Vectors, Array]:
        """Return state and rows of the output after some ticks."""
        order = None if order is None else order.astype(jnp.int32)
        block, n_drones = self._block, self._form.n_drones
        n_blocks = n_drones // BLOCK
        leaves = [leaf[0].T for leaf in self._packing.unpack(vectors)]
        held = block.is_held(given[None, :, self._form.inputs["level"]])[0].T
        rows = jnp.zeros((n_drones, block.width), given.dtype)
        constant = given.T, gains.T

        def data_of(i: Array, start: Array, now: Any, forces: Array) -> tuple[SimData, Array]:
            """Return the data of a block before tick i, and the inputs of its drones."""
            (leaves, held), (inputs, gains), force = apart(_part, start, (now, constant, forces))
            data = block.split.joined([leaf.T[None] for leaf in leaves], block.fixed)
            data = block.with_inputs(data, inputs.T, wind, gains.T, phase + i, obstacles)
            states, (push, turn) = data.states, jnp.split(force.T[None], 2, axis=-1)
            data = data.replace(
                states=states.replace(force=states.force + push, torque=states.torque + turn),
                controls=data.controls.replace(held=held.T[None]),
            )
            return data, inputs.T

        def tick(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            state, now, is_last = self._state(carry[0]), carry[:2], i == n_ticks
            forces = self._forces(state, order)

            def free(k: Array, rates: Array) -> Array:
                data, _ = data_of(i, k * BLOCK, now, forces)
                rate = block.step.free(data, is_last)
                return _with_part(rates, jnp.concatenate((*rate.acc, *rate.ang_acc)), k * BLOCK)

            contact = self._contact(
                *(state, order),
                lambda: jax.lax.fori_loop(0, n_blocks, free, jnp.zeros((6, n_drones), rows.dtype)),
            )

            def one(k: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
                *changing, rows = carry
                start = k * BLOCK
                data, inputs = data_of(i, start, changing[:2], forces)
                worst, pushed = apart(_part, start, (changing[2], contact))
                data, worst = block.step.tick(data, is_last, worst, _as_wrench(pushed))
                controls = data.controls
                assert isinstance(controls, HoldableControls)
                output = jax.lax.cond(
                    is_last,
                    lambda: block.rows(data, inputs, block.step.largest(data, worst)),
                    lambda: jnp.zeros((BLOCK, block.width), rows.dtype),
                )
                leaves = [leaf[0].T for leaf in block.split.moving(data)]
                new = [leaves, controls.held[0].T, worst]
                changing = jax.tree.map(partial(_with_part, start=start), changing, new)
                return *changing, jax.lax.dynamic_update_slice_in_dim(rows, output, start, axis=0)

            done: tuple[Any, ...] = jax.lax.fori_loop(0, n_blocks, one, carry)
            return done

        worst = jnp.zeros((1, n_drones), given.dtype)
        leaves, _, _, rows = jax.lax.fori_loop(0, n_ticks + 1, tick, (leaves, held, worst, rows))
        return self._packing.pack([leaf.T[None] for leaf in leaves]), rows

    def _state(self, leaves: list[Array]) -> BodyState:
        fields = {
            name: tuple(leaf[:, None])
            for path, leaf in zip(self._form.initial, leaves)
            if (name := path.removeprefix("states.")) in BodyState._fields
        }
        return self._data.states.components._replace(**fields)

    def _forces(self, state: BodyState, order: Array | None) -> Array:
        """Return forces [N] and torques [N m] among drones that do not touch, (6, M)."""
        if self._downwash is None:
            return jnp.zeros((6, self._form.n_drones), self._form.dtype)
        wrench = self._downwash(state, self._data.params, order)
        return jnp.concatenate((*wrench.force, *wrench.torque))

    def _contact(
        self, state: BodyState, order: Array | None, free: Callable[[], Array]
    ) -> tuple[Array, ...] | None:
        """Return the wrenches of contacts among drones, six rows (1, M); None if they have none.

        Args:
            state: Their state.
            order: See `downwash_in_order`.
            free: Returns (6, M) the accelerations that they have without contacts.
        """
        if self._meetings is None:
            return None
        meetings, close = self._meetings, self._meetings.among(state, order)

        def touching() -> tuple[Array, ...]:
            acc = [x[None] for x in free()]
            zero = jnp.zeros_like(acc[0])
            rest = ((zero,) * 3, (zero,) * 3), (zero,) * 4
            rate = BodyDerivative(*rest[0], tuple(acc[:3]), tuple(acc[3:]), rest[1])
            wrench = meetings.wrench(state, rate, self._data.params, close)
            return *wrench.force, *wrench.torque

        nothing = no_wrench(state.pos[0])
        return jax.lax.cond(jnp.any(close), touching, lambda: (*nothing.force, *nothing.torque))


def _as_wrench(parts: tuple[Array, ...] | None) -> Wrench | None:
    if parts is None:
        return None
    *force, a, b, c = parts
    return Wrench(tuple(force), (a, b, c))  # type: ignore[arg-type]


def _part(start: Array, tree: Any) -> Any:
    """Return the arrays of a block, whose first drone is given."""
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, start, BLOCK, axis=-1), tree)


def _with_part(whole: Array, part: Array, start: Array) -> Array:
    """Return an array with other values for the drones of a block."""
    return jax.lax.dynamic_update_slice_in_dim(whole, part, start, axis=-1)
