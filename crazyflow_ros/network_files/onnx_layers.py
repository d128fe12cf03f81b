"""The dense layers of an ONNX graph, put together from the steps that lead to the action."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto
from onnx.helper import get_node_attr_value

from crazyflow_ros.network_files import MOST_LAYERS, MOST_NUMBERS, MOST_UNITS
from crazyflow_ros.network_files.onnx_graph import (
    ACTIVATIONS,
    MOVES,
    OPERATORS,
    OnnxGraph,
    described,
    is_known,
    refused,
)

_PATTERNS = {
    ("Mul", "sigmoid"): ("silu", 1.0),
    ("Mul", "softplus", "tanh"): ("mish", 1.0),
    ("Mul", "Affine", "erf", "Affine"): ("gelu", 2.0),
    ("Div", "abs", "Affine"): ("softsign", 1.0),
}
"""How exporters write activations: units, multiplied with or divided by steps after them. The
activation, and a factor. A comparison with ONNX's own evaluator follows, and tells others apart."""
_UNBOUNDED = 1e30  # beyond which a bound is none, such as the largest number
_FLOATS = (1, 10, 11, 16)  # of TensorProto.DataType


class Affine(NamedTuple):
    """`scale` * x[`rows`] + `offset`, where numbers are those of all units."""

    scale: Any = 1.0
    offset: Any = 0.0
    rows: Any = slice(None)


class Product(NamedTuple):
    """`weights` @ x."""

    weights: np.ndarray
    """(n_out, n_in)."""


Step = Affine | Product | str
"""The last is an activation."""
Chain = tuple[Step, ...]
"""Steps, one after the other."""


def chain_of(graph: OnnxGraph, observation: str, action: str) -> Chain:
    """Return the steps from the observation to the action.

    Raises:
        ValueError: A node is no such step, or has too many outputs; the message names it.
    """
    chains: dict[str, Chain] = {observation: ()}
    for node in graph.nodes:
        if not is_known(node):
            known = f"is none of the operators of policies: {', '.join(OPERATORS)}"
            raise ValueError(f"{described(node)} {known}")
        with refused(described(node)):
            made = _chains(graph, node, chains)
        if made is None:
            chain = "is not part of one chain of layers, with constants"
            raise ValueError(f"{described(node)} {chain}")
        chains |= zip(node.output, made)
    return chains[action]


def _chains(graph: OnnxGraph, node: NodeProto, before: dict[str, Chain]) -> list[Chain] | None:
    """Return the chains of the outputs of a node; None if it is no step of a chain."""
    most = max(math.prod(graph.shape(name)) for name in node.output if name)
    if most > MOST_UNITS:
        raise ValueError(f"expected at most {MOST_UNITS} units, got {most}")
    kind, made = node.op_type, graph.shape(node.output[0])
    sources = [name for name in node.input if name in before]
    constants = [graph.values.get(name) for name in node.input if name not in before]
    chain, shape, is_first = before[sources[0]], graph.shape(sources[0]), node.input[0] in before
    steps: Chain | None = None
    if len(sources) > 1:
        chain, other = (before[name] for name in sources[:2])
        if kind == "Mul" and len(other) < len(chain):
            chain, other = other, chain
        steps = _pattern(kind, chain, other)
    elif is_first and kind in MOVES:
        numbers = np.arange(math.prod(shape))
        rows = [x.ravel() for x in graph.run(node, [numbers.reshape(shape), *constants])]
        return [chain if np.array_equal(x, numbers) else (*chain, Affine(rows=x)) for x in rows]
    elif is_first and kind in ("Gemm", "MatMul"):
        steps = _product(node, constants, shape, made)
    elif kind == "Clip" or not constants:
        steps = _of_units(node, constants)
    elif len(constants) == 1 and math.prod(made) == math.prod(shape):
        constant = np.broadcast_to(np.asarray(constants[0], float), made).ravel()
        steps = _with_constant(kind, constant, is_first)
    return None if steps is None else [(*chain, *steps)]


def _pattern(kind: str, units: Chain, others: Chain) -> Chain | None:
    """Return the activation of units that are multiplied with, or divided by, others."""
    rest = others[len(units) :]
    names = [x if isinstance(x, str) else type(x).__name__ for x in rest]
    name, factor = _PATTERNS.get((kind, *names), ("", 1.0))
    if not name or not all(a is b for a, b in zip(units, others)):
        return None
    return (name,) if factor == 1 else (name, Affine(factor))


def _product(
    node: NodeProto, constants: list[Any], shape: tuple[int, ...], made: tuple[int, ...]
) -> Chain:
    (weights, bias), n = (*constants, None)[:2], math.prod(shape)
    scale, beta, is_turned = 1.0, 1.0, False
    if node.op_type == "Gemm":
        if _attribute(node, "transA", 0):
            raise ValueError("transA is 1, expected 0")
        scale, beta = (_attribute(node, name, 1.0) for name in ("alpha", "beta"))
        is_turned = _attribute(node, "transB", 0)
    weights = weights if is_turned else weights.T
    if weights.ndim != 2 or shape[-1:] != (n,) or weights.shape[1] != n:
        raise ValueError(f"weights {weights.shape} do not fit {shape} units")
    offset = np.broadcast_to(np.asarray(0.0 if bias is None else bias, float), made).ravel()
    return Product(weights), Affine(scale, beta * offset)


