"""Policies that are built from numbers of files, all of which are checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.checks.limits import Limit, shown, text, unknown, vector
from crazyflow_ros.control import Control
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


@dataclass(frozen=True)
class ActionNumbers:
    """An `Action`."""

    control: str
    offset: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def of(cls, action: Action) -> ActionNumbers:
        """Return the numbers of an action."""
        return cls(str(action.control), action.offset, action.scale)


@dataclass(frozen=True)
class Specification:
    """All of a `Policy` except its numbers, as in JSON."""

    observation: Observation
    action: ActionNumbers
    freq: int
    drone: str
    dynamics: str = ""
    about: str = ""

    @classmethod
    def of(cls, policy: Policy) -> Specification:
        """Return the specification of a policy."""
        rest = (policy.freq, policy.drone, policy.dynamics, policy.about)
        return cls(policy.observation, ActionNumbers.of(policy.action), *rest)

    def policy(
        self, layers: tuple[Layer, ...], normalisation: tuple[Any, Any] | None = None
    ) -> Policy:
        """Return a policy whose layers, which are checked, fit together.

        Args:
            layers: Its layers.
            normalisation: Mean and standard deviation of the observations.

        Raises:
            ValueError: Something does not fit; the message names it.
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
        if self.dynamics:
            member(Dynamics, self.dynamics)
        return Policy(
            Network(layers),
            jnp.asarray(mean),
            jnp.asarray(std),
            self.observation,
            self._action(),
            self.freq,
            text("drone", self.drone),
            self.dynamics,
            text("about", self.about),
        )

    def _action(self) -> Action:
        offset, scale = (
            vector(f"{name} of the action", getattr(self.action, name), (SIZE,), NUMBER).tolist()
            for name in ("offset", "scale")
        )
        return Action(member(Control, self.action.control), tuple(offset), tuple(scale))


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


def dense(where: str, weights: Any, bias: Any, activation: str, kept: int = 0) -> Dense:
    """Return a dense layer whose numbers are checked."""
    n_out, n_in = _shape(f"{where}.weights", weights)
    return Dense(
        jnp.asarray(numbers(f"{where}.weights", weights, (n_out, n_in))),
        jnp.asarray(numbers(f"{where}.bias", bias, (n_out,))),
        known_activation(activation),
        _kept(where, kept, n_in),
    )


def _kept(where: str, kept: int, n_in: int) -> int:
    """Return how many inputs a layer keeps, a number that is checked."""
    if not 0 <= kept <= n_in:
        raise ValueError(f"layer {where} has {n_in} inputs, of which it cannot keep {kept}")
    return kept


def gru(where: str, arrays: Mapping[str, Any], kept: int = 0) -> Gru:
    """Return a recurrent layer whose numbers are checked."""
    n_out = _shape(f"{where}.hidden_weights", arrays["hidden_weights"])[1]
    n_in = _shape(f"{where}.input_weights", arrays["input_weights"])[1]
    shapes = ((3 * n_out, n_in), (3 * n_out, n_out), (3 * n_out,), (3 * n_out,), (n_out,))
    checked: dict[str, Any] = {
        name: jnp.asarray(numbers(f"{where}.{name}", arrays[name], shape))
        for name, shape in zip(GRU, shapes)
    }
    return Gru(**checked, kept=_kept(where, kept, n_in))


def patches(where: str, weights: Any, bias: Any, names: LayerNames) -> Patches:
    """Return a convolution whose numbers are checked."""
    shape = np.shape(weights) if isinstance(weights, np.ndarray) else ()
    if len(shape) != 4 or shape[2] != shape[3] or not 0 < np.prod(shape) <= MOST_UNITS**2:
        expected = "channels out, channels in, and twice the side of the kernel"
        raise ValueError(f"{where}.weights must have the shape {expected}, got {shown(shape)}")
    kept, height, width, kernel = names.kept, names.height, names.width, shape[2]
    if not (0 <= kept <= MOST_UNITS and 0 < height <= MOST_UNITS and 0 < width <= MOST_UNITS):
        raise ValueError(
            f"layer {where}: kept, height and width must be up to {MOST_UNITS}, got "
            f"{shown((kept, height, width))}"
        )
    if height % kernel or width % kernel:
        size = f"{height} x {width}"
        raise ValueError(f"layer {where}: {size} pixels are no multiples of the kernel, {kernel}")
    return Patches(
        jnp.asarray(numbers(f"{where}.weights", weights, shape)),
        jnp.asarray(numbers(f"{where}.bias", bias, shape[:1])),
        known_activation(names.activation),
        kept,
        height,
        width,
    )


_ARRAYS = {"dense": DENSE, "patches": DENSE, "gru": GRU}


@dataclass(frozen=True)
class LayerNames:
    """All of a layer except its numbers, as in JSON."""

    kind: str
    activation: str = ""
    kept: int = 0
    """See `Dense`, `Patches` and `Gru`."""
    height: int = 0
    """See `Patches`."""
    width: int = 0

    @classmethod
    def of(cls, layer: Layer) -> LayerNames:
        """Return the names of a layer."""
        match layer:
            case Dense():
                return cls("dense", layer.activation, layer.kept)
            case Patches():
                place = layer.kept, layer.height, layer.width
                return cls("patches", layer.activation, *place)
            case _:
                return cls("gru", kept=layer.kept)

    def layer(self, i: int, arrays: dict[str, np.ndarray]) -> Layer:
        """Return the layer of number `i`, and take its arrays, which are checked.

        Raises:
            ValueError: The kind is unknown, or an array is missing or does not fit.
        """
        if self.kind not in _ARRAYS:
            raise ValueError(f"layer {i}: {unknown('kind', self.kind, _ARRAYS)}")
        own = {name: arrays.pop(f"{i}.{name}", None) for name in _ARRAYS[self.kind]}
        if self.kind == "gru":
            return gru(str(i), own, self.kept)
        if self.kind == "patches":
            return patches(str(i), own["weights"], own["bias"], self)
        return dense(str(i), own["weights"], own["bias"], self.activation, self.kept)


def layer_arrays(layers: Sequence[Layer]) -> dict[str, np.ndarray]:
    """Return the arrays of layers by the names in files."""
    return {
        f"{i}.{name}": np.asarray(getattr(layer, name))
        for i, layer in enumerate(layers)
        for name in _ARRAYS[LayerNames.of(layer).kind]
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
