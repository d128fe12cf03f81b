"""What an ONNX graph computes of one observation: steps, one after the other.

Each node is evaluated once. What a node makes of constants is a constant, and what it makes of the
observation is a step after others, or something that no policy can be: then nothing is refused yet,
because exporters also compute what only the shape is needed of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from onnx import ValueInfoProto
from onnx.helper import get_node_attr_value, make_empty_tensor_value_info, make_graph
from onnx.reference import ReferenceEvaluator

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.network_files import MOST_NUMBERS, MOST_UNITS

ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "Relu": ("relu", {}),
    "Tanh": ("tanh", {}),
    "Sigmoid": ("sigmoid", {}),
    "Softplus": ("softplus", {}),
    "Softsign": ("softsign", {}),
    "Gelu": ("gelu", {}),
    "Mish": ("mish", {}),
    "Elu": ("elu", {"alpha": 1.0}),
    "Celu": ("elu", {"alpha": 1.0}),
    "Swish": ("silu", {"alpha": 1.0}),
    "LeakyRelu": ("leaky_relu", {"alpha": 0.01}),
    "Selu": ("selu", {"alpha": 1.67326319, "gamma": 1.05070102}),
    "Abs": ("abs", {}),
    "Erf": ("erf", {}),
}
"""Activation of each operator, with the attributes that it must have, which are its defaults."""

_PATTERNS = {
    ("Mul", "sigmoid"): ("silu", 1.0),
    ("Mul", "softplus", "tanh"): ("mish", 1.0),
    ("Mul", "affine", "erf", "affine"): ("gelu", 2.0),
    ("Div", "abs", "affine"): ("softsign", 1.0),
}
"""What exporters make of activations: units, multiplied with or divided by steps after them. The
activation, and a factor. A comparison with ONNX's own evaluator follows, and tells others apart."""

