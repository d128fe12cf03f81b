"""Models of ONNX: sequences of dense layers, as PyTorch and others export them.

Exporters add much else: casts, shapes, normalisation, values, logarithms of probabilities. Only the
nodes on which the action depends are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.random import default_rng
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_graph, make_model, tensor_dtype_to_np_dtype
from onnx.numpy_helper import to_array
from onnx.reference import ReferenceEvaluator

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.network_files import KEY, MOST_NODES, MOST_UNITS
from crazyflow_ros.network_files.onnx_graph import OnnxGraph, needed, refused
from crazyflow_ros.network_files.onnx_layers import chain_of, layers_of

_SAMPLES = 16


def read(content: bytes, output: str = "") -> tuple[list[dict[str, str]], dict[str, np.ndarray]]:
    """Return the kind and activation of each layer, and all arrays; see `network_files`.

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
    nodes = needed(model.graph.node, action.name)
    used = {name for node in nodes for name in node.input}
    tensors = [tensor for tensor in model.graph.initializer if tensor.name in used]
    source, shape = _observation(model.graph, nodes, tensors)
    constants = {}
    for tensor in tensors:
        with refused(f"constant {shown(tensor.name)!r}"):
            constants[tensor.name] = to_array(tensor)
    kind = tensor_dtype_to_np_dtype(source.type.tensor_type.elem_type)
    observation = (source.name, np.zeros(shape, kind))
    graph = OnnxGraph(nodes, constants, observation, model.opset_import)
    if action.name in graph.values:
        raise ValueError(f"the output {shown(action.name)!r} does not depend on the observation")
    graph.nodes = needed(graph.nodes, action.name)
    layers, arrays = layers_of(chain_of(graph, source.name, action.name), math.prod(shape))
    samples = _samples(shape)
    arrays["samples"] = samples.reshape(_SAMPLES, -1)
    own = make_graph(nodes, "action", [source], [action], tensors)
    arrays["expected"] = _evaluated(make_model(own, opset_imports=model.opset_import), samples)
    if KEY in held:
        arrays["specification"] = np.array(held[KEY])
    return layers, arrays


def _model(content: bytes) -> ModelProto:
    """Return a model within the limits, which ONNX's checker accepts."""
    broken = "it is not an ONNX model"
    with refused(broken):
        model = onnx.load_model_from_string(content)
    graph = model.graph
    for what, n in (("nodes", len(graph.node)), ("constants", len(graph.initializer))):
        if n > MOST_NODES:
            raise ValueError(f"it may have at most {MOST_NODES} {what}, got {n}")
    if graph.sparse_initializer:
        raise ValueError("it has sparse constants, expected plain ones")
    attributes = [attribute.t for node in graph.node for attribute in node.attribute]
    if any(x.data_location or x.external_data for x in (*graph.initializer, *attributes)):
        raise ValueError("its weights are in another file; save all of it as one file")
    with refused(broken):
        onnx.checker.check_model(model)
    return model


def _named_output(specification: str) -> str:
    """Return the output that a specification names; the rest of it is checked elsewhere."""
    try:
        values = json.loads(specification)
    except (ValueError, RecursionError):
        return ""
    name = values.get("output", "") if isinstance(values, dict) else ""
    return name if isinstance(name, str) else ""


def _action(graph: GraphProto, output: str) -> ValueInfoProto:
    outputs = {value.name: value for value in graph.output}
    if not outputs:
        raise ValueError("it has no output")
    if output and output not in outputs:
        raise ValueError(unknown("output", output, outputs))
    return outputs[output] if output else graph.output[0]


def _observation(
    graph: GraphProto, nodes: Sequence[NodeProto], tensors: Sequence[TensorProto]
) -> tuple[ValueInfoProto, tuple[int, ...]]:
    """Return the input that nodes use, and its shape for a batch of one observation."""
    constants = {tensor.name: tensor.dims for tensor in tensors}
    used = {name for node in nodes for name in node.input} - constants.keys()
    inputs = [value for value in graph.input if value.name in used]
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
    return inputs[0], (*[1] * len(lead), n)


def _columns(constants: dict[str, Any], nodes: Sequence[NodeProto]) -> Iterator[int]:
    """Yield the number of inputs of each layer."""
    for node in nodes:
        if node.op_type in ("Gemm", "MatMul") and len(constants.get(node.input[1], ())) == 2:
            is_turned = any(a.name == "transB" and a.i for a in node.attribute)
            yield constants[node.input[1]][int(is_turned)]


def _samples(shape: tuple[int, ...]) -> np.ndarray:
    """Return observations, from small ones to some that meet bounds."""
    numbers = default_rng(0).normal(size=(_SAMPLES, *shape))
    scale = np.geomspace(0.1, 10, _SAMPLES).reshape(-1, *[1] * len(shape))
    return (scale * numbers).astype(np.float32)


def _evaluated(model: ModelProto, samples: np.ndarray) -> np.ndarray:
    """Return what ONNX's own evaluator makes of samples."""
    with refused("ONNX cannot evaluate it"):
        evaluator = ReferenceEvaluator(model)
        (name,) = evaluator.input_names
        runs: list[Any] = [evaluator.run(None, {name: sample}) for sample in samples]
        return np.stack([run[0] for run in runs]).reshape(len(samples), -1).astype(np.float64)
