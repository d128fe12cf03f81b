"""An ONNX graph, in which everything that depends only on constants and shapes is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import onnx.reference.ops  # noqa: F401 - now, while files can be opened
from onnx import NodeProto, OperatorSetIdProto
from onnx.helper import make_function
from onnx.reference import ReferenceEvaluator

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
        reason = " ".join(str(error).split())
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
    """A graph, evaluated as far as it does not depend on the numbers of the observation.

    ONNX's own evaluator computes all nodes for one observation, which tells the shapes.

    Args:
        nodes: Its nodes, each after those that it depends on.
        constants: Its constants by name.
        observation: Name of its only input, and the observation.
        opsets: Versions of the operators.

    Attributes:
        values: Constants and what is computed from them, by name.
        nodes: The nodes that are left.

    Raises:
        ValueError: A node takes too much, or its inputs do not fit.
        MemoryError: A node takes more memory than there is.
    """

    def __init__(
        self,
        nodes: Iterable[NodeProto],
        constants: dict[str, np.ndarray],
        observation: tuple[str, np.ndarray],
        opsets: Sequence[OperatorSetIdProto],
    ) -> None:
        self.values, self.nodes = constants, list[NodeProto]()
        self._seen, self._opsets = dict([observation]), list(opsets)
        left = _MOST
        for node in nodes:
            known, names = self.values | self._seen, [name for name in node.input if name]
            if not (is_known(node) and known.keys() >= set(names)):
                self.nodes.append(node)
                continue
            with refused(described(node)):
                results = self.run(node, [known.get(name) for name in node.input])
                left -= sum(x.size for x in results)
                if left < 0:
                    raise ValueError(f"with it, more than {_MOST} numbers would be computed")
            is_left = node.op_type != "Shape" and not self._seen.keys().isdisjoint(names)
            found = self._seen if is_left else self.values
            found |= {name: x for name, x in zip(node.output, results) if name}
            if is_left:
                self.nodes.append(node)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value."""
        return (self._seen[name] if name in self._seen else self.values[name]).shape

    def run(self, node: NodeProto, given: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Return the outputs of a node for some inputs, by ONNX's own evaluator."""
        feeds = {name: x for name, x in zip(node.input, given) if x is not None}
        own = make_function("", "own", [*feeds], node.output, [node], self._opsets)
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in ReferenceEvaluator(own).run(None, feeds, {})]