_MOVES: tuple[str, ...] = (
    *("Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
    *("Transpose", "Unsqueeze"),
)
_ELEMENTWISE: tuple[str, ...] = (
    *("Add", "Cast", "Clip", "Div", "Exp", "Log", "Max", "Min", "Mul", "Neg", "Pow"),
    *("Reciprocal", "Sqrt", "Sub", *ACTIVATIONS),
)
_FROM_SHAPES = ("Concat", "ConstantOfShape", "Shape")
KNOWN = sorted({*_MOVES, *_ELEMENTWISE, *_FROM_SHAPES, "Constant", "Gemm", "MatMul"})
"""Operators of which the action may be made."""
_ERRORS = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What operators raise where their inputs do not fit."""
DOMAINS = ("", "ai.onnx")
"""Names of the domain of ONNX's own operators."""
_UNBOUNDED = 1e30  # beyond which a bound is none, such as the largest number
_FLOATS = (1, 10, 11, 16)  # of TensorProto.DataType

Numbers = np.ndarray


class Affine(NamedTuple):
    """`scale` * x + `offset`, for each unit."""

    scale: Numbers
    offset: Numbers


class Product(NamedTuple):
    """`weights` @ x."""

    weights: Numbers
    """(n_out, n_in)."""


class Rows(NamedTuple):
    """x[`rows`]."""

    rows: Numbers


Step = Affine | Product | Rows | str
"""The last is an activation."""


@dataclass(frozen=True, eq=False)
class Units:
    """Numbers that steps make of the observation."""

    shape: tuple[int, ...]
    before: Units | None = None
    """None: the observation."""
    step: Step = ""

    def then(self, step: Step, shape: tuple[int, ...] | None = None) -> Units:
        """Return what a step makes of them."""
        return Units(self.shape if shape is None else shape, self, step)

    def affine(self, scale: Any, offset: Any) -> Units:
        """Return them times a scale, plus an offset."""
        n = math.prod(self.shape)
        return self.then(Affine(*(np.broadcast_to(x, (n,)) for x in (scale, offset))))

    def steps(self, start: Units | None = None) -> list[Step] | None:
        """Return the steps since `start`, or None if they do not come from there."""
        found: list[Step] = []
        now = self
        while now is not start:
            if now.before is None:
                return None if start else found[::-1]
            found.append(now.step)
            now = now.before
        return found[::-1]


@dataclass(frozen=True)
class Other:
    """What no policy can be."""

    reason: str
    shape: tuple[int, ...] | None = None


Value = Numbers | Units | Other


def described(node: Any) -> str:
    """Return name and operator of a node, for messages."""
    operator = "::".join(filter(None, (node.domain, node.op_type)))
    return f"node {shown(node.name or node.output[0])!r} ({shown(operator)})"


def _reason(node: Any, given: Sequence[Value | None]) -> str:
    """Return why a node makes what no policy can be: because it is given such, or itself."""
    own = f"{described(node)} is not part of one chain of layers, with constants"
    return next((x.reason for x in given if isinstance(x, Other)), own)


def _are_arrays(values: Sequence[Value | None]) -> bool:
    return all(x is None or isinstance(x, np.ndarray) for x in values)


def _work(kind: str, arrays: Sequence[Numbers]) -> int:
    """Return how many numbers an operator computes, at most."""
    shapes = [x.shape for x in arrays]
    match kind:
        case "ConstantOfShape":
            return math.prod(map(abs, arrays[0].tolist()))
        case "Expand":
            return math.prod(np.broadcast_shapes(shapes[0], tuple(arrays[1].tolist())))
        case "Gemm" | "MatMul":
            return arrays[0].size * arrays[1].size
        case "Gather":
            return arrays[0].size * max(1, arrays[1].size)
        case _ if kind in _ELEMENTWISE:
            return math.prod(np.broadcast_shapes(*shapes))
    return sum(x.size for x in arrays)


class OnnxGraph:
    """Evaluates nodes.

    Args:
        values: What is known before: constants, and the observation.
        opset: Version of the operators.
    """

    def __init__(self, values: dict[str, Value], opset: int) -> None:
        self.values, self._opset = values, opset
        self._left = 4 * MOST_NUMBERS  # numbers that may be computed

    def evaluate(self, node: Any) -> None:
        """Evaluate a node, after those that it depends on.

        Raises:
            ValueError: It takes too much, or its inputs do not fit.
        """
        if missing := [name for name in node.input if name and name not in self.values]:
            raise ValueError(f"{described(node)}: {shown(missing[0])!r} is not known before it")
        given = [self.values[name] if name else None for name in node.input]
        if node.domain not in DOMAINS or node.op_type not in KNOWN:
            known = f"is none of the operators of policies: {', '.join(KNOWN)}"
            made: Sequence[Value] = [Other(f"{described(node)} {known}")] * len(node.output)
        else:
            try:
                with np.errstate(all="ignore"):
                    made = self._results(node, given)
            except _ERRORS as error:
                raise ValueError(f"{described(node)}: {shown(str(error))}") from None
        self.values |= zip(node.output, made)

    def _results(self, node: Any, given: list[Value | None]) -> Sequence[Value]:
        kind = node.op_type
        if kind == "Shape" and given[0] is not None and given[0].shape is not None:
            return self._run(node, [np.broadcast_to(0.0, given[0].shape)])
        if _are_arrays(given):
            return self._run(node, given)  # type: ignore[arg-type]
        first, *others = given
        if isinstance(first, Units) and _are_arrays(others):
            if kind in _MOVES:
                return self._moved(node, first, others)
            if kind in ("Gemm", "MatMul"):
                return [self._product(node, first, others)]
        shapes = [() if x is None else x.shape for x in given]
        if kind in _ELEMENTWISE and None not in shapes:
            found = self._elementwise(node, given)
            if found is not None:
                return [found]
            shape = np.broadcast_shapes(*shapes)  # type: ignore[arg-type]
            self._spend(math.prod(shape))
            return [Other(_reason(node, given), shape)]
        return [Other(_reason(node, given))] * len(node.output)

    def _run(self, node: Any, given: Sequence[Numbers | None]) -> list[Numbers]:
        """Return what ONNX's own evaluator makes of arrays, if that is not too much."""
        arrays = [x for x in given if x is not None]
        self._spend(_work(node.op_type, arrays))
        names = [name for name in node.input if name]
        graph = make_graph([node], "node", _named(names), _named(node.output))
        evaluator = ReferenceEvaluator(graph, opsets={"": self._opset})
        return [np.asarray(x) for x in evaluator.run(None, dict(zip(names, arrays)))]

    def _spend(self, n: int) -> None:
        self._left -= n
        if self._left < 0:
            raise ValueError(f"with it, more than {4 * MOST_NUMBERS} numbers would be computed")

    def _moved(self, node: Any, units: Units, others: list[Any]) -> list[Value]:
        """Return what is left of units, by what becomes of their numbers in sequence."""
        n = math.prod(units.shape)
        results: list[Value] = []
        for index in self._run(node, [np.arange(n).reshape(units.shape), *others]):
            if index.size > MOST_UNITS:
                raise ValueError(f"expected at most {MOST_UNITS} units, got {index.size}")
            rows = index.ravel()
            is_same = index.shape == units.shape and np.array_equal(rows, np.arange(n))
            results.append(units if is_same else units.then(Rows(rows), index.shape))
        return results

    def _product(self, node: Any, units: Units, others: list[Any]) -> Value:
        weights, *biases = others
        n = math.prod(units.shape)
        scale, beta = 1.0, 1.0
        if node.op_type == "Gemm":
            if _attribute(node, "transA", 0):
                return Other(f"{described(node)} has transA=1, expected 0")
            scale, beta = (_attribute(node, name, 1.0) for name in ("alpha", "beta"))
            weights = weights if _attribute(node, "transB", 0) else weights.T
        else:
            weights = weights.T
        if weights.ndim != 2 or units.shape[-1:] != (n,) or weights.shape[1] != n:
            raise ValueError(f"weights {weights.shape} do not fit {units.shape} units")
        if len(weights) > MOST_UNITS:
            raise ValueError(f"expected at most {MOST_UNITS} units, got {len(weights)}")
        self._spend(weights.size)
        made = units.then(Product(weights), (*units.shape[:-1], len(weights)))
        bias = biases[0] if biases and biases[0] is not None else 0.0
        return made.affine(scale, beta * _fitting(bias, made.shape))

    def _elementwise(self, node: Any, given: list[Value | None]) -> Value | None:
        """Return what one, or one and constants, become; None if that is no step."""
        kind, first = node.op_type, given[0]
        if kind in ACTIVATIONS and isinstance(first, Units):
            name, expected = ACTIVATIONS[kind]
            for key, default in expected.items():
                value = _attribute(node, key, default)
                if not math.isclose(value, default, rel_tol=1e-6):
                    return Other(f"{described(node)} has {key}={value:g}, expected {default:g}")
            return first.then(name)
        if kind == "Clip" and isinstance(first, Units):
            return _clipped(node, first, given[1:])
        if kind == "Cast" and isinstance(first, Units):
            return first if _attribute(node, "to", 0) in _FLOATS else None
        if kind == "Neg" and isinstance(first, Units):
            return first.affine(-1.0, 0.0)
        if len(given) != 2:
            return None
        left, right = given
        if isinstance(left, Units) and isinstance(right, Units):
            return _pattern(kind, left, right) or (
                _pattern(kind, right, left) if kind == "Mul" else None
            )
        if isinstance(left, Units) and isinstance(right, np.ndarray):
            return _with_constant(kind, left, right)
        if isinstance(right, Units) and isinstance(left, np.ndarray):
            if kind == "Sub":
                kind, right = "Add", right.affine(-1.0, 0.0)
            return None if kind == "Div" else _with_constant(kind, right, left)
        return None


def _named(names: Iterable[str]) -> list[ValueInfoProto]:
    return [make_empty_tensor_value_info(name) for name in names]


def _attribute(node: Any, name: str, default: float) -> Any:
    """Return an attribute of a node."""
    has = any(attribute.name == name for attribute in node.attribute)
    return get_node_attr_value(node, name) if has else default


def _fitting(constant: Any, shape: tuple[int, ...]) -> Numbers:
    return np.broadcast_to(np.asarray(constant, float), shape).ravel()


def _with_constant(kind: str, units: Units, constant: Numbers) -> Units | None:
    shape = np.broadcast_shapes(units.shape, constant.shape)
    if math.prod(shape) != math.prod(units.shape) or constant.dtype.kind not in "fiu":
        return None
    values = _fitting(constant, shape)
    units = units if shape == units.shape else units.then(Rows(np.arange(values.size)), shape)
    match kind:
        case "Add":
            return units.affine(1.0, values)
        case "Sub":
            return units.affine(1.0, -values)
        case "Mul":
            return units.affine(values, 0.0)
        case "Div":
            return units.affine(1 / values, 0.0)
        case "Max":
            return units.affine(1.0, -values).then("relu").affine(1.0, values)
        case "Min":
            return units.affine(-1.0, values).then("relu").affine(-1.0, values)
    return None


def _clipped(node: Any, units: Units, bounds: list[Any]) -> Units | None:
    """Return units within bounds, which are inputs, and were attributes before version 11."""
    if not bounds:
        bounds = [_attribute(node, name, math.nan) for name in ("min", "max")]
    low, high = (float("nan" if x is None else np.asarray(x).item()) for x in (*bounds, None)[:2])
    low, high = max(-math.inf, low), min(math.inf, high)
    if low > -_UNBOUNDED and high < _UNBOUNDED and low < high:
        middle, half = (high + low) / 2, (high - low) / 2
        inside = units.affine(1 / half, -middle / half).then("hard_tanh")
        return inside.affine(half, middle)
    if high >= _UNBOUNDED:
        return units if low <= -_UNBOUNDED else _with_constant("Max", units, np.array(low))
    return _with_constant("Min", units, np.array(high)) if low <= -_UNBOUNDED else None


def _pattern(kind: str, units: Units, others: Units) -> Units | None:
    steps = others.steps(units)
    if steps is None:
        return None
    names = ["affine" if isinstance(x, Affine) else x if isinstance(x, str) else "" for x in steps]
    name, factor = _PATTERNS.get((kind, *names), ("", 1.0))
    if not name:
        return None
    made = units.then(name)
    return made if factor == 1 else made.affine(factor, 0.0)
