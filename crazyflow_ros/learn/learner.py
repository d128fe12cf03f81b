"""The interface of learning algorithms, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.learn.batch import Batch, Scales, Spread
from crazyflow_ros.network_files import GRU
from crazyflow_ros.policy.eye import Eye
from crazyflow_ros.policy.network import Dense, Gru, Layer, Network, Patches

T = TypeVar("T")

CHUNK = 20
"""Updates in a call of the compiled function, between two lines of progress."""

_SEEING = ((4, 8), (3, 16))
"""Side of the kernel and channels of each layer that sees pictures."""

_MOST = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of all algorithms.

    Raises:
        ValueError: A number is out of range.
    """

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
    """Numbers by which parts of observations are divided, where they differ from `SCALES`."""
    spread: Spread = field(default_factory=dict)
    """How much the drones differ. Unlike the `randomizers` of an environment, it takes no time to
    compile."""
    fastest: float | None = None
    """Body rate [rad/s] above which the episode of a world of an `Environment` is cut off, see
    `TrainingWorlds.step`; None for the ends of the task alone."""
    shards: int = 1
    """Equal parts of the worlds, each with its own random numbers: a multiple of the devices. The
    result depends on them, but not on how devices and processes share them, except for rounding."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            lowest = 0 if item.name == "seed" else 1
            if item.type == "int" and not (type(value) is int and lowest <= value <= _MOST):
                raise ValueError(f"{item.name} must be from {lowest} to {_MOST}, got {value!r}")
            is_number = item.type == "float" or (item.type == "float | None" and value is not None)
            if is_number and not (isfinite(value) and value > 0):
                raise ValueError(f"{item.name} must be finite and above 0, got {value!r}")
        if self.updates % CHUNK:
            raise ValueError(f"updates must be a multiple of {CHUNK}, got {self.updates}")

    def rng(self, purpose: int, shard: int = 0) -> np.random.Generator:
        """Return the random numbers of a shard for the start (0), or for the chunk 1, 2, ..."""
        return np.random.default_rng([self.seed, 2, purpose, shard])


class Learner(Protocol):
    """A learning algorithm, whose only random inputs are by default the ends of episodes.

    Attributes:
        settings: A `Settings`.
        worlds: The drones that learn, on one device.
        axes: The axis of worlds of each array of the inputs.
    """

    settings: Any
    worlds: Batch
    axes: Any = 1

    def begin(self, shards: Sequence[int] = (0,)) -> Any:
        """Return the state of the training: a named tuple of pytrees of arrays.

        Args:
            shards: Shards whose worlds are the field `worlds`, and whose drones own the field
                `memory`, (N, ...), if there is one. Other fields do not depend on them.
        """
        ...

    def inputs(self, rngs: Sequence[np.random.Generator]) -> Any:
        """Return the random inputs of a chunk of updates: arrays with a leading axis of updates.

        Args:
            rngs: Random numbers of each shard.

        Returns:
            By default, which episodes end after each update, (CHUNK, num_envs) bool.
        """
        shape = CHUNK, self.worlds.num_envs // len(rngs)
        numbers = np.concatenate([rng.random(shape) for rng in rngs], axis=1)
        return numbers < 1 / self.settings.episode

    def update(self, now: Any, inputs: Any) -> tuple[Any, dict[str, Array]]:
        """Return the state after an update, and means over its steps: `cost`, and each term."""
        ...

    def network(self, now: Any) -> Network:
        """Return the policy's network."""
        ...


def means(cost: Array, values: Array, acted: Array, worlds: Batch) -> dict[str, Array]:
    """Return the mean cost and the mean of each term of the task.

    Args:
        cost: Mean cost of all steps.
        values: (..., k) values of the terms in each step.
        acted: (...) bool, whether the step had an action.
        worlds: The worlds of a device.
    """
    if not worlds.terms:
        return {"cost": cost}
    n = jnp.maximum(acted.sum(), 1)
    sums = jnp.where(acted[..., None], values, 0.0).sum(axis=tuple(range(acted.ndim)))
    return {"cost": cost, **dict(zip(worlds.terms, together(sums / n, worlds)))}


def together(x: T, worlds: Batch, weight: Array | None = None) -> T:
    """Return means over all devices of arrays that each device has computed for its own worlds.

    Args:
        x: Arrays.
        worlds: The worlds of a device.
        weight: Weight of the device; None gives all devices the same.
    """
    if worlds.mesh is None:
        return x
    axes = worlds.mesh.axis_names
    if weight is None:
        return jax.lax.pmean(x, axes)
    most = jax.lax.psum(weight, axes)
    share = jax.tree.map(lambda x: jnp.where(weight > 0, x * weight, 0), x)
    return jax.tree.map(lambda x: x / most, jax.lax.psum(share, axes))


