"""Training with any algorithm: progress, checkpoints that continue to the bit, curves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from crazyflow_ros.checks.archive import read_arrays, write_arrays
from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file, shown_path
from crazyflow_ros.learn.division import Division, others_answer, whole_array
from crazyflow_ros.learn.worlds import Batch, Scales, Spread
from crazyflow_ros.policy.network import Dense, Network
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.sim.worlds import put

T = TypeVar("T")

CHUNK = 20
"""Updates in a call of the compiled function, between two lines of progress."""

_MOST_BYTES = 256 * 1024 * 1024  # of a checkpoint
_MOST = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings that all algorithms have in common."""

    seed: int = 0
    horizon: int = 50
    """Actions of each drone between two updates."""
    updates: int = 400
    learning_rate: float = 0.016
    """Learning rate of the first update; it falls along a cosine."""
    hidden: int = 64
    """Units of each of two hidden layers."""
    episode: int = 4
    """Mean number of horizons before a world begins a new episode, if its episode does not end."""
    scales: Scales = field(default_factory=dict)
    """Numbers by which parts of observations are divided, where `SCALES` do not suit."""
    spread: Spread = field(default_factory=dict)
    """How much the drones of the worlds differ. Unlike the `randomizers` of an environment, it
    takes no time to compile."""
    shards: int = 1
    """Equal parts of the worlds, each with its own random numbers: a multiple of the devices. The
    result depends on them, but not on how devices and processes share them, except for rounding."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: One is out of range; the message names it.
        """
        for item in fields(self):
            value = getattr(self, item.name)
            lowest = 0 if item.name == "seed" else 1
            if item.type == "int" and not (type(value) is int and lowest <= value <= _MOST):
                raise ValueError(f"{item.name} must be from {lowest} to {_MOST}, got {value!r}")
            if item.type == "float" and not (isfinite(value) and value > 0):
                raise ValueError(f"{item.name} must be finite and above 0, got {value!r}")
        if self.updates % CHUNK:
            raise ValueError(f"updates must be a multiple of {CHUNK}, got {self.updates}")

    def rng(self, purpose: int, shard: int = 0) -> np.random.Generator:
        """Return the random numbers of the beginning (0), or of the chunk 1, 2, ... of a shard."""
        return np.random.default_rng([self.seed, 2, purpose, shard])


class Learner(Protocol):
    """A learning algorithm.

    Attributes:
        settings: Settings, of which some are those of `Settings`.
        worlds: The drones that learn, those of one device.
        axes: For each array of the inputs, its axis of worlds.
    """

    settings: Any
    worlds: Batch
    axes: Any

    def begin(self, shards: Sequence[int] = (0,)) -> Any:
        """Return everything that an update changes: a named tuple of pytrees of arrays.

        Args:
            shards: Those whose worlds are the field `worlds`. Other fields do not depend on them.
        """
        ...

    def inputs(self, rngs: Sequence[np.random.Generator]) -> Any:
        """Return the random inputs of a chunk of updates: arrays with a leading axis of updates.

        Args:
            rngs: Random numbers of each of the shards that the worlds consist of.
        """
        ...

    def update(self, now: Any, inputs: Any) -> tuple[Any, Array]:
        """Return the state after an update, and the mean cost of the steps that it saw."""
        ...

    def network(self, now: Any) -> Network:
        """Return the policy's network."""
        ...


class Progress(NamedTuple):
    """A line of progress."""

    updates: int
    samples: int
    """Actions of all drones."""
    cost: float
    """Mean of the chunk."""
    seconds: float
    """Since `train` was called, compilation included."""


class Training(NamedTuple):
    """Result of a training."""

    policy: Policy
    progress: list[Progress]


def together(x: T, worlds: Batch, weight: Array | None = None) -> T:
    """Return means over the devices of arrays that each device has computed for its own worlds.

    Args:
        x: Arrays.
        worlds: The worlds of a device.
        weight: Weight of the device; by default all have the same.
    """
    if worlds.mesh is None:
        return x
    axes = worlds.mesh.axis_names
    if weight is None:
        return jax.lax.pmean(x, axes)
    most = jax.lax.psum(weight, axes)
    share = jax.tree.map(lambda x: jnp.where(weight > 0, x * weight, 0), x)
    return jax.tree.map(lambda x: x / most, jax.lax.psum(share, axes))


def check_shards(settings: Settings, worlds: Batch) -> None:
    """Check that the worlds of each device consist of whole shards of equal size.

    Raises:
        ValueError: They do not.
    """
    devices = 1 if worlds.mesh is None else worlds.mesh.size
    if settings.shards % devices or worlds.num_envs * devices % settings.shards:
        raise ValueError(
            f"shards must be a multiple of the number of devices ({devices}) and a divisor of that "
            f"of worlds ({worlds.num_envs * devices}), got {settings.shards}"
        )


