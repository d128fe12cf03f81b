"""Chains of dense layers in ONNX are read, and checked against ONNX's own evaluator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.checked import ActionNumbers, Specification, plain
from crazyflow_ros.policy.files import load
from crazyflow_ros.policy.observation import Observation

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

RNG = np.random.default_rng(0)
SPECIFICATION = Specification(
    Observation(), ActionNumbers.of(Action.of("cf2x_L250")), 50, "cf2x_L250"
)
SIZES = {"w0": (13, 8), "b0": (8,), "w1": (8, 8), "b1": (8,), "w2": (8, 4), "b2": (4,)}
CONSTANTS = {name: RNG.normal(size=size).astype(np.float32) / 3 for name, size in SIZES.items()}
CONSTANTS |= {"mean": RNG.normal(size=13).astype(np.float32), "std": np.full(13, 2, np.float32)}
CONSTANTS |= {"w0_t": CONSTANTS["w0"].T.copy(), "half": np.float32([0.5])}

Nodes = list[tuple[str, list[str], dict]]
USUAL: Nodes = [
    ("Sub", ["mean"], {}),
    ("Div", ["std"], {}),
    ("Gemm", ["w0_t", "b0"], {"transB": 1}),
    ("Elu", [], {}),
    ("MatMul", ["w1"], {}),
    ("Add", ["b1"], {}),
    ("Relu", [], {}),
    ("Gemm", ["w2", "b2"], {"alpha": 0.5, "beta": 2.0}),
    ("Tanh", [], {}),
    ("Mul", ["half"], {}),
]


def written(path: Path, nodes: Nodes, specification: object = SPECIFICATION) -> Path:
    made, now = [], "seen"
    for i, (kind, others, given) in enumerate(nodes):
        made.append(helper.make_node(kind, [now, *others], [f"x{i}"], **given))
        now = f"x{i}"
    used = {name for _, others, _ in nodes for name in others} & CONSTANTS.keys()
    tensors = [numpy_helper.from_array(CONSTANTS[name], name) for name in sorted(used)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", "k"]) for n in ("seen", now)]
    graph = helper.make_graph(made, "policy", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    if specification is not None:
        text = specification if isinstance(specification, str) else json.dumps(plain(specification))
        helper.set_model_props(model, {"crazyflow_ros": text})
    path.write_bytes(model.SerializeToString())
    return path


def test_computes_what_onnx_does(tmp_path: Path) -> None:
    path = written(tmp_path / "usual.onnx", USUAL)
    policy = load(path)
    seen = RNG.normal(size=(100, 13)).astype(np.float32)
    (expected,) = ReferenceEvaluator(str(path)).run(None, {"seen": seen})
    np.testing.assert_allclose(policy.network.apply(seen), expected, atol=1e-5)
    assert len(policy.network.layers) == 4 and Specification.of(policy) == SPECIFICATION


def test_the_specification_may_be_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path / "bare.onnx", USUAL, None)
    with pytest.raises(ValueError, match=r"metadata 'crazyflow_ros', or a file bare\.json"):
        load(path)
    path.with_suffix(".json").write_text(json.dumps(plain(SPECIFICATION)))
    assert Specification.of(load(path)) == SPECIFICATION


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda nodes: [*nodes, ("Sin", [], {})], "there is no operator 'Sin', only Gemm"),
        (lambda nodes: nodes[:-3], "8 outputs, expected 4"),
        (lambda nodes: [*nodes[:3], ("Elu", [], {"alpha": 0.5}), *nodes[4:]], "Elu has"),
        (lambda nodes: [*nodes, ("Add", ["x3"], {})], "needs a constant"),
        (lambda nodes: [*nodes, ("MatMul", ["w1"], {})], "do not fit 4 units"),
        (lambda nodes: nodes + [("Identity", [], {})] * 300, "at most 256 nodes"),
    ],
)
def test_refuses_other_networks(
    tmp_path: Path, change: Callable[[Nodes], Nodes], message: str
) -> None:
    path = written(tmp_path / "other.onnx", change(USUAL))
    with pytest.raises(ValueError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ("{", "Expecting"),
        ("[1]", "must be values by name"),
        ("[" * 50_000, "nested too deeply"),
        ("{" + " " * 200_000 + "}", "JSON has 200002 characters"),
        (json.dumps({"freq": 50}), "missing"),
        (json.dumps(plain(SPECIFICATION) | {"freq": -1}), "freq must be from 1"),
    ],
)
def test_refuses_other_specifications(tmp_path: Path, specification: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(written(tmp_path / "other.onnx", USUAL, specification))


def test_refuses_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "none.onnx"
    for content in (b"", b"nothing", written(tmp_path / "a.onnx", USUAL).read_bytes()[:200]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"none\.onnx is not a policy that can be read"):
            load(path)


def test_refuses_weights_in_other_files(tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx", USUAL)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights.bin")
    with pytest.raises(ValueError, match="is not a policy that can be read"):
        load(path)