def drones_of_shard(settings: Settings, worlds: Batch, minibatches: int = 1) -> int:
    """Return the number of drones in each shard, which must be a multiple of the minibatches.

    Raises:
        ValueError: It is not, or the worlds of a device do not consist of whole shards of equal
            size.
    """
    devices = 1 if worlds.mesh is None else worlds.mesh.size
    if settings.shards % devices or worlds.num_envs * devices % settings.shards:
        raise ValueError(
            f"shards must be a multiple of the number of devices ({devices}) and a divisor of that "
            f"of worlds ({worlds.num_envs * devices}), got {settings.shards}"
        )
    n = worlds.n * devices // settings.shards
    if n % minibatches:
        each = "" if settings.shards == 1 else " of each shard"
        parts = f"the number of drones{each} ({n}) must be a multiple of minibatches"
        raise ValueError(f"{parts}, got {minibatches}")
    return n


def new_network(
    rng: np.random.Generator,
    sizes: tuple[int, ...],
    last: str,
    bias: np.ndarray | float,
    gain: float,
    eye: Eye | None = None,
) -> Network:
    """Return a network of random dense layers of NumPy arrays; JAX would compile for a second.

    Args:
        rng: Random numbers.
        sizes: Number of inputs, units of each hidden layer, and number of outputs.
        last: Activation of the last layer.
        bias: Bias of the last layer.
        gain: Factor of the weights of the last layer.
        eye: The camera whose picture ends the inputs; its layers come first.

    Raises:
        ValueError: The size of the picture is no multiple of the patches of these layers.
    """
    layers: list[Layer] = [] if eye is None else seeing(rng, eye, sizes[0] - eye.size)
    if layers:
        sizes = (layers[-1].n_out, *sizes[1:])
    return Network((*layers, *dense_layers(rng, sizes, last, bias, gain)))


def dense_layers(
    rng: np.random.Generator,
    sizes: tuple[int, ...],
    last: str,
    bias: np.ndarray | float,
    gain: float,
    kept: int = 0,
) -> list[Layer]:
    """Return random dense layers that pass on the first `kept` inputs; see `new_network`."""
    layers, n = list[Layer](), len(sizes) - 1
    for i in range(n):
        is_last, inputs = i == n - 1, sizes[i] + (kept if i else 0)
        weights = rng.normal(size=(sizes[i + 1], inputs)) / np.sqrt(inputs)
        weights *= gain if is_last else 1.0
        biases = np.full(sizes[i + 1], bias if is_last else 0.0, np.float32)
        name = last if is_last else "fast_tanh"
        layers.append(Dense(weights.astype(np.float32), biases, name, kept))  # type: ignore[arg-type]
    return layers


def recurrent_layer(rng: np.random.Generator, n_in: int, n_out: int, kept: int) -> Gru:
    """Return a random recurrent layer with `kept` inputs that it passes on, and `n_in` others."""
    sizes = (n_in + kept, n_out)
    weights: list[Any] = [rng.normal(size=(3 * n_out, n)) / np.sqrt(n) for n in sizes]
    biases: list[Any] = [np.zeros(n) for n in (3 * n_out, 3 * n_out, n_out)]
    given = (x.astype(np.float32) for x in (*weights, *biases))
    return Gru(**dict(zip(GRU, given)), kept=kept)


def seeing(rng: np.random.Generator, eye: Eye, before: int) -> list[Layer]:
    """Return random layers for a picture that follows `before` other inputs.

    Raises:
        ValueError: Width or height is no multiple of the patches of these layers.
    """
    height, width, channels = eye.shape
    side = int(np.prod([kernel for kernel, _ in _SEEING]))
    if height % side or width % side:
        size = f"{eye.width} x {eye.height}"
        raise ValueError(f"width and height of a picture must be multiples of {side}, got {size}")
    layers: list[Layer] = []
    for kernel, outputs in _SEEING:
        shape, inputs = (outputs, channels, kernel, kernel), channels * kernel**2
        weights = rng.normal(size=shape) * np.sqrt(2 / inputs)
        biases: Any = np.zeros(outputs, np.float32)
        layers.append(Patches(weights.astype(np.float32), biases, "relu", before, height, width))
        height, width, channels = height // kernel, width // kernel, outputs
    return layers


def flat(tree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Return a tree of NumPy arrays as one vector, which compiles faster, and the inverse."""
    leaves, treedef = jax.tree.flatten(tree)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1].tolist()

    def back(vector: Any) -> Any:
        """Return the parts of a vector of NumPy or JAX."""
        split = np.split if isinstance(vector, np.ndarray) else jnp.split
        parts: Any = split(vector, ends)
        shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(treedef, shaped)

    vector: Any = np.concatenate([leaf.ravel() for leaf in leaves])
    return vector, back
