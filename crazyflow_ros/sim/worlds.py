"""The axis of worlds: which arrays have it, and on which devices they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.shapes import Shapes, is_param


class Worlds:
    """The worlds of a simulation, in equal parts on the devices of a mesh if there is one."""

    def __init__(self, data: SimData, mixed: bool, mesh: Mesh | None) -> None:
        """Record number and shapes of the worlds.

        Args:
            data: Data with parameters that all worlds share.
            mixed: Whether the parameters have an axis of drones.
            mesh: Devices for the worlds; None leaves them where JAX puts arrays.

        Raises:
            ValueError: The worlds cannot be divided evenly.
        """
        self.shapes = Shapes(data, mixed)
        self._n_worlds = data.core.n_worlds
        each_of(self._n_worlds, mesh, "n_worlds")
        self.mesh = mesh and inferring(mesh)

    def __eq__(self, other: object) -> bool:
        """Return whether code that is compiled for these worlds also serves the others."""
        return isinstance(other, Worlds) and (self.mesh, self.shapes) == (other.mesh, other.shapes)

    def __hash__(self) -> int:
        return hash((self.mesh, self.shapes))

    def owned(self, data: SimData) -> list[bool]:
        """Return for each leaf whether its first axis is that of the worlds.

        Parameters may also have that axis.

        Raises:
            ValueError: The leading axes of a parameter are not axes of drones or worlds.
        """
        flags = []
        for path, leaf in jax.tree.leaves_with_path(data):
            if is_param(path):
                lead = self.shapes.lead(path, leaf)
                flags.append(len(lead) == 2 and lead[0] == self._n_worlds)
            else:
                flags.append(_has_worlds(path))
        return flags

    def specs(self, data: SimData) -> SimData:
        """Return for each leaf along which axes of the mesh it is divided."""
        assert self.mesh is not None
        over, whole = PartitionSpec(self.mesh.axis_names), PartitionSpec()
        specs = [over if own else whole for own in self.owned(data)]
        tree: SimData = jax.tree.unflatten(jax.tree.structure(data), specs)
        return tree

    def shardings(self, data: SimData) -> SimData:
        """Return the sharding of each leaf."""
        mesh = self.mesh
        assert mesh is not None
        shardings: SimData = jax.tree.map(lambda spec: NamedSharding(mesh, spec), self.specs(data))
        return shardings

    def placed(self, data: SimData) -> SimData:
        """Return data with each world on its device.

        Within a transformation, this is only a constraint.
        """
        if self.mesh is None:
            return data
        shardings = self.shardings(data)
        if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(data)):
            return jax.lax.with_sharding_constraint(data, shardings)
        return jax.tree.map(put, data, shardings)

    def placed_array(self, array: Array | np.ndarray) -> Array | np.ndarray:
        """Return an array with an axis of worlds, each world on its device."""
        if self.mesh is None:
            return array
        return put(
            jnp.asarray(array), NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names))
        )

    def on_each_device(self, fn: Callable[..., list[Array]]) -> Callable[..., list[Array]]:
        """Return a function of arrays (rows, worlds, drones), computed on the device of each world.

        Devices do not wait for each other.

        Args:
            fn: Function of a list of such arrays and a list of arrays that all worlds share, which
                returns a list of such arrays.
        """
        if self.mesh is None:
            return fn
        over, whole = PartitionSpec(None, self.mesh.axis_names), PartitionSpec()
        mapped: Callable[..., list[Array]] = jax.shard_map(
            fn, mesh=self.mesh, in_specs=(over, whole), out_specs=over, check_vma=False
        )
        return mapped


def inferring(mesh: Mesh) -> Mesh:
    """Return a mesh on which functions need not specify shardings: the compiler infers them."""
    return Mesh(mesh.devices, mesh.axis_names)


def _has_worlds(path: tuple[Any, ...]) -> bool:
    """Return whether a leaf has an axis of worlds, if it is no parameter."""
    return path[0].name != "core" or path[1].name == "steps"  # others are common to all worlds


def repeated(data: SimData, n_worlds: int) -> SimData:
    """Return the data of one world as those of many: views of NumPy, which take no memory."""

    def view(path: tuple[Any, ...], leaf: Array) -> Any:
        if is_param(path) or not _has_worlds(path):
            return leaf
        return np.broadcast_to(np.asarray(leaf), (n_worlds, *leaf.shape[1:]))

    many: SimData = jax.tree.map_with_path(view, data)
    return many.replace(core=many.core.replace(n_worlds=n_worlds))


def each_of(n: int, mesh: Mesh | None, name: str) -> int:
    """Return how many of `n` worlds each device has.

    Raises:
        ValueError: The worlds cannot be divided evenly; the message calls them `name`.
    """
    size = 1 if mesh is None else mesh.size
    if n % size:
        raise ValueError(f"{name} must be a multiple of the mesh's {size} devices, got {n}")
    return n // size


def of_world(array: Array, world: int) -> Array:
    """Return the part of an array with an axis of worlds that belongs to a world.

    Raises:
        ValueError: Another process has that world.
    """
    first, end = array.shape[0], 0
    for shard in array.addressable_shards:
        start = (shard.index[0].start or 0) if shard.index else 0
        first, end = min(first, start), max(end, start + len(shard.data))
        if start <= world < start + len(shard.data):
            return shard.data[world - start]
    raise ValueError(f"world {world} is that of another process; this one has {first} to {end - 1}")


def put(array: Array | np.ndarray, sharding: Sharding) -> Array:
    """Return an array with a sharding; all processes give the same array."""
    if isinstance(array, Array):
        if array.sharding.is_equivalent_to(sharding, array.ndim):
            return array
        if not array.is_fully_addressable:
            return jax.device_put(array, sharding)
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    # All processes have the same array, so nothing is sent.
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(put(jax.random.key_data(array), sharding))
    values = np.asarray(array)
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])
