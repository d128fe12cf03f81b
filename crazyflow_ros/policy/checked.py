"""Policies built from the content of files, every value of which is checked."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.checks.limits import Limit, shown, text, unknown, vector
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.network_files import DENSE, GRU, MOST_LAYERS, MOST_UNITS
from crazyflow_ros.policy.action import SIZE, Action
from crazyflow_ros.policy.network import Dense, Gru, Layer, Network, Patches, known_activation
from crazyflow_ros.policy.observation import Observation
from crazyflow_ros.policy.policy import Policy

FASTEST = 100_000
"""Largest number of actions per second."""
NUMBER = Limit(1e6, "")
"""Largest weight."""

_LEAST_STD = 1e-6
_MOST_TEXT = 100_000  # characters of JSON
_KINDS: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "dense": (Dense, DENSE),
    "patches": (Patches, DENSE),
    "gru": (Gru, GRU),
}
"""Class and arrays of each kind of layer."""


@dataclass(frozen=True)
class Specification:
    """All of a `Policy` except its numbers, as in JSON."""

    observation: Observation
    action: Action
    freq: int
    drone: str
    dynamics: str = ""
    about: str = ""

    @classmethod
    def of(cls, policy: Policy) -> Specification:
        """Return the specification of a policy."""
        return cls(*(getattr(policy, field.name) for field in fields(cls)))

    def policy(
        self, layers: tuple[Layer, ...], normalisation: tuple[Any, Any] | None = None
    ) -> Policy:
        """Return the policy with the given layers, whose numbers have been checked.

        Args:
            layers: Its layers.
            normalisation: Mean and standard deviation of the observations.

        Raises:
            ValueError: The layers do not fit together, or a number is out of range.
        """
        if not 1 <= len(layers) <= MOST_LAYERS:
            raise ValueError(f"expected 1 to {MOST_LAYERS} layers, got {len(layers)}")
        size = self.observation.size
        for i, layer in enumerate(layers):
            if layer.n_in != size:
                raise ValueError(f"layer {i} has {layer.n_in} inputs, expected {size}")
            size = layer.n_out
        if size != SIZE:
            raise ValueError(f"the network has {size} outputs, expected {SIZE}")
        shape = (self.observation.size,)
        mean, std = (np.zeros(shape), np.ones(shape)) if normalisation is None else normalisation
        mean, std = numbers("mean", mean, shape), numbers("std", std, shape)
        if std.min() < _LEAST_STD:
            raise ValueError(f"std must be at least {_LEAST_STD:g}, got {std.min():g}")
        if not 1 <= self.freq <= FASTEST:
            raise ValueError(f"freq must be from 1 to {FASTEST}, got {self.freq}")
        for name in ("offset", "scale"):
            vector(f"{name} of the action", getattr(self.action, name), (SIZE,), NUMBER)
        if self.dynamics:
            member(Dynamics, self.dynamics)
        text("drone", self.drone)
        text("about", self.about)
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return Policy(Network(layers), jnp.asarray(mean), jnp.asarray(std), **own)


def plain(value: Any) -> Any:
    """Return a dataclass as values of JSON."""
    return json.loads(json.dumps(asdict(value)))


def parsed(content: str) -> Any:
    """Return the values of JSON.

    Raises:
        ValueError: It is too long, not JSON, or nested too deeply.
    """
    if len(content) > _MOST_TEXT:
        raise ValueError(f"its JSON has {len(content)} characters, expected at most {_MOST_TEXT}")
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError(f"its JSON is nested too deeply: {error}") from None


@dataclass(frozen=True)
class LayerNames:
    """All of a layer except its numbers, as in JSON; see `Dense`, `Patches` and `Gru`."""

    kind: str
    activation: str = ""
    kept: int = 0
    height: int = 0
    width: int = 0

    @classmethod
    def of(cls, layer: Layer) -> LayerNames:
        """Return the names of a layer."""
        (kind,) = (name for name, (made, _) in _KINDS.items() if isinstance(layer, made))
        return cls(kind, **{name: x for name, x in vars(layer).items() if name in _FIXED})

    def layer(self, i: int, arrays: dict[str, np.ndarray]) -> Layer:
        """Return a layer, and remove its arrays from a dictionary.

        Args:
            i: Number of the layer.
            arrays: Arrays, whose names begin with the number of their layer.

        Raises:
            ValueError: The kind is unknown, or an array is missing or does not fit.
        """
        if self.kind not in _KINDS:
            raise ValueError(f"layer {i}: {unknown('kind', self.kind, _KINDS)}")
        kind, names = _KINDS[self.kind]
        own = {name: arrays.pop(f"{i}.{name}", None) for name in names}
        if self.kind == "gru":
            n_out = _shape(f"{i}.hidden_weights", own["hidden_weights"])[1]
            n_in = _shape(f"{i}.input_weights", own["input_weights"])[1]
            gates = (3 * n_out,)
            shapes = [(*gates, n_in), (*gates, n_out), gates, gates, (n_out,)]
        else:
            known_activation(self.activation)
            find = self._kernel if self.kind == "patches" else _shape
            shape = find(f"{i}.weights", own["weights"])
            shapes = [shape, shape[:1]]
        checked = {
            name: jnp.asarray(numbers(f"{i}.{name}", own[name], shape))
            for name, shape in zip(names, shapes)
        }
        fixed = {name: getattr(self, name) for name in _FIXED if name in kind.__dataclass_fields__}
        layer: Layer = kind(**checked, **fixed)
        if not 0 <= self.kept <= layer.n_in:
            has = f"layer {i} has {layer.n_in} inputs"
            raise ValueError(f"{has}, of which it cannot keep {self.kept}")
        return layer

    def _kernel(self, name: str, weights: Any) -> tuple[int, ...]:
        """Return the shape of the weights of `Patches`, which suits the picture."""
        shape = np.shape(weights) if isinstance(weights, np.ndarray) else ()
        if len(shape) != 4 or shape[2] != shape[3] or not 0 < np.prod(shape) <= MOST_UNITS**2:
            expected = "channels out, channels in, and twice the side of the kernel"
            raise ValueError(f"{name} must have the shape {expected}, got {shown(shape)}")
        size, kernel = (self.height, self.width), shape[2]
        if not (0 <= self.kept <= MOST_UNITS and all(0 < n <= MOST_UNITS for n in size)):
            sizes = f"kept, height and width must be up to {MOST_UNITS}"
            raise ValueError(f"{name}: {sizes}, got {shown((self.kept, *size))}")
        if any(n % kernel for n in size):
            pixels = f"{self.height} x {self.width} pixels"
            raise ValueError(f"{name}: {pixels} are no multiples of the kernel, {kernel}")
        return shape


_FIXED = tuple(field.name for field in fields(LayerNames)[1:])


def layer_arrays(layers: tuple[Layer, ...]) -> dict[str, np.ndarray]:
    """Return the arrays of layers by the names in files."""
    return {
        f"{i}.{name}": np.asarray(getattr(layer, name))
        for i, layer in enumerate(layers)
        for name in _KINDS[LayerNames.of(layer).kind][1]
    }


def _shape(name: str, array: Any) -> tuple[int, int]:
    shape = np.shape(array) if isinstance(array, np.ndarray) else ()
    if len(shape) != 2 or not all(1 <= n <= MOST_UNITS for n in shape):
        expected = f"a matrix of at most {MOST_UNITS} x {MOST_UNITS} numbers"
        raise ValueError(f"{name} must be {expected}, got {shown(shape)}")
    return shape


def numbers(name: str, array: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of an expected shape, in single precision.

    Raises:
        ValueError: It is missing, of another shape or kind, or holds NaN or a number beyond 1e6.
    """
    if array is None:
        raise ValueError(f"{name} is missing")
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be an array of numbers")
    return vector(name, array, shape, NUMBER).astype(np.float32)
