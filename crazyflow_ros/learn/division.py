"""A training that is divided among the devices of a mesh and their processes.

Each device flies its own worlds and computes the gradient of their cost. Devices wait for each
other once per step of the optimiser, when they add up their gradients within the compiled update.
No process has the worlds of another, except the first one while it writes a checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.experimental.multihost_utils import process_allgather, sync_global_devices
from jax.sharding import NamedSharding, PartitionSpec

from crazyflow_ros.learn.batch import NO_AXIS
from crazyflow_ros.learn.learner import Learner
from crazyflow_ros.sim.worlds import inferring
from crazyflow_ros.xla import compiled_files

Update = Callable[[Any, Any], tuple[Any, dict[str, Array]]]


class Division:
    """A learner, on one device or on those of the mesh of its worlds.

    Attributes:
        learner: The learner.
        n_worlds: Number of worlds on all devices.
        n_drones: Number of drones on all devices.
    """

    def __init__(self, learner: Learner) -> None:
        """Find the shards of this process."""
        worlds, mesh = learner.worlds, learner.worlds.mesh
        self.learner, size = learner, 1 if mesh is None else mesh.size
        self.n_worlds, self.n_drones = worlds.num_envs * size, worlds.n * size
        each = learner.settings.shards // size
        self._shards = [range(each)]
        if mesh is not None:
            self._mesh = inferring(mesh)
            own = jax.process_index()
            mine = [k for k, d in enumerate(mesh.devices.flat) if d.process_index == own]
            self._devices = [mesh.devices.flat[k] for k in mine]
            self._shards = [range(k * each, (k + 1) * each) for k in mine]

    @property
    def on_mesh(self) -> bool:
        """Whether there is a mesh."""
        return self.learner.worlds.mesh is not None

    def begin(self) -> Any:
        """Return the state before the first update; each process makes its own part."""
        if not self.on_mesh:
            state = self.learner.begin(self._shards[0])
            self._drones = self.learner.worlds.drones
            return state
        meet()
        states, drones = [], []
        for shards in self._shards:
            states.append(self.learner.begin(shards))
            drones.append(self.learner.worlds.drones)
        axes, self._axes_of_drones = self.learner.worlds.axes(states[0].worlds, drones[0])
        same = jax.tree.map(lambda _: NO_AXIS, states[0])
        self._axes = same._replace(worlds=axes)
        if hasattr(same, "memory"):
            self._axes = self._axes._replace(memory=0)
        self._drones = self._joined(drones, self._axes_of_drones)
        return self._joined(states, self._axes)

    def inputs(self, chunk: int) -> Any:
        """Return the random inputs of a chunk of updates, 1, 2, ..."""
        rng, learner = self.learner.settings.rng, self.learner
        parts = [learner.inputs([rng(chunk, k) for k in shards]) for shards in self._shards]
        return self._joined(parts, learner.axes) if self.on_mesh else parts[0]

    def compiled(self, now: Any, inputs: Any, what: Sequence[object] = ()) -> Update:
        """Return the compiled function of a chunk of updates.

        Args:
            now: A state.
            inputs: Inputs of a chunk.
            what: See `compiled_files.compiled`.
        """

        def chunk(now: Any, drones: Any, inputs: Any) -> tuple[Any, dict[str, Array]]:
            own = copy(self.learner)
            own.worlds = self.learner.worlds.with_drones(drones)
            return jax.lax.scan(own.update, now, inputs)

        arguments = now, self._drones, inputs
        if not self.on_mesh:
            kept = compiled_files.compiled(lambda: chunk, arguments, *what)
            return lambda now, inputs: kept(now, self._drones, inputs)
        specs = [
            jax.tree.map(self._spec, axes)
            for axes in (self._axes, self._axes_of_drones, self.learner.axes)
        ]
        mapped = jax.shard_map(
            chunk,
            mesh=self._mesh,
            in_specs=tuple(specs),
            out_specs=(specs[0], PartitionSpec()),
            check_vma=False,
        )
        ready = jax.jit(mapped).lower(*arguments).compile()
        return lambda now, inputs: ready(now, self._drones, inputs)

    def local(self, now: Any) -> Any:
        """Return a state whose fields, except `worlds`, are arrays of this process alone."""
        if not self.on_mesh:
            return now
        fields = {k: v for k, v in now._asdict().items() if k != "worlds"}
        return now._replace(**jax.tree.map(lambda x: x.addressable_data(0), fields))

    def _spec(self, axis: int) -> PartitionSpec:
        names = self._mesh.axis_names
        return PartitionSpec() if axis == NO_AXIS else PartitionSpec(*[None] * axis, names)

    def _joined(self, parts: Sequence[Any], axes: Any) -> Any:
        """Return arrays of all devices from the parts that this process has."""

        def joined(axis: int, *arrays: Any) -> Array:
            shape = list(np.shape(arrays[0]))
            if axis != NO_AXIS:
                shape[axis] *= self._mesh.size
            placed = [jax.device_put(x, d) for x, d in zip(arrays, self._devices, strict=True)]
            sharding = NamedSharding(self._mesh, self._spec(axis))
            return jax.make_array_from_single_device_arrays(tuple(shape), sharding, placed)

        return jax.tree.map(joined, axes, *parts)


def meet() -> None:
    """Connect the processes: later they wait longer for each other, as while one of them compiles.

    Raises:
        ConnectionError: Another process has ended, or cannot be reached.
    """
    if jax.process_count() > 1:
        with others_answer():
            sync_global_devices("crazyflow_ros")


_LOST = re.compile("gloo|nccl|heartbeat|coordination service", re.IGNORECASE)


@contextmanager
def others_answer() -> Iterator[None]:
    """Raise a ConnectionError if JAX reports that another process does not answer."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # ValueError from compiled functions
        if jax.process_count() == 1 or not _LOST.search(str(error)):
            raise
        reason = str(error).splitlines()[0]
        raise ConnectionError(
            f"another process has ended or cannot be reached ({reason}): start all of them again, "
            "to resume from a checkpoint"
        ) from error


def whole_array(array: Array | np.ndarray) -> np.ndarray:
    """Return an array with the parts of all processes, all of which must call this.

    Raises:
        ConnectionError: Another process has ended, or cannot be reached.
    """
    if isinstance(array, Array) and not array.is_fully_addressable:
        with others_answer():
            return np.asarray(process_allgather(array, tiled=True))
    return np.asarray(array)
