"""Files from nobody knows where are read by a process of its own, which takes little."""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from hostile_policies import KINDS, PolicyFiles  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from crazyflow_ros.network_files import MOST_BYTES, MOST_NODES, onnx_model, rltools  # noqa: E402
from crazyflow_ros.policy import load  # noqa: E402
from crazyflow_ros.policy.foreign import read_network  # noqa: E402

WEIGHTS = np.linspace(-1, 1, 4 * 22, dtype=np.float32).reshape(4, 22)


def hdf5(store: Callable[[Any, Path], None], folder: Path) -> bytes:
    """A checkpoint with one layer, whose weights are stored in some way."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        layer = file.create_group("actor/layers/0")
        layer.attrs["type"], layer.attrs["activation_function"] = "dense", "TANH"
        layer["biases/parameters"] = np.zeros((1, 4), np.float32)
        store(layer.create_group("weights"), folder)
    return content.getvalue()


def in_another_file(group: Any, folder: Path) -> None:
    (folder / "secret").write_bytes(bytes(1000))
    place = [(str(folder / "secret"), 16, 4 * 4 * 22)]
    group.create_dataset("parameters", shape=(4, 22), dtype="f4", external=place)


def linked_outward(group: Any, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["parameters"] = WEIGHTS
    group["parameters"] = h5py.ExternalLink(str(folder / "other.h5"), "/parameters")


def put_together(group: Any, folder: Path) -> None:
    layout = h5py.VirtualLayout((4, 22), "f4")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "parameters", (4, 22))
    group.create_virtual_dataset("parameters", layout)


def stored(**how: Any) -> Callable[[Any, Path], None]:
    return lambda group, _: group.create_dataset("parameters", **how)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (stored(data=WEIGHTS), None),
        (stored(data=WEIGHTS, chunks=(2, 5)), None),
        (
            stored(shape=(4, 22), maxshape=(None, None), chunks=(30_000, 3_000), dtype="f4"),
            r"weights .*\(30000, 3000\)",
        ),
        (stored(data=WEIGHTS, compression="lzf"), "weights .*lzf"),
        (in_another_file, "weights .*another file"),
        (linked_outward, "'parameters' in /actor/layers/0/weights .*ExternalLink"),
        (put_together, "weights .*other arrays"),
        (stored(data=np.full((4, 22), "1.0", "S3")), "weights .*real"),
        (lambda *_: None, "'parameters' in /actor/layers/0/weights"),
    ],
)
def test_hdf5_gives_numbers_of_this_file_alone(
    tmp_path: Path, store: Callable[[Any, Path], None], message: str | None
) -> None:
    content = hdf5(store, tmp_path)
    if message is None:
        about, arrays = rltools.read(content)
        assert about == [{"kind": "dense", "activation": "tanh"}]
        np.testing.assert_array_equal(arrays["0.weights"], WEIGHTS)
    else:
        with pytest.raises(ValueError, match=message):
            rltools.read(content)


def test_the_process_reads_no_other_file(tmp_path: Path) -> None:
    """Whatever a library tries: here without the checks of this package."""
    content = hdf5(in_another_file, tmp_path)
    read = "f = h5py.File(content); print(f['actor/layers/0/weights/parameters'][()].sum())"
    for limit, code in (("", 0), ("confine(1 << 30)", 1)):
        script = f"""