def _of_units(node: NodeProto, bounds: list[Any]) -> Chain | None:
    """Return the steps of an operator of units alone, or with bounds."""
    kind = node.op_type
    if kind == "Clip":  # its bounds were attributes before version 11
        given = bounds or [_attribute(node, name, math.nan) for name in ("min", "max")]
        return _clipped(*(math.nan if x is None else float(x) for x in (*given, None)[:2]))
    if kind == "Neg":
        return (Affine(-1.0),)
    if kind == "Cast" and _attribute(node, "to", 0) in _FLOATS:
        return ()
    if kind not in ACTIVATIONS:
        return None
    name, expected = ACTIVATIONS[kind]
    for key, default in expected.items():
        value = _attribute(node, key, default)
        if not math.isclose(value, default, rel_tol=1e-6):
            raise ValueError(f"{key} is {value:g}, expected {default:g}")
    return (name,)


def _attribute(node: NodeProto, name: str, default: float) -> Any:
    has = any(attribute.name == name for attribute in node.attribute)
    return get_node_attr_value(node, name) if has else default


def _with_constant(kind: str, constant: np.ndarray, is_second: bool) -> Chain | None:
    """Return the steps of an operator of units and a constant, in one of both orders."""
    match kind:
        case "Add":
            return (Affine(offset=constant),)
        case "Sub":
            return (Affine(offset=-constant) if is_second else Affine(-1.0, constant),)
        case "Mul":
            return (Affine(constant),)
        case "Div" if is_second:
            return (Affine(1 / constant),)
        case "Max":
            return _bounded(1.0, constant)
        case "Min":
            return _bounded(-1.0, constant)
    return None


def _clipped(low: float, high: float) -> Chain | None:
    """Return the steps to units within bounds, which may be NaN or immense: then there is none."""
    low, high = max(-_UNBOUNDED, low), min(_UNBOUNDED, high)
    if low == -_UNBOUNDED:
        return () if high == _UNBOUNDED else _bounded(-1.0, high)
    if high == _UNBOUNDED:
        return _bounded(1.0, low)
    if low >= high:
        return None
    middle, half = (high + low) / 2, (high - low) / 2
    return Affine(1 / half, -middle / half), "hard_tanh", Affine(half, middle)


def _bounded(sign: float, bound: Any) -> Chain:
    """Return the steps to units that are at least a bound; if the sign is -1, at most."""
    return Affine(sign, -sign * bound), "relu", Affine(sign, bound)


class _Layer:
    """The layer that steps add to, in double precision."""

    def __init__(self, n: int) -> None:
        self.n_in = n
        self.weights: np.ndarray | None = None  # none: each input is an output
        self.rows = np.arange(n)
        self.scale, self.offset = np.ones(n), np.zeros(n)

    @property
    def is_identity(self) -> bool:
        """Whether nothing that counts was added."""
        is_moved = self.weights is not None or not np.array_equal(self.rows, np.arange(self.n_in))
        return not is_moved and not self.offset.any() and bool((self.scale == 1).all())

    def append(self, step: Affine | Product) -> None:
        """Add a step; a product only to a layer without weights."""
        match step:
            case Affine(scale, offset, rows):
                self.rows = self.rows[rows]
                self.scale = scale * self.scale[rows]
                self.offset = scale * self.offset[rows] + offset
            case Product(weights):
                n = len(weights)
                self.weights = np.zeros((n, self.n_in))
                np.add.at(self.weights.T, self.rows, (weights * self.scale).T)
                self.offset = weights @ self.offset
                self.rows, self.scale = np.arange(n), np.ones(n)

    def close(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and bias."""
        if self.weights is None:
            weights = np.zeros((len(self.rows), self.n_in))
            weights[np.arange(len(self.rows)), self.rows] = self.scale
            return weights, self.offset
        return self.weights[self.rows] * self.scale[:, None], self.offset


def layers_of(chain: Chain, n: int) -> tuple[list[dict[str, str]], dict[str, np.ndarray]]:
    """Return the kind and activation of each layer, and all arrays; the first has `n` inputs.

    Raises:
        ValueError: There are too many layers or weights.
    """
    about: list[dict[str, str]] = []
    arrays: dict[str, np.ndarray] = {}
    left, layer = MOST_NUMBERS, _Layer(n)

    def end(activation: str) -> _Layer:
        nonlocal left
        left -= layer.n_in * len(layer.rows)
        if left < 0 or len(about) == MOST_LAYERS:
            most = f"{MOST_LAYERS} layers and {MOST_NUMBERS} weights"
            raise ValueError(f"the network has more than {most}")
        arrays[f"{len(about)}.weights"], arrays[f"{len(about)}.bias"] = layer.close()
        about.append({"kind": "dense", "activation": activation})
        return _Layer(len(layer.rows))

    for step in chain:
        if isinstance(step, str):
            layer = end(step)
            continue
        if isinstance(step, Product) and layer.weights is not None:
            layer = end("identity")
        layer.append(step)
    if not about or not layer.is_identity:
        end("identity")
    return about, arrays
