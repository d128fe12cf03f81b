"""Worlds divided among several devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from crazyflow_ros.compat.crazyflow.utils import world_mask

__all__ = [
    "WORLD_AXIS",
    "build_sharded_data",
    "build_sharded_mjx_data",
    "placement",
    "shard",
    "world_mesh",
]

WORLD_AXIS = "worlds"
"""Name of the axis of a mesh."""


def world_mesh(devices: Sequence[jax.Device]) -> Mesh:
    """Return a mesh of devices among which worlds are divided."""
    auto = (AxisType.Auto,)
    return jax.make_mesh((len(devices),), (WORLD_AXIS,), axis_types=auto, devices=devices)


def placement(data: Any, mesh: Mesh) -> Any:
    """Return the sharding of each array of `SimData`."""
    own, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((WORLD_AXIS,), ()))
    return jax.tree.map(lambda has_worlds: own if has_worlds else whole, world_mask(data))


def shard(data: Any, mesh: Mesh) -> Any:
    """Return `SimData` whose worlds are divided among the devices of a mesh."""
    return jax.device_put(data, placement(data, mesh))


def build_sharded_data(create: Callable[[Any], Any], rng_key: int | Array, mesh: Mesh) -> Any:
    """Return what `create` makes of a random key, computed on the devices of a mesh."""
    key = jax.random.key(rng_key) if isinstance(rng_key, int) else rng_key
    return jax.jit(create, out_shardings=placement(jax.eval_shape(create, key), mesh))(key)


def build_sharded_mjx_data(data: Any, n_worlds: int, mesh: Mesh) -> Any:
    """Return the MJX data of one world for many, divided among the devices of a mesh."""

    def repeated(data: Any) -> Any:
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (n_worlds, *x.shape)), data)

    data = jax.device_put(data, NamedSharding(mesh, PartitionSpec()))
    over = NamedSharding(mesh, PartitionSpec(WORLD_AXIS))
    return jax.jit(repeated, out_shardings=over)(data)
