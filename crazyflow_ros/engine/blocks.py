"""Many drones, block by block in each tick.

XLA makes a loop over the drones of each of the thousands of computations of a tick, all in one
function of LLVM, whose time for loops grows faster than their number: for 1,000 drones it took
minutes. The loops over a block of few drones are unrolled to a few vector instructions, and what
they read and write stays in the first-level cache. What drones do to one another is computed before
the blocks, for all.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import BodyState
from crazyflow_ros.dynamics.forces.aerodynamics import downwash_in_order
from crazyflow_ros.dynamics.forces.jets import FEW, TOGETHER
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.form import Form
from crazyflow_ros.engine.holding_step import HoldingStep
from crazyflow_ros.engine.isolation import HoldableControls
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.sim import Integrator, SimData
from crazyflow_ros.sim.compile.packing import MovingLeaves, Packing, Vectors
from crazyflow_ros.xla.kernels import apart

BLOCK = 32
"""Drones in a block."""
_LAYER = 20.0  # m


def slots_for(n_drones: int) -> int:
    """Return the number of slots to compile for: many drones fill whole blocks."""
    return n_drones if n_drones <= FEW else -(-n_drones // BLOCK) * BLOCK


def is_divided(config: SimulationConfig, n_drones: int, *, by_door: int, gusts: bool) -> bool:
    """Return whether drones are computed block by block.

    Random numbers, those that drones share with a door, collisions, networks and intermediate
    states of an integrator need all of them at once.
    """
    return (
        n_drones > FEW
        and n_drones % BLOCK == 0
        and by_door in (0, n_drones)
        and not (gusts or config.policy or config.drone_collisions)
        and config.estimator == Estimator.none
        and config.integrator != Integrator.rk4
    )


def neighbours_together(pos: np.ndarray) -> np.ndarray:
    """Return drones at (M, 3) in an order in which neighbours follow each other, and its inverse.

    They are in strips of about as many drones as a strip is to have groups, and by height only if
    they are far apart.

    Returns:
        (2, M) integers.
    """
    n_drones = len(pos)
    x, y, z = pos.T
    layer = np.floor(z / _LAYER)
    rank = np.empty(n_drones, int)
    rank[np.lexsort((x, layer))] = np.arange(n_drones)
    strip = rank // int(np.sqrt(n_drones * TOGETHER))
    order = np.lexsort((y, strip))
    inverse = np.empty_like(order)
    inverse[order] = np.arange(n_drones)
    return np.stack((order, inverse))


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
        form: Of all drones.
        data: Data of all drones, for their parameters.
        config: The simulation.
    """

    def __init__(
        self, block: BlockFunction, form: Form, data: SimData, config: SimulationConfig
    ) -> None:
        self._block, self._form, self._data = block, form, data
        self._packing = Packing(list(form.initial.values()))
        self._downwash = downwash_in_order(config.drone_model) if config.downwash else None

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
        leaves = [leaf[0].T for leaf in self._packing.unpack(vectors)]
        held = block.is_held(given[None, :, self._form.inputs["level"]])[0].T
        rows = jnp.zeros((n_drones, block.width), given.dtype)
        constant = given.T, gains.T

        def tick(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            forces, is_last = self._forces(carry[0], order), i == n_ticks

            def one(k: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
                *changing, rows = carry
                start = k * BLOCK
                now = apart(_part, start, (changing, constant, forces))
                (leaves, held, worst), (inputs, gains), force = now
                data = block.split.joined([leaf.T[None] for leaf in leaves], block.fixed)
                data = block.with_inputs(data, inputs.T, wind, gains.T, phase + i, obstacles)
                data = data.replace(
                    states=data.states.replace(force=data.states.force + force.T[None]),
                    controls=data.controls.replace(held=held.T[None]),
                )
                data, worst = block.step.tick(data, is_last, worst)
                controls = data.controls
                assert isinstance(controls, HoldableControls)
                output = jax.lax.cond(
                    is_last,
                    lambda: block.rows(data, inputs.T, block.step.largest(data, worst)),
                    lambda: jnp.zeros((BLOCK, block.width), rows.dtype),
                )
                leaves = [leaf[0].T for leaf in block.split.moving(data)]
                new = leaves, controls.held[0].T, worst
                changing = jax.tree.map(
                    lambda whole, part: jax.lax.dynamic_update_slice_in_dim(
                        whole, part, start, axis=-1
                    ),
                    changing,
                    list(new),
                )
                return *changing, jax.lax.dynamic_update_slice_in_dim(rows, output, start, axis=0)

            done: tuple[Any, ...] = jax.lax.fori_loop(0, n_drones // BLOCK, one, carry)
            return done

        worst = jnp.zeros((1, n_drones), given.dtype)
        leaves, _, _, rows = jax.lax.fori_loop(0, n_ticks + 1, tick, (leaves, held, worst, rows))
        return self._packing.pack([leaf.T[None] for leaf in leaves]), rows

    def _forces(self, leaves: list[Array], order: Array | None) -> Array:
        """Return what drones do to one another, (3, M) [N]."""
        if self._downwash is None:
            return jnp.zeros((3, self._form.n_drones), self._form.dtype)
        fields = {
            name: tuple(leaf[:, None])
            for path, leaf in zip(self._form.initial, leaves)
            if (name := path.removeprefix("states.")) in BodyState._fields
        }
        state = self._data.states.components._replace(**fields)
        return jnp.concatenate(self._downwash(state, self._data.params, order).force)


def _part(start: Array, tree: Any) -> Any:
    """Return the arrays of a block, whose first drone is given."""
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, start, BLOCK, axis=-1), tree)
