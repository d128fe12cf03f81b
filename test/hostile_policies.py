"""Files of policies that nobody should make, changed in their bytes or in their content.

The same random numbers make the same files.
"""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from policies import policy_of_layers

from crazyflow_ros.policy import save
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.checked import Specification, plain
from crazyflow_ros.policy.observation import Observation

KINDS = (".policy", ".h5", ".onnx")
OPERATORS = ("Add", "Expand", "Tile", "Reshape", "ConstantOfShape", "Loop", "Sin", "MatMul", "Gemm")
OPERATORS += ("Slice", "Gather", "Concat", "Clip", "Identity", "Sigmoid", "Mul", "Shape", "")
SHAPES = ([], [0], [-1], [4], [1, 13], [13, 1], [2**31] * 2, [2**62] * 3, [-(2**63)], [1] * 70)
NUMBERS = (np.nan, np.inf, -np.inf, 1e30, 1e7, 0.0, 1e-30)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A file of which some bytes are changed, lost, or there twice."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 5, 50))):
        if not changed:
            break
        place = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1 if rng.random() < 0.3:
                del changed[place:]
            case 2:
                changed[place:place] = changed[rng.randrange(len(changed)) :][:200]
            case 3:
                changed[place : place + 8] = rng.choice((b"\xff" * 8, bytes(8), b"\x7f"))
    return bytes(changed)


