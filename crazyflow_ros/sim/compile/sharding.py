"""Blocks of worlds on each device of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import PartitionSpec

from crazyflow_ros.sim.compile.blocks import Blocks, Packed
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds


class ShardedBlocks(Blocks):
    """`Blocks` of the worlds on each device; the methods take the arrays of all devices.

    Devices do not wait for each other during a step.
    """

    def __init__(self, tick: Stage, data: SimData, worlds: Worlds) -> None:
        """Lay out `data`, divided as in `worlds`."""
        super().__init__(tick, worlds.of_one_device(data), worlds.owned(data))
        mesh = worlds.mesh
        assert mesh is not None
        over, whole = PartitionSpec(mesh.axis_names), PartitionSpec()
        arrays: list[Any] = [
            (over,) * len(part.groups) + (whole,) * len(part.packing.dtypes)
            for part in (self._moving, self._fixed)
        ]
        packed = Packed(*arrays)
        specs = worlds.specs(data)

        def mapped(fn: Callable[..., Any], in_specs: Any, out_specs: Any) -> Callable[..., Any]:
            return jax.shard_map(
                fn, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
            )

        def advance(packed: Packed, n_ticks: Array) -> Packed:
            return Blocks.advance(self, packed, n_ticks)

        self._pack = mapped(super().pack, (specs,), packed)
        self._unpack = mapped(super().unpack, (packed,), over)
        self._advance = mapped(advance, (packed, whole), packed)
        self._blocked_command = jax.jit(mapped(self._blocked, (over,), over))

    def pack(self, data: SimData) -> Packed:
        """Pack the data."""
        packed: Packed = self._pack(data)
        return packed

    def unpack(self, packed: Packed) -> dict[int, Array]:
        """Return the leaves that ticks and commands change, by their index in the data."""
        leaves: dict[int, Array] = self._unpack(packed)
        return leaves

    def commanded(self, packed: Packed, value: Array | np.ndarray) -> Packed:
        """Return packed data with another command, (worlds, drones, k)."""
        return super().commanded(packed, jnp.asarray(value))

    def advance(self, packed: Packed, n_ticks: Array | int) -> Packed:
        """Return packed data after `n_ticks` ticks."""
        after: Packed = self._advance(packed, jnp.asarray(n_ticks))
        return after


def blocks_of(tick: Stage, data: SimData, worlds: Worlds) -> Blocks:
    """Return the layout of `data` on one device, or on those of a mesh.

    A tick that changes leaves that all worlds share, such as the random key, needs all worlds at
    once; XLA then divides its work among the devices.
    """
    if worlds.mesh is not None:
        blocks = ShardedBlocks(tick, data, worlds)
        if blocks.divisible:
            return blocks
    return Blocks(tick, data, worlds.owned(data), one_kernel=worlds.mesh is None)