def train(
    learner: Learner,
    report: Callable[[Progress], None] = lambda _: None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    compiled: Callable[[float], None] = lambda _: None,
) -> Training:
    """Train a policy.

    Args:
        learner: The algorithm.
        report: Called after each chunk of updates.
        checkpoint: File that is written after each chunk.
        resume: Continue from that file: the result is the same, to the bit, as without a pause.
            Devices and processes may have changed, see `Settings.shards`.
        compiled: Called before the first update with the seconds that compiling took.

    With several processes, all have to make the same call; the first one writes the checkpoint.

    Raises:
        ValueError: The checkpoint is damaged, or of other settings.
        OSError: The checkpoint cannot be written.
        FloatingPointError: No update of a chunk has a finite cost.
        ConnectionError: Another process has ended, or cannot be reached.
    """
    settings, started = learner.settings, time.perf_counter()
    division = Division(learner)
    now, progress = division.begin(), list[Progress]()
    if resume:
        if checkpoint is None:
            raise ValueError("resuming needs a checkpoint")
        now, progress = _read(checkpoint, division, now)
        started -= progress[-1].seconds
    first, n_chunks = len(progress), settings.updates // CHUNK
    if first < n_chunks:
        compiling = time.perf_counter()
        update = division.compiled(now, division.inputs(first + 1))
        compiled(time.perf_counter() - compiling)
    for i in range(first, n_chunks):
        with others_answer():
            now, costs = update(now, division.inputs(i + 1))
            done, costs = (i + 1) * CHUNK, np.asarray(costs)
        usable = costs[np.isfinite(costs)]
        if not usable.size:
            raise FloatingPointError(f"the cost is {costs[-1]} after {done} updates")
        cost = float(np.mean(usable))
        samples = done * division.n_drones * settings.horizon
        progress.append(Progress(done, samples, cost, time.perf_counter() - started))
        if checkpoint is not None:
            _write(checkpoint, division, now, progress)
        report(progress[-1])
    return Training(policy_of(learner, learner.network(division.local(now))), progress)


def policy_of(learner: Learner, network: Network) -> Policy:
    """Return a policy with a network, for a file."""
    worlds, scale = learner.worlds, jnp.asarray(learner.worlds.scale)
    kind, task = type(learner).__name__.lower(), worlds.about["task"]
    return Policy(
        network=network,
        mean=jnp.zeros_like(scale),
        std=scale,
        observation=worlds.observation,
        action=worlds.action,
        freq=worlds.freq,
        drone=worlds.drone,
        dynamics=worlds.dynamics,
        about=f"{task}, {kind}, seed {learner.settings.seed}",
    )


def new_network(
    rng: np.random.Generator,
    sizes: tuple[int, ...],
    last: str,
    bias: np.ndarray | float,
    gain: float,
) -> Network:
    """Return a network of random dense layers, made by NumPy: JAX would compile for a second.

    Args:
        rng: Random numbers.
        sizes: Numbers of inputs, of each hidden layer and of outputs.
        last: Activation of the last layer.
        bias: Bias of the last layer.
        gain: Factor of the weights of the last layer.
    """
    layers, n = [], len(sizes) - 1
    for i in range(n):
        is_last = i == n - 1
        weights = rng.normal(size=(sizes[i + 1], sizes[i])) / np.sqrt(sizes[i])
        weights *= gain if is_last else 1.0
        biases = np.full(sizes[i + 1], bias if is_last else 0.0, np.float32)
        name = last if is_last else "fast_tanh"
        layers.append(Dense(jnp.asarray(weights.astype(np.float32)), jnp.asarray(biases), name))
    return Network(tuple(layers))


def _about(division: Division) -> str:
    """Return what must be the same before and after a pause, as far as it can be compared."""
    learner, worlds = division.learner, division.learner.worlds
    n = (division.n_worlds, division.n_drones)
    about = {
        "kind": type(learner).__name__,
        "settings": asdict(learner.settings),
        "drones": (*n, worlds.drone, worlds.dynamics, worlds.freq),
        "observation": asdict(worlds.observation),
        "action": asdict(worlds.action),
        **worlds.about,
    }
    return json.dumps(about, default=repr)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _write(path: str | Path, division: Division, now: Any, progress: list[Progress]) -> None:
    """Write a checkpoint, the same for any number of processes, in the first of them."""
    leaves = [jax.random.key_data(x) if _is_key(x) else x for x in jax.tree.leaves(now)]
    arrays = {f"{i}": whole_array(x) for i, x in enumerate(leaves)}
    about = np.array(_about(division))
    if jax.process_index() == 0:
        write_file(path, write_arrays({"about": about, "progress": np.array(progress), **arrays}))


def _read(path: str | Path, division: Division, like: Any) -> tuple[Any, list[Progress]]:
    """Return the state and the progress of a checkpoint, whose content is not trusted."""
    try:
        with open_file(path, _MOST_BYTES) as file:
            arrays = read_arrays(file, _MOST_BYTES)
        about, rows = arrays.pop("about", None), arrays.pop("progress", None)
        if about is None or str(about) != _about(division):
            raise ValueError("it was written with other settings")
        leaves, treedef = jax.tree.flatten(like)
        if rows is None or rows.ndim != 2 or rows.shape[1] != 4 or not np.isfinite(rows).all():
            raise ValueError("it contains no progress")
        if set(arrays) != {f"{i}" for i in range(len(leaves))}:
            raise ValueError("it holds other arrays")
        read: list[Any] = [arrays[f"{i}"] for i in range(len(leaves))]
        for i, leaf in enumerate(leaves):
            array, is_key = read[i], _is_key(leaf)
            known = jax.random.key_data(leaf) if is_key else jnp.asarray(leaf)
            if array.shape != known.shape or array.dtype != known.dtype:
                raise ValueError(f"an array has shape {array.shape}, expected {known.shape}")
            again = put(array, known.sharding) if division.on_mesh else jnp.asarray(array)
            read[i] = jax.random.wrap_key_data(again) if is_key else again
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot resume from {shown_path(path)}: {error}") from None
    progress = [Progress(int(a), int(b), float(c), float(d)) for a, b, c, d in rows]
    return jax.tree.unflatten(treedef, read), progress


def flat(tree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """Return a pytree as one vector, and the inverse: fewer arrays compile faster."""
    vector, back = ravel_pytree(tree)
    return vector, back
