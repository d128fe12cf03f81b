"""Memory layout of `SimData` while it is stepped: block by block, component by component.

Each block of worlds completes all ticks of a step before the next one starts, so that everything
a tick reads or writes stays in the first-level cache; and each component is a contiguous array, so
that all arithmetic is vectorised.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import ceil, prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import split, stack
from crazyflow_ros.kernels import fits_one_kernel, one_kernel, separate_kernels, zero
from crazyflow_ros.sim.compile.packing import Packing, repeat
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.functional import stored_command
from crazyflow_ros.sim.leaves import changed_leaves, read_leaves, traced
from crazyflow_ros.sim.stages import Stage

_LANES = 128  # drones in a block

Arrays = tuple[Array, ...]


class Packed(NamedTuple):
    """Packed data: leaves that ticks change, and other leaves that they read.

    Both consist of arrays (blocks, rows, worlds, drones), one for each dtype and number of drones
    and one for the command, with one row per component; and of the leaves that all worlds share,
    packed end to end.
    """

    moving: Arrays
    fixed: Arrays


class _Part:
    """Some leaves of the data, and their places in the arrays of `Packed.moving` or `fixed`."""

    def __init__(self, leaves: dict[int, Array], per_world: Sequence[bool], command: int) -> None:
        own: dict[object, list[int]] = {}
        for i, leaf in leaves.items():
            if per_world[i]:
                own.setdefault((leaf.dtype, leaf.shape[1], i == command), []).append(i)
        self.groups = list(own.values())
        self.shared = [i for i in leaves if not per_world[i]]
        self.packing = Packing([leaves[i] for i in self.shared])
        self.n_rows = {i: prod(leaf.shape[2:]) for i, leaf in leaves.items()}


class Blocks:
    """The layout of a `SimData`.

    Attributes:
        divisible: Whether no tick needs all worlds at once.
        n_blocks: Number of blocks.
        moves: For each leaf, whether ticks change it.
        command: Index of the leaf that is the command in force.
        used: For each leaf, whether it is packed because a tick or a command reads or changes it.
    """

    def __init__(
        self, tick: Stage, data: SimData, per_world: Sequence[bool], one_kernel: bool = True
    ) -> None:
        """Lay out `data`.

        Args:
            tick: Advances the data by one tick.
            data: Gives structure, shapes and dtypes.
            per_world: For each leaf, whether its first axis is that of the worlds.
            one_kernel: See `kernels`; a kernel cannot be divided among devices.
        """
        leaves, self._treedef = jax.tree.flatten(data)
        self._shapes = [leaf.shape for leaf in leaves]
        self._n_worlds = data.core.n_worlds
        jaxpr = traced(tick, data)
        self._tick, moves = tick, changed_leaves(jaxpr)
        self.moves = moves
        stored = stored_command(data)
        self.command = next(i for i, leaf in enumerate(leaves) if leaf is stored)
        used = [any(flags) for flags in zip(moves, read_leaves(jaxpr))]
        used[self.command] = True
        self.used = used
        on_cpu = jax.default_backend() == "cpu"
        self._one_kernel = one_kernel and on_cpu and fits_one_kernel(jaxpr)
        # A tick that changes a leaf that all worlds share needs all worlds at once.
        self.divisible = all(own for own, moving in zip(per_world, moves) if moving)
        n_drones = self._n_worlds * data.core.n_drones
        lanes = _LANES if self._one_kernel and self.divisible else n_drones
        n_blocks = ceil(n_drones / lanes)
        self._worlds = ceil(self._n_worlds / n_blocks)
        self.n_blocks = ceil(self._n_worlds / self._worlds)
        self._moving, self._fixed = (
            _Part(
                {i: x for i, x in enumerate(leaves) if used[i] and moves[i] == moving},
                per_world,
                self.command,
            )
            for moving in (True, False)
        )
        in_fixed = not moves[self.command]
        groups = (self._moving, self._fixed)[in_fixed].groups
        self._command_at = int(in_fixed), groups.index([self.command])
        self._unused = {
            i: jax.ShapeDtypeStruct((self._worlds, *x.shape[1:]) if own else x.shape, x.dtype)
            for i, (x, own) in enumerate(zip(leaves, per_world))
            if not used[i]
        }
        self._blocked_command = jax.jit(self._blocked)

    def pack(self, data: SimData) -> Packed:
        """Pack the data."""
        leaves = jax.tree.leaves(data)

        def pack(part: _Part) -> Arrays:
            grouped = [
                jnp.concatenate([self._blocked(leaves[i]) for i in group], axis=1)
                for group in part.groups
            ]
            return (*grouped, *part.packing.pack([leaves[i] for i in part.shared]))

        return Packed(pack(self._moving), pack(self._fixed))

    def unpack(self, packed: Packed) -> dict[int, Array]:
        """Return the leaves that ticks and commands change, by their index in the data."""
        leaves = self._shared_leaves(packed.moving, self._moving)
        for part, arrays in zip((self._moving, self._fixed), packed):
            for group, array in zip(part.groups, arrays):
                for i, rows in self._slices(part, group):
                    if self.moves[i] or i == self.command:
                        leaf = jnp.moveaxis(array[:, rows], 1, -1)
                        leaf = leaf.reshape(-1, *leaf.shape[2:])[: self._n_worlds]
                        leaves[i] = leaf.reshape(self._shapes[i])
        return leaves

    def commanded(self, packed: Packed, value: Array | np.ndarray) -> Packed:
        """Return packed data with another command, (worlds, drones, k)."""
        if self.n_blocks == 1 and isinstance(value, np.ndarray):
            # A compiled call would take longer than a step.
            new = np.ascontiguousarray(value.transpose(2, 0, 1)[None])
        else:
            new = self._blocked_command(value)
        part, place = self._command_at
        arrays: list[Any] = list(packed[part])
        arrays[place] = new
        return Packed(packed.moving, tuple(arrays)) if part else Packed(tuple(arrays), packed.fixed)

    def advance(self, packed: Packed, n_ticks: Array | int) -> Packed:
        """Return packed data after `n_ticks` ticks."""

        def step(blocks: Packed, shared: dict[int, Array], n_ticks: Array) -> SimData:
            return repeat(self._tick, self._join(blocks, shared), n_ticks, self.moves)

        def rows(data: SimData) -> Arrays:
            leaves = jax.tree.leaves(data)
            groups = self._moving.groups
            return tuple(
                jnp.stack([r for i in group for r in _rows(leaves[i])]) for group in groups
            )

        def run(packed: Packed, n_ticks: Array) -> Arrays:
            if self._one_kernel:
                n_ticks += zero(packed)
            shared = self._shared_leaves(packed.moving, self._moving)
            shared |= self._shared_leaves(packed.fixed, self._fixed)
            fixed = packed.fixed[: len(self._fixed.groups)]

            def step_block(k: Array, moving: Arrays) -> Arrays:
                blocks = jax.tree.map(
                    lambda a: jax.lax.dynamic_index_in_dim(a, k, keepdims=False),
                    Packed(moving, fixed),
                )
                update = jax.lax.dynamic_update_index_in_dim
                new = rows(step(blocks, shared, n_ticks))
                return tuple(update(a, row, k, 0) for a, row in zip(moving, new))

            with separate_kernels(n_ticks > -1) if self._one_kernel else nullcontext():
                if self.n_blocks > 1:
                    return jax.lax.fori_loop(0, self.n_blocks, step_block, packed.moving)
                moving = packed.moving[: len(self._moving.groups)]
                blocks = jax.tree.map(lambda a: a[0], Packed(moving, fixed))
                data = step(blocks, shared, n_ticks)
                leaves = jax.tree.leaves(data)
                common = self._moving.packing.pack([leaves[i] for i in self._moving.shared])
                return (*(a[None] for a in rows(data)), *common)

        advance = one_kernel(run) if self._one_kernel else run
        return Packed(advance(packed, jnp.asarray(n_ticks)), packed.fixed)

    def _join(self, blocks: Packed, shared: dict[int, Array]) -> SimData:
        """Return the data of one block. Leaves that no tick reads are zero."""
        leaves = {i: jnp.zeros(x.shape, x.dtype) for i, x in self._unused.items()} | shared
        for part, arrays in zip((self._moving, self._fixed), blocks):
            for group, array in zip(part.groups, arrays):
                for i, rows in self._slices(part, group):
                    leaf = stack(tuple(array[rows]))
                    leaves[i] = leaf.reshape(self._worlds, *self._shapes[i][1:])
        data: SimData = jax.tree.unflatten(self._treedef, [leaves[i] for i in sorted(leaves)])
        return data.replace(core=data.core.replace(n_worlds=self._worlds))

    def _shared_leaves(self, arrays: Arrays, part: _Part) -> dict[int, Array]:
        return dict(zip(part.shared, part.packing.unpack(arrays[len(part.groups) :])))

    def _slices(self, part: _Part, group: list[int]) -> list[tuple[int, slice]]:
        """Return for each leaf its rows in the array of a group."""
        slices, start = [], 0
        for i in group:
            slices.append((i, slice(start, start + part.n_rows[i])))
            start += part.n_rows[i]
        return slices

    def _blocked(self, leaf: Array) -> Array:
        """Convert (worlds, drones, ...) to (blocks, rows, worlds, drones).

        Copies of the last world fill the last block.
        """
        missing = self.n_blocks * self._worlds - self._n_worlds
        leaf = leaf.reshape(*leaf.shape[:2], -1)
        leaf = jnp.pad(leaf, ((0, missing), (0, 0), (0, 0)), mode="edge")
        return jnp.moveaxis(leaf.reshape(self.n_blocks, self._worlds, *leaf.shape[1:]), -1, 1)


def _rows(leaf: Array) -> tuple[Array, ...]:
    """Return (worlds, drones, ...) as arrays (worlds, drones)."""
    return split(leaf.reshape(*leaf.shape[:2], -1))