import h5py, io, sys
from crazyflow_ros.checks.confinement import confine
content = io.BytesIO(sys.stdin.buffer.read())
{limit}
{read}
"""
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, input=content, capture_output=True, timeout=60)
        assert done.returncode == code, done.stderr
    assert b"unable to open external raw data file" in done.stderr


def test_hdf5_that_never_ends_is_given_up(tmp_path: Path) -> None:
    content = bytearray(hdf5(stored(data=WEIGHTS), tmp_path))
    size = content.index(b"GCOL") + 16 + 8  # of the first text
    content[size : size + 8] = struct.pack("<Q", 0)
    with pytest.raises(ValueError, match="reading it takes more than 3 s of processor time"):
        read_network("rltools", bytes(content))


def test_a_file_that_would_be_gigabytes_is_given_up() -> None:
    nodes = b"\x0a\x00" * (MOST_BYTES // 2 - 100)  # empty ones
    size, length = len(nodes), b""
    while size:
        length += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
    with pytest.raises(ValueError, match=r"MiB of memory|alloc failed"):
        read_network("onnx_model", b"\x3a" + length + nodes)


def dense(**changes: Any) -> Any:
    """A model of one layer, some of whose parts are others."""
    weights = numpy_helper.from_array(np.ones((4, 13), np.float32), "weights")
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
        for name, size in (("x", 13), ("y", 4))
    ]
    node = helper.make_node("Gemm", ["x", "weights"], ["y"], transB=1, name="first")
    parts = {"nodes": [node], "inputs": ends[:1], "outputs": ends[1:], "initializer": [weights]}
    graph = helper.make_graph(name="policy", **{**parts, **changes})
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def outside() -> Any:
    made = dense()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    return made


def with_constant_outside() -> Any:
    tensor = outside().graph.initializer[0]
    node = helper.make_node("Constant", [], ["weights"], value=tensor)
    return dense(nodes=[node, *dense().graph.node], initializer=[])


def own_operator() -> Any:
    own = helper.make_node("Gemm", ["x", "weights"], ["y"], domain="own", name="first")
    made = dense(nodes=[own])
    inner = [helper.make_node("MatMul", ["a", "b"], ["c"])]
    opsets = [helper.make_opsetid("", 17)]
    made.functions.append(helper.make_function("own", "Gemm", ["a", "b"], ["c"], inner, opsets))
    made.opset_import.append(helper.make_opsetid("own", 1))
    return made


def circle() -> Any:
    first = helper.make_node("Add", ["x", "b"], ["a"])
    second = helper.make_node("Tanh", ["a"], ["b"])
    return dense(nodes=[first, second, helper.make_node("Identity", ["b"], ["y"])], initializer=[])


def of_inputs(*shapes: list[Any]) -> Any:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip("xz", shapes)
    ]
    nodes = [helper.make_node("Gemm", ["x", "weights", "z"][: len(shapes) + 1], ["y"], transB=1)]
    return dense(nodes=nodes, inputs=inputs)


def sparse() -> Any:
    made = dense(initializer=[])
    values = numpy_helper.from_array(np.ones(1, np.float32), "weights")
    index = numpy_helper.from_array(np.zeros(1, np.int64), "index")
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, index, [4000, 4000]))
    return made


def of_shape(dims: list[int]) -> Any:
    made = dense()
    made.graph.initializer[0].dims[:] = dims
    return made


def layers(n_layers: int, n: int) -> Any:
    """Many layers that share their weights."""
    weights = numpy_helper.from_array(np.full((n, n), 1e-4, np.float32), "weights")
    names = ["x", *(f"h{i}" for i in range(n_layers - 1)), "y"]
    nodes = [helper.make_node("MatMul", [a, "weights"], [b]) for a, b in pairwise(names)]
    seen = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, n])
    return dense(nodes=nodes, initializer=[weights], inputs=[seen])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (outside(), "another file"),
        (with_constant_outside(), "another file"),
        (own_operator(), r"'first' \(own::Gemm\)"),
        (circle(), "topologically sorted"),
        (of_inputs([1, 13], ["n", 4]), "inputs x, z"),
        (of_inputs([7, 13]), r"'x' .*\(7, 13\)"),
        (of_inputs([1, 5000]), r"'x' .*\(1, 5000\)"),
        (of_inputs([1, 12]), r"'y' \(Gemm\)"),
        (sparse(), "sparse"),
        (of_shape([1 << 40, 1 << 20]), "raw_data size|cannot reshape"),
        (of_shape([-4, -13]), "dimension"),
        (layers(40, 64), "32 layers"),
        (layers(20, 1500), "4194304 weights|would be computed"),
        (dense(nodes=[helper.make_node("Tanh", ["x"], ["y"])] * (MOST_NODES + 1)), "1000 nodes"),
        (dense(initializer=[dense().graph.initializer[0]] * (MOST_NODES + 1)), "1000 constants"),
        (dense(outputs=[]), "no output|not an ONNX model"),
    ],
)
def test_onnx_computes_little_with_its_own_numbers(made: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        onnx_model.read(made.SerializeToString())


def test_steps_that_follow_one_another_are_one_layer() -> None:
    """However many: 900 additions to 4,096 units, of which no matrix is made."""
    wide = numpy_helper.from_array(np.full((4096, 13), 1e-3, np.float32), "wide")
    narrow = numpy_helper.from_array(np.full((4, 4096), 1e-3, np.float32), "narrow")
    one = numpy_helper.from_array(np.ones(4096, np.float32), "one")
    names = [f"h{i}" for i in range(901)]
    nodes = [helper.make_node("Gemm", ["x", "wide"], names[:1], transB=1)]
    nodes += [helper.make_node("Add", [a, "one"], [b]) for a, b in pairwise(names)]
    nodes += [helper.make_node("Relu", names[-1:], ["h"])]
    nodes += [helper.make_node("Gemm", ["h", "narrow"], ["y"], transB=1)]
    about, arrays = onnx_model.read(
        dense(nodes=nodes, initializer=[wide, narrow, one]).SerializeToString()
    )
    assert [layer["activation"] for layer in about] == ["relu", "identity"]
    np.testing.assert_allclose(arrays["0.bias"], 900)


def test_any_file_is_read_or_refused(tmp_path: Path) -> None:
    """Some of those of `make hostile`; their readers are called here, so that it is quick."""
    files, seen = PolicyFiles(tmp_path, random.Random(0)), set()
    readers = {".onnx": onnx_model.read, ".h5": rltools.read}
    for _ in range(60):
        for kind in KINDS:
            path = files.next(kind, well_formed=True)
            try:
                if kind in readers:
                    readers[kind](path.read_bytes())  # type: ignore[operator]
                else:
                    load(path)
                seen.add((kind, "read"))
            except ValueError:
                seen.add((kind, "refused"))
    assert seen >= {(kind, "read") for kind in KINDS}
    assert seen >= {(kind, "refused") for kind in readers}


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    for kind in KINDS:
        path = tmp_path / f"pipe{kind}"
        os.mkfifo(path)
        with pytest.raises(ValueError, match="is not a regular file"):
            load(path, "cf2x_L250")