class PolicyFiles:
    """Makes files.

    Args:
        folder: Where they are written.
        rng: Random numbers.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng, self._n = folder, rng, 0
        policy = policy_of_layers(["tanh"], Observation(), Action.of("cf2x_L250"))
        save(policy, folder / "good.policy")
        self._own = (folder / "good.policy").read_bytes()
        self._specification = plain(Specification.of(policy))
        self._model = _model(json.dumps(self._specification))
        self._makers: dict[str, Callable[[], bytes]] = {
            ".policy": lambda: self._own,
            ".h5": self._hdf5,
            ".onnx": self._onnx,
        }

    def next(self, kind: str, *, well_formed: bool = False) -> Path:
        """Write another file of one of `KINDS`.

        Args:
            kind: Which.
            well_formed: Whether no bytes are changed, and it is no FIFO.
        """
        self._n += 1
        path, rng = self._folder / f"{self._n}{kind}", self._rng
        if not well_formed and rng.random() < 0.02:
            os.mkfifo(path)
            return path
        content = self._makers[kind]()
        is_damaged = not well_formed and rng.random() < 0.5
        path.write_bytes(damaged(content, rng) if is_damaged else content)
        return path

    def _hdf5(self) -> bytes:
        content, rng = io.BytesIO(), self._rng
        with h5py.File(content, "w") as file:
            group = file.create_group("actor/layers")
            for i, (n_out, n_in) in enumerate(((8, 22), (4, 8))):
                layer = group.create_group(str(i))
                layer.attrs["type"] = rng.choice(("dense",) * 9 + ("gru", "", "x" * 10_000))
                layer.attrs["activation_function"] = rng.choice(("TANH", "RELU", "identity", "?"))
                weights = np.full((n_out, n_in), 0.1, np.float32)
                self._store(layer, "weights/parameters", weights)
                self._store(layer, "biases/parameters", weights[:, :1].T)
        return content.getvalue()

    def _store(self, group: Any, name: str, array: np.ndarray) -> None:
        """Write an array, in one of the ways that there are."""
        rng = self._rng
        if rng.random() < 0.6:
            group[name] = array
            return
        if rng.random() < 0.3:
            array = array * rng.choice(NUMBERS)
        like = {"shape": array.shape, "dtype": array.dtype}
        match rng.randrange(7):
            case 0:
                source = rng.choice((__file__, str(self._folder), "/dev/zero", "nowhere"))
                group.create_dataset(name, **like, external=[(source, 0, h5py.h5f.UNLIMITED)])
            case 1:
                group[name] = h5py.ExternalLink(str(self._folder / "other.h5"), "/")
            case 2:
                group[name] = h5py.SoftLink(rng.choice(("/actor", name, "/nowhere")))
            case 3:
                chunks = rng.choice(((1, 1), (4, 4), (2**20, 2**9)))
                options = {"chunks": chunks, "maxshape": (None, None), "fillvalue": 0.5}
                group.create_dataset(name, **like, **options)
            case 4:
                group.create_dataset(name, data=array, chunks=array.shape, compression="gzip")
            case 5:
                shape = rng.choice(((0, 22), (2**40, 2**20), (8,), (8, 22, 1)))
                group.create_dataset(name, shape=shape, dtype=rng.choice(("f2", "f8", "i1", "S9")))
            case 6:
                layout = h5py.VirtualLayout(array.shape, array.dtype)
                layout[:] = h5py.VirtualSource(".", "/actor", array.shape)
                group.create_virtual_dataset(name, layout)

    def _onnx(self) -> bytes:
        model, rng = onnx.ModelProto(), self._rng
        model.CopyFrom(self._model)
        for _ in range(rng.choice((0, 1, 1, 3))):
            self._change(model.graph)
        if rng.random() < 0.2:
            values = self._specification | {rng.choice(("freq", "output", "action", "drone")): "x"}
            text = rng.choice((json.dumps(values), "[" * 50_000, "null", ""))
            helper.set_model_props(model, {"crazyflow_ros": text})
        return model.SerializeToString()

    def _change(self, graph: Any) -> None:
        """Change a node, a constant, or the order of nodes."""
        rng = self._rng
        node, tensor = rng.choice(graph.node), rng.choice(graph.initializer)
        names = [name for each in graph.node for name in (*each.input, *each.output)]
        match rng.randrange(8):
            case 0:
                node.op_type = rng.choice(OPERATORS)
            case 1 if node.input:
                node.input[rng.randrange(len(node.input))] = rng.choice(names)
            case 2:
                shape = np.array(rng.choice(SHAPES), np.int64)
                graph.initializer.append(numpy_helper.from_array(shape, f"s{len(names)}"))
                between = [node.input[0], f"s{len(names)}"]
                kind = rng.choice(("Expand", "Tile", "Reshape"))
                graph.node.insert(0, helper.make_node(kind, between, ["moved"]))
                graph.node[1].input[0] = "moved"
            case 3:
                tensor.dims[:] = rng.choice(SHAPES)
            case 4:
                array = numpy_helper.to_array(self._model.graph.initializer[0])
                changed = np.float32(rng.choice(NUMBERS)) * array
                tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
            case 5:
                tensor.data_location = TensorProto.EXTERNAL
                entry = tensor.external_data.add()
                entry.key, entry.value = "location", rng.choice((__file__, "../x", "/dev/zero"))
            case 6:
                last = graph.node[-1]
                for i in range(rng.choice((30, 2000))):  # each of which doubles
                    make = helper.make_node(
                        rng.choice(("Add", "Mul")), [f"d{i}"] * 2, [f"d{i + 1}"]
                    )
                    graph.node.append(make)
                graph.node.append(helper.make_node("Identity", [f"d{i + 1}"], list(last.output)))
                last.output[0] = "d0"
            case 7:
                node.domain = rng.choice(("ai.onnx", "ai.onnx.ml", "own"))


def _model(specification: str) -> Any:
    """The policy of a good file, as PyTorch exports it."""
    rng = np.random.default_rng(0)
    sizes = {"0.weight": (8, 13), "0.bias": (8,), "2.weight": (4, 8), "2.bias": (4,)}
    constants = [
        numpy_helper.from_array(rng.normal(size=size).astype(np.float32), name)
        for name, size in sizes.items()
    ]
    nodes = [
        helper.make_node("Flatten", ["obs"], ["flat"]),
        helper.make_node("Gemm", ["flat", "0.weight", "0.bias"], ["linear"], transB=1),
        helper.make_node("Tanh", ["linear"], ["tanh"]),
        helper.make_node("Gemm", ["tanh", "2.weight", "2.bias"], ["actions"], transB=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", n])
        for name, n in (("obs", 13), ("actions", 4))
    ]
    graph = helper.make_graph(nodes, "policy", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    helper.set_model_props(model, {"crazyflow_ros": specification})
    return model
