"""Files of ONNX: dense layers one after the other, as trained with PyTorch and others.

ONNX says what the network computes; what it observes and commands is JSON, see
`checked.Specification`: in the model's metadata under the key `crazyflow_ros`, or in a file of the
same name that ends in `.json`. What was read is compared with ONNX's reference evaluator.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.extras import extra
from crazyflow_ros.limits import read_text, shown, unknown
from crazyflow_ros.plain_values import convert
from crazyflow_ros.policy.checked import (
    MOST_BYTES,
    MOST_LAYERS,
    MOST_UNITS,
    Specification,
    dense,
    numbers,
    parsed,
)
from crazyflow_ros.policy.network import Dense
from crazyflow_ros.policy.policy import Policy

KEY = "crazyflow_ros"
"""Key of the specification in the model's metadata."""

_MOST_NODES = 8 * MOST_LAYERS
_ACTIVATIONS = {
    "Relu": ("relu", {}),
    "Tanh": ("tanh", {}),
    "Sigmoid": ("sigmoid", {}),
    "Softsign": ("softsign", {}),
    "Elu": ("elu", {"alpha": 1.0}),
    "LeakyRelu": ("leaky_relu", {"alpha": 0.01}),
}
"""Activation of each operator, with the attributes that it must have, which are its defaults."""
_SAMPLES, _TOLERANCE = 16, 1e-4


def read(file: BinaryIO, sidecar: Path) -> Policy:
    """Return the policy of an open file.

    Args:
        file: The file.
        sidecar: File with the specification, if the model has no metadata.

    Raises:
        ValueError: It is another kind of file, or a network of another kind.
        ModuleNotFoundError: onnx is not installed.
    """
    with extra("onnx"):
        import onnx
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:  # it has grown since
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    try:
        model = onnx.load_model_from_string(content)
        onnx.checker.check_model(model)
    except Exception as error:  # protobuf's and onnx's own
        raise ValueError(f"it is not an ONNX model ({shown(str(error))})") from None
    held = {entry.key: entry.value for entry in model.metadata_props}
    if KEY not in held and not sidecar.exists():
        raise ValueError(
            "it does not say what the network observes and commands: add metadata "
            f"{KEY!r}, or a file {sidecar.name}"
        )
    values = parsed(held[KEY] if KEY in held else read_text(sidecar, MOST_BYTES))
    if not isinstance(values, dict):
        raise ValueError(f"its specification must be values by name, got {shown(values)}")
    specification: Specification = convert(values, Specification, "specification")
    policy = specification.policy(_Chain(model.graph, specification.observation.size).layers)
    _compare(model, policy)
    return policy


