"""An ONNX graph, in which everything that depends only on constants and shapes is evaluated.

ONNX's own rules give the shape of each value before ONNX's own evaluator computes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import onnx.reference.ops  # noqa: F401 - now, while files can be opened
from onnx import NodeProto, OperatorSetIdProto, TypeProto
from onnx.defs import get_schema
from onnx.helper import make_function, make_tensor_type_proto, np_dtype_to_tensor_dtype
from onnx.numpy_helper import from_array
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_node_outputs

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.network_files import MOST_NUMBERS

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
MOVES: tuple[str, ...] = (
    *("Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
    *("Transpose", "Unsqueeze"),
)
"""Operators that only move numbers."""
OPERATORS = sorted(
    {
        *(*MOVES, *ACTIVATIONS, "Gemm", "MatMul", "Concat", "Constant", "ConstantOfShape", "Shape"),
        *("Add", "Cast", "Clip", "Div", "Exp", "Log", "Max", "Min", "Mul", "Neg", "Pow"),
        *("Reciprocal", "Sqrt", "Sub"),
    }
)
"""Operators of which the action may be made."""
_MOST = 4 * MOST_NUMBERS  # numbers that may be computed
_REASON = 200  # characters of an error


def described(node: NodeProto) -> str:
    """Return the name and the operator of a node, for messages."""
    operator = "::".join(filter(None, (node.domain, node.op_type)))
    return f"node {shown(node.name or node.output[0])!r} ({shown(operator)})"


def is_known(node: NodeProto) -> bool:
    """Whether the operator of a node is one of `OPERATORS`."""
    return not node.domain and node.op_type in OPERATORS


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn ONNX's many kinds of errors into ValueErrors whose messages begin with `what`."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).removeprefix("[ShapeInferenceError] ").split())
        raise ValueError(f"{what}: {shown(reason, _REASON)}") from None


def needed(nodes: Iterable[NodeProto], action: str) -> list[NodeProto]:
    """Return the nodes on which a value depends, in their order."""
    names, found = {action}, []
    for node in reversed([*nodes]):
        if names.intersection(node.output):
            names.update(filter(None, node.input))
            found.append(node)
    return found[::-1]


class OnnxGraph:
    """A graph with all shapes, evaluated as far as it does not depend on the observation's numbers.

    Args:
        nodes: Its nodes, each after those that it depends on.
        constants: Its constants by name.
        observation: Name and type of its only input.
        opsets: Versions of the operators.

    Attributes:
        values: Constants and what is computed from them, by name.
        nodes: The nodes that are left.

    Raises:
        ValueError: A node takes too much, or its inputs do not fit.
    """

    def __init__(
        self,
        nodes: Iterable[NodeProto],
        constants: dict[str, np.ndarray],
        observation: tuple[str, TypeProto],
        opsets: Sequence[OperatorSetIdProto],
    ) -> None:
        self.values, self.nodes = constants, list[NodeProto]()
        self._types, self._opsets = dict([observation]), list(opsets)
        self._types |= {name: _type_of(x) for name, x in constants.items()}
        left = _MOST
        for node in nodes:
            with refused(described(node)):
                types = self._inferred(node)
                self._types |= types
                left -= sum(math.prod(self.shape(name)) for name in types)
                if left < 0:
                    raise ValueError(f"with it, more than {_MOST} numbers would be computed")
                given = self._given(node) if types else None
                if given is None:
                    self.nodes.append(node)
                else:
                    results = zip(node.output, self.run(node, given))
                    self.values |= {name: x for name, x in results if name}

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value."""
        return tuple(abs(dim.dim_value) for dim in self._types[name].tensor_type.shape.dim)

    def run(self, node: NodeProto, given: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Return the outputs of a node for some inputs, by ONNX's own evaluator."""
        feeds = {name: x for name, x in zip(node.input, given) if x is not None}
        own = make_function("", "own", [*feeds], node.output, [node], self._opsets)
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in ReferenceEvaluator(own).run(None, feeds, {})]

    def _inferred(self, node: NodeProto) -> dict[str, TypeProto]:
        """Return the types of the outputs of a node; none if an input or the node is unknown."""
        names = {name for name in node.input if name}
        if not (is_known(node) and names <= self._types.keys()):
            return {}
        (version,) = (opset.version for opset in self._opsets if not opset.domain)
        small = [name for name in names & self.values.keys() if self.values[name].ndim < 2]
        types = infer_node_outputs(
            get_schema(node.op_type, version),
            node,
            {name: self._types[name] for name in names},
            {name: from_array(self.values[name]) for name in small},  # shapes and indices
            opset_imports=self._opsets,
        )
        for name, made in types.items():
            tensor = made.tensor_type
            sizes = [dim.HasField("dim_value") for dim in tensor.shape.dim]
            if not tensor.HasField("shape") or not all(sizes):
                raise ValueError(f"ONNX cannot tell the shape of {shown(name)!r}")
        return types

    def _given(self, node: NodeProto) -> list[np.ndarray | None] | None:
        """Return the inputs of a node, if it can be evaluated; any array has a shape."""
        if node.op_type == "Shape":
            return [np.broadcast_to(0.0, self.shape(node.input[0]))]
        if all(name in self.values for name in node.input if name):
            return [self.values.get(name) for name in node.input]
        return None


def _type_of(array: np.ndarray) -> TypeProto:
    return make_tensor_type_proto(np_dtype_to_tensor_dtype(array.dtype), array.shape)
