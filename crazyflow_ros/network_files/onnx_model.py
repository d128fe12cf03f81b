"""Models of ONNX: networks of dense layers, one after the other, as PyTorch and others make them.

Exporters surround these layers with much else: casts, shapes, normalisation, values, logarithms of
probabilities. Only what the action is made of is read, see `onnx_graph`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.reference.ops  # now, while files can be opened
from numpy.random import default_rng
from onnx.helper import make_graph, make_model
from onnx.numpy_helper import to_array
from onnx.reference import ReferenceEvaluator

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.network_files import KEY, MOST_LAYERS, MOST_NODES, MOST_NUMBERS, MOST_UNITS
from crazyflow_ros.network_files.onnx_graph import (
    DOMAINS,
    Affine,
    OnnxGraph,
    Other,
    Product,
    Rows,
    Units,
)

_SAMPLES = 16


def read(content: bytes, output: str = "") -> tuple[list[dict[str, str]], dict[str, np.ndarray]]:
    """Return kind and activation of each layer, and arrays: those of all, samples, specification.

    Args:
        content: The file.
        output: Name of the output that is the action, unless the specification names one; empty:
            the first.

    Raises:
        ValueError: It is another kind of file, or a network of another kind.
    """
    model = _model(content)
    held = {entry.key: entry.value for entry in model.metadata_props}
    action = _action(model.graph, _named_output(held[KEY]) if KEY in held else output)
    nodes = _needed(model.graph, action)
    source, shape = _input(model.graph, nodes)
    graph = OnnxGraph(_constants(model.graph, nodes), _opset(model))
    graph.values[source] = Units(shape)
    for node in nodes:
        graph.evaluate(node)
    made = graph.values.get(action)
    if isinstance(made, Other):
        raise ValueError(f"the output {shown(action)!r} is not that of a policy: {made.reason}")
    if not isinstance(made, Units):
        raise ValueError(f"the output {shown(action)!r} does not depend on the observation")
    layers, arrays = _layers(made, math.prod(shape))
    samples = _samples(shape)
    arrays |= {"samples": samples.reshape(_SAMPLES, -1)}
    arrays |= {"expected": _evaluated(model, nodes, source, action, samples)}
    if KEY in held:
        arrays["specification"] = np.array(held[KEY])
    return layers, arrays


def _model(content: bytes) -> Any:
    try:
        model = onnx.load_model_from_string(content)
        graph = model.graph
        for what, n in (("nodes", len(graph.node)), ("constants", len(graph.initializer))):
            if n > MOST_NODES:
                raise ValueError(f"it may have at most {MOST_NODES} {what}, got {n}")
        onnx.checker.check_model(model)
    except ValueError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # protobuf's and onnx's own
        raise ValueError(f"it is not an ONNX model ({shown(str(error))})") from None
    return model


def _named_output(specification: str) -> str:
    """Return the output that a specification names; all else in it is checked elsewhere."""
    try:
        values = json.loads(specification)
    except (ValueError, RecursionError):
        return ""
    name = values.get("output", "") if isinstance(values, dict) else ""
    return name if isinstance(name, str) else ""


def _action(graph: Any, output: str) -> str:
    names = [value.name for value in graph.output]
    if not names:
        raise ValueError("it has no output")
    if output and output not in names:
        raise ValueError(unknown("output", output, names))
    return output or names[0]


def _needed(graph: Any, action: str) -> list[Any]:
    """Return the nodes on which the action depends, in their order."""
    names, found = {action}, []
    for node in reversed(graph.node):
        if names.intersection(node.output):
            names.update(filter(None, node.input))
            found.append(node)
    return found[::-1]


def _constants(graph: Any, nodes: Sequence[Any]) -> dict[str, Any]:
    """Return the constants that nodes use."""
    for node in nodes:
        for attribute in node.attribute:
            _check_place(attribute.t)
    used = {name for node in nodes for name in node.input}
    arrays = {}
    for tensor in graph.initializer:
        if tensor.name in used:
            _check_place(tensor)
            try:
                arrays[tensor.name] = to_array(tensor)
            except (TypeError, ValueError) as error:
                raise ValueError(f"constant {shown(tensor.name)!r}: {shown(str(error))}") from None
    return arrays


def _check_place(tensor: Any) -> None:
    if tensor.data_location or tensor.external_data:
        raise ValueError("its weights are in another file; save all of it as one file")


def _input(graph: Any, nodes: Sequence[Any]) -> tuple[str, tuple[int, ...]]:
    """Return name and shape of one observation, as the only one of a batch."""
    constants = {tensor.name: tensor.dims for tensor in graph.initializer}
    used = {name for node in nodes for name in node.input}
    inputs = [value for value in graph.input if value.name in used and value.name not in constants]
    if len(inputs) != 1:
        names = ", ".join(shown(value.name) for value in inputs)
        raise ValueError(f"the action must depend on one observation, got inputs {names or 'none'}")
    dims = inputs[0].type.tensor_type.shape.dim
    shape = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in dims] or [0, 0]
    *lead, n = shape
    if n == 0:
        n = next(_columns(constants, nodes), 0)
    if any(dim > 1 for dim in lead) or not 1 <= n <= MOST_UNITS:
        has = f"its input {shown(inputs[0].name)!r} has the shape {shown(tuple(shape))}"
        raise ValueError(f"{has}, expected one observation of at most {MOST_UNITS} numbers")
    return inputs[0].name, (*[1] * len(lead), n)


def _columns(constants: dict[str, Any], nodes: Sequence[Any]) -> Iterator[int]:
    """Yield the numbers of inputs of the layers."""
    for node in nodes:
        if node.op_type in ("Gemm", "MatMul") and len(constants.get(node.input[1], ())) == 2:
            is_turned = any(a.name == "transB" and a.i for a in node.attribute)
            yield constants[node.input[1]][int(is_turned)]


def _opset(model: Any) -> int:
    return max(
        (entry.version for entry in model.opset_import if entry.domain in DOMAINS), default=0
    )


def _samples(shape: tuple[int, ...]) -> np.ndarray:
    """Return observations, from small ones to some that meet bounds."""
    numbers = default_rng(0).normal(size=(_SAMPLES, *shape))
    scale = np.geomspace(0.1, 10, _SAMPLES).reshape(-1, *[1] * len(shape))
    return (scale * numbers).astype(np.float32)


def _evaluated(
    model: Any, nodes: Sequence[Any], source: str, action: str, samples: np.ndarray
) -> np.ndarray:
    """Return what ONNX's own evaluator makes of samples, with the nodes of the action alone."""
    graph = model.graph
    inputs = [value for value in graph.input if value.name == source]
    outputs = [value for value in graph.output if value.name == action]
    used = {name for node in nodes for name in node.input}
    constants = [tensor for tensor in graph.initializer if tensor.name in used]
    own = make_graph(nodes, "action", inputs, outputs, constants)
    try:
        evaluator = ReferenceEvaluator(make_model(own, opset_imports=list(model.opset_import)))
        runs: list[Any] = [evaluator.run(None, {source: sample}) for sample in samples]
        return np.stack([run[0] for run in runs]).reshape(len(samples), -1).astype(np.float64)
    except Exception as error:  # of any operator
        raise ValueError(f"ONNX cannot evaluate it ({shown(str(error))})") from None


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
        return (
            self.weights is None
            and np.array_equal(self.rows, np.arange(self.n_in))
            and not np.any(self.offset)
            and bool(np.all(self.scale == 1))
        )

    def append(self, step: Affine | Product | Rows) -> None:
        """Add a step; a product only to a layer without weights."""
        match step:
            case Affine(scale, offset):
                self.scale, self.offset = scale * self.scale, scale * self.offset + offset
            case Rows(rows):
                self.rows = self.rows[rows]
                self.scale, self.offset = self.scale[rows], self.offset[rows]
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


def _layers(units: Units, n: int) -> tuple[list[dict[str, str]], dict[str, np.ndarray]]:
    """Return the layers that steps are."""
    about: list[dict[str, str]] = []
    arrays: dict[str, np.ndarray] = {}
    left = MOST_NUMBERS
    layer = _Layer(n)

    def end(activation: str) -> _Layer:
        nonlocal left
        left -= layer.n_in * len(layer.rows)
        if left < 0 or len(about) == MOST_LAYERS:
            most = f"{MOST_LAYERS} layers and {MOST_NUMBERS} weights"
            raise ValueError(f"the network has more than {most}")
        arrays[f"{len(about)}.weights"], arrays[f"{len(about)}.bias"] = layer.close()
        about.append({"kind": "dense", "activation": activation})
        return _Layer(len(layer.rows))

    for step in units.steps() or []:
        if isinstance(step, str):
            layer = end(step)
            continue
        if isinstance(step, Product) and layer.weights is not None:
            layer = end("identity")
        layer.append(step)
    if not about or not layer.is_identity:
        end("identity")
    return about, arrays