class _Chain:
    """The layers of a graph in which each node takes the result of the one before it."""

    def __init__(self, graph: Any, size: int) -> None:
        from onnx.numpy_helper import to_array

        if len(graph.node) > _MOST_NODES:
            raise ValueError(f"it may have at most {_MOST_NODES} nodes, got {len(graph.node)}")
        self._constants = {tensor.name: to_array(_own(tensor)) for tensor in graph.initializer}
        inputs = [value.name for value in graph.input if value.name not in self._constants]
        if len(inputs) != 1 or len(graph.output) != 1:
            raise ValueError("the network must have one input and one output")
        self.layers: tuple[Dense, ...] = ()
        # What comes after the last activation, in double precision.
        self._weights, self._bias = np.eye(size), np.zeros(size)
        now = inputs[0]
        for node in graph.node:
            if node.op_type == "Constant":
                self._constants[node.output[0]] = to_array(_own(node.attribute[0].t))
            elif list(node.input).count(now) != 1 or len(node.output) != 1:
                raise ValueError(f"{node.op_type} is not part of one chain of layers")
            else:
                self._append(node, now)
                now = node.output[0]
        if now != graph.output[0].name:
            raise ValueError("the output is not the end of one chain of layers")
        self._end_layer("identity")

    def _append(self, node: Any, now: str) -> None:
        from onnx.helper import get_attribute_value

        given = {a.name: get_attribute_value(a) for a in node.attribute}
        kind = node.op_type
        if kind in _ACTIVATIONS:
            name, expected = _ACTIVATIONS[kind]
            if any(abs(given.get(k, v) - v) > 1e-6 for k, v in expected.items()):
                raise ValueError(f"{kind} has {given}, expected {expected}")
            self._end_layer(name)
        elif kind in _AFFINE and node.input[0] == now:
            others = [self._constant(kind, name) for name in node.input[1:]]
            self._then(*_AFFINE[kind](others, given, len(self._bias)))
        elif kind in ("Add", "Mul"):
            self._then(
                *_AFFINE[kind]([self._constant(kind, node.input[0])], given, len(self._bias))
            )
        elif kind != "Identity":
            known = (*_AFFINE, *_ACTIVATIONS, "Identity")
            raise ValueError(unknown("operator", kind, known))

    def _constant(self, kind: str, name: str) -> np.ndarray:
        array = self._constants.get(name)
        if array is None or array.dtype.kind != "f" or array.ndim > 2:
            raise ValueError(f"{kind} needs a constant vector or matrix of numbers")
        if max(array.shape, default=1) > MOST_UNITS:
            raise ValueError(f"{kind} may have at most {MOST_UNITS} units, got {array.shape}")
        return array.astype(float)

    def _then(self, weights: np.ndarray, bias: np.ndarray) -> None:
        if weights.ndim != 2 or weights.shape[1] != len(self._bias) or bias.ndim != 1:
            raise ValueError(f"weights {weights.shape} do not fit {len(self._bias)} units")
        self._weights = weights @ self._weights
        self._bias = weights @ self._bias + bias

    def _end_layer(self, activation: str) -> None:
        where = str(len(self.layers))
        self.layers += (dense(where, self._weights, self._bias, activation),)
        size = len(self._bias)
        self._weights, self._bias = np.eye(size), np.zeros(size)


def _own(tensor: Any) -> Any:
    if tensor.data_location:
        raise ValueError("its weights are in another file; save all of it as one file")
    return tensor


def _gemm(others: list[np.ndarray], given: dict[str, Any], _: int) -> tuple[np.ndarray, np.ndarray]:
    if given.get("transA", 0):
        raise ValueError("Gemm has transA=1, expected 0")
    weights = others[0] if given.get("transB", 0) else others[0].T
    bias = others[1].ravel() if len(others) > 1 else np.zeros(1)
    bias = np.broadcast_to(bias, (len(weights),))
    return given.get("alpha", 1.0) * weights, given.get("beta", 1.0) * bias


def _each(scale: np.ndarray | float, offset: np.ndarray | float, size: int) -> Any:
    scale, offset = (np.broadcast_to(np.ravel(x), (size,)) for x in (scale, offset))
    return np.diag(scale), offset


_AFFINE: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "Gemm": _gemm,
    "MatMul": lambda others, _given, _size: (others[0].T, np.zeros(others[0].shape[-1])),
    "Add": lambda others, _, size: _each(1.0, others[0], size),
    "Sub": lambda others, _, size: _each(1.0, -others[0], size),
    "Mul": lambda others, _, size: _each(others[0], 0.0, size),
    "Div": lambda others, _, size: _each(1 / others[0], 0.0, size),
}
"""Weights and bias of each operator, from its constants, its attributes and the number of units."""


def _compare(model: Any, policy: Policy) -> None:
    """Refuse a policy that does not compute what ONNX's reference evaluator does."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    name = evaluator.input_names[0]
    samples = np.random.default_rng(0).normal(size=(_SAMPLES, policy.network.n_in))
    for sample in samples.astype(np.float32):
        try:
            (expected,) = evaluator.run(None, {name: sample[None]})
        except Exception as error:  # of any operator
            raise ValueError(f"ONNX cannot evaluate it ({shown(str(error))})") from None
        found = np.asarray(policy.network.apply(jnp.asarray(sample[None])))
        numbers("its output", np.asarray(expected), found.shape)
        if not np.allclose(found, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
            worst = float(np.abs(found - expected).max())
            raise ValueError(f"its output differs from that of ONNX by {worst:g}")
