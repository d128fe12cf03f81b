"""Chains of dense layers in ONNX are read, and checked against ONNX's own evaluator.

The networks have the nodes that exporters make of those of PyTorch, stable-baselines3 and Brax:
PyTorch 2.13 with both exporters, stable-baselines3 2.9, tf2onnx 1.17 and jax2onnx 0.17.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.policy import load
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.checked import LayerNames, Specification, plain
from crazyflow_ros.policy.network import Network
from crazyflow_ros.policy.observation import Observation

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import numpy_helper, parser  # noqa: E402
from onnx.helper import set_model_props  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from crazyflow_ros.network_files.onnx_model import read  # noqa: E402

RNG = np.random.default_rng(0)
SPECIFICATION = Specification(Observation(), Action.of("cf2x_L250"), 50, "cf2x_L250")
SIZES = {"w0": (8, 13), "b0": (8,), "w1": (8, 8), "b1": (8,), "w2": (4, 8), "b2": (4,)}
SIZES |= {"wide": (8, 8), "wide_bias": (8,), "value": (1, 8), "value_bias": (1,), "mean": (1, 13)}
CONSTANTS = {name: RNG.normal(size=size).astype(np.float32) / 3 for name, size in SIZES.items()}
CONSTANTS |= {name + "t": CONSTANTS[name].T.copy() for name in ("w0", "w1", "w2", "wide")}
CONSTANTS |= {"std": RNG.uniform(0.5, 2, (1, 13)).astype(np.float32), "log_std": CONSTANTS["b2"]}
NUMBERS = {"low": -1.0, "high": 1.0, "half": 0.5, "one": 1.0, "two": 2.0, "root": 2**0.5}
CONSTANTS |= {name: np.float32(value) for name, value in NUMBERS.items()}
INDICES = {"axis0": [0], "axis1": [1], "four": [4], "zero": 0, "rows": [-1, 4], "ones": [1]}
INDICES |= {"second": 1, "plus": 1, "divisor": 2, "halves": [4, 4]}
CONSTANTS |= {name: np.array(value, np.int64) for name, value in INDICES.items()}


def model(
    nodes: str, *, opset: int = 17, inputs: str = "float[batch, 13] obs", outputs: str = "actions"
) -> Any:
    """A model with the text of nodes, in ONNX's syntax, and those of `CONSTANTS` that it names."""
    ends = ", ".join(f"float[n{i}, k{i}] {name}" for i, name in enumerate(outputs.split()))
    head = f'<ir_version: 8, opset_import: ["" : {opset}]> policy ({inputs}) => ({ends})'
    made = parser.parse_model(f"{head} {{ {nodes} }}")
    used = {name for node in made.graph.node for name in node.input} & CONSTANTS.keys()
    tensors = [numpy_helper.from_array(CONSTANTS[name], name) for name in sorted(used)]
    made.graph.initializer.extend(tensors)
    return made


def network(made: Any, output: str = "") -> Network:
    about, arrays = read(made.SerializeToString(), output)
    return Network(tuple(LayerNames(**names).layer(i, arrays) for i, names in enumerate(about)))


def agree(made: Any, found: Network, *, batch: bool = True, output: str | None = None) -> None:
    """Whether ONNX computes the same, also where observations are far beyond usual ones."""
    seen = RNG.normal(size=(20, 13)) * np.geomspace(0.1, 30, 20)[:, None]
    seen = seen.astype(np.float32)
    evaluator = ReferenceEvaluator(made)
    expected = [
        evaluator.run([output] if output else None, {"obs": each[None] if batch else each})[0]
        for each in seen
    ]
    np.testing.assert_allclose(
        found.apply(jnp.array(seen)), np.reshape(expected, (20, -1)), atol=2e-5
    )


USUAL = """
    a = Sub(obs, mean) b = Div(a, std) c = Gemm<transB = 1>(b, w0, b0) d = Elu(c)
    e = MatMul(d, w1t) f = Add(e, b1) g = Relu(f)
    h = Gemm<alpha = 0.5, beta = 2.0>(g, w2t, b2) i = Tanh(h) actions = Mul(i, half)
"""
MLP = """
    h0 = Gemm<transB = 1>(flat, w0, b0) h1 = Tanh(h0)
    h2 = Gemm<transB = 1>(h1, w1, bias) h3 = Tanh(h2) mean_of = Gemm<transB = 1>(h3, w2, bias2)
"""
HEAD = (
    "v0 = Gemm<transB = 1>(flat, w0, b0) v1 = Tanh(v0) v = Gemm<transB = 1>(v1, value, value_bias)"
)
SAMPLED = """
    s0 = Exp(log_std) s1 = Constant<value = float[1, 4] {1, 1, 1, 1}>() s2 = Mul(s1, s0)
    s3 = Shape(mean_of) s4 = ConstantOfShape<value = float[1] {0}>(s3) s5 = Add(s4, mean_of)
    s6 = Add(s5, s2) s7 = Shape(s6) s8 = Expand(mean_of, s7)
"""
LOG_PROB = (
    "p0 = Sub(s8, s8) p1 = Pow(p0, two) p2 = Neg(p1) log_prob = ReduceSum<keepdims = 0>(p2, axis1)"
)
SILU = "{1} = Sigmoid({0}) {2} = Mul({0}, {1})"
GELU = """
    {1} = Div({0}, root) {2} = Erf({1}) {3} = Add({2}, one) {4} = Mul({0}, {3})
    {5} = Mul({4}, half)
"""
PPO = f"""
    bias2 = Identity(b2) bias = Identity(b1) seen = Cast<to = 1>(obs) flat = Flatten<axis = 1>(seen)
    {MLP} {HEAD} {SAMPLED} {LOG_PROB}
"""
CHUNKED = f"""
    c0 = Gemm<transB = 1>(obs, w0, b0) {SILU.format("c0", "c1", "c2")}
    c3 = Gemm<transB = 1>(c2, wide, wide_bias)
"""
BRAX = f"""
    a = Sub(obs, mean) b = Div(a, std) c = Gemm<transB = 0>(b, w0t, b0) {SILU.format("c", "d", "e")}
    f = Gemm(e, widet, wide_bias)
"""

EXPORTED: dict[str, tuple[Any, list[str]]] = {
    "stable-baselines3 PPO": (
        model(PPO + "actions = Reshape(s8, rows)", outputs="actions v log_prob"),
        ["tanh", "tanh", "identity"],
    ),
    "stable-baselines3 PPO, clipped": (
        model(PPO + "actions = Clip(s8, low, high)", outputs="actions v"),
        ["tanh", "tanh", "hard_tanh"],
    ),
    "stable-baselines3 SAC": (
        model(f"""
            seen = Cast<to = 1>(obs) flat = Flatten(seen) bias = Identity(b1)
            bias2 = Identity(b2) {MLP}
            l0 = Gemm<transB = 1>(h3, w2, b2) l1 = Clip(l0, low, high) l2 = Exp(l1)
            l3 = Shape(mean_of) l4 = ConstantOfShape(l3) l5 = Add(l4, mean_of) l6 = Add(l5, l2)
            l7 = Shape(l6) l8 = Expand(mean_of, l7) actions = Tanh(l8)
        """),
        ["tanh", "tanh", "tanh"],
    ),
    "PyTorch, with a value": (
        model(
            f"flat = Identity(obs) bias = Identity(b1) bias2 = Identity(b2) {MLP} {HEAD}",
            outputs="mean_of v",
        ),
        ["tanh", "tanh", "identity"],
    ),
    "PyTorch, normalised and clipped": (
        model(
            """
            a = Sub(obs, mean) b = Div(a, std) c = Clip(b, low, high)
            d = Gemm<transB = 1, alpha = 1.0, beta = 1.0, transA = 0>(c, w0, b0) e = Selu(d)
            actions = Gemm<transB = 1>(e, w2, b2)
        """,
            opset=20,
        ),
        ["hard_tanh", "selu", "identity"],
    ),
    "PyTorch before version 2, clipped to one side": (
        model(
            """
            a = Clip<max = 0.7, min = -3.4e38>(obs) b = Clip<max = 3.4e38, min = -2.0>(a)
            c = MatMul(b, w0t) d = Softplus(c) actions = Gemm<transB = 1>(d, w2, b2)
        """,
            opset=9,
        ),
        ["relu", "relu", "softplus", "identity"],
    ),
    "PyTorch, half of the outputs": (
        model(
            CHUNKED
            + """
            n0 = Shape(c3) n1 = Gather<axis = 0>(n0, second) n2 = Add(n1, plus)
            n3 = Div(n2, divisor)
            n4 = Mul(n3, ones) n5 = Slice(c3, axis0, n4, axis1) actions = Tanh(n5)
        """
        ),
        ["silu", "tanh"],
    ),
    "PyTorch, half of the outputs, before version 2": (
        model(
            CHUNKED + "s0, s1 = Split<axis = -1, split = [4, 4]>(c3) actions = Tanh(s0)", opset=9
        ),
        ["silu", "tanh"],
    ),
    "PyTorch, scaled after tanh": (
        model(
            """
            a = Gemm<transB = 1>(obs, w0, b0) b = Mish(a) c = Gemm<transB = 1>(b, w2, b2)
            d = Tanh(c) e = Add(d, one) f = Mul(half, e) g = Mul(f, two) actions = Sub(one, g)
        """,
            opset=18,
        ),
        ["mish", "tanh", "identity"],
    ),
    "PyTorch, GELU and softsign in parts": (
        model(f"""
            x = Gemm<transB = 1>(obs, w0, b0) {GELU.format("x", "x1", "x2", "x3", "x4", "x5")}
            y = Gemm<transB = 1>(x5, w1, b1) y1 = Abs(y) y2 = Add(y1, one) y3 = Div(y, y2)
            actions = Gemm<transB = 1>(y3, w2, b2)
        """),
        ["gelu", "softsign", "identity"],
    ),
    "Brax by tf2onnx": (
        model(
            f"""
            a = Sub(obs, mean) b = Mul(a, std) c = MatMul(b, w0t) c1 = Add(c, b0)
            {SILU.format("c1", "d", "e")}
            f = MatMul(e, widet) f1 = Add(f, wide_bias)
            g, h = Split<axis = -1>(f1) actions = Tanh(g)
        """,
            opset=11,
        ),
        ["silu", "tanh"],
    ),
    "Brax by jax2onnx": (
        model(BRAX + "g, h = Split<axis = 1>(f, halves) actions = Tanh(g)", opset=21),
        ["silu", "tanh"],
    ),
    "jax2onnx, relu": (
        model("""
            a = Gemm(obs, w0t, b0) zero_of = Constant<value_float = 0.0>() b = Max(a, zero_of)
            actions = Gemm(b, w2t, b2)
        """),
        ["relu", "identity"],
    ),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_computes_what_exporters_make(name: str) -> None:
    made, activations = EXPORTED[name]
    found = network(made)
    assert [layer.activation for layer in found.layers] == activations
    agree(made, found)


def test_one_observation_without_a_batch() -> None:
    nodes = """
        a = Unsqueeze(obs, axis0) b = Gemm<transB = 1>(a, w0, b0) c = Sigmoid(b)
        d = Gemm<transB = 1>(c, w2, b2) actions = Squeeze(d, axis0)
    """
    made = model(nodes, inputs="float[13] obs")
    agree(made, network(made), batch=False)


def test_another_output_may_be_the_action() -> None:
    nodes = f"flat = Identity(obs) bias = Identity(b1) bias2 = Identity(b2) {HEAD} {MLP}"
    made = model(nodes, outputs="v mean_of")
    agree(made, network(made, "mean_of"), output="mean_of")
    text = json.dumps({"output": "mean_of"})
    set_model_props(made, {"crazyflow_ros": text})
    assert network(made).n_out == 4
    with pytest.raises(ValueError, match="'mean_off', only v, mean_of"):
        network(model(nodes, outputs="v mean_of"), "mean_off")


@pytest.mark.parametrize("beside", [False, True])
def test_a_file_flies_as_onnx_computes(tmp_path: Path, beside: bool) -> None:
    path, made = tmp_path / "usual.onnx", model(USUAL)
    text = json.dumps(plain(SPECIFICATION) | {"output": "actions"})
    if beside:
        path.write_bytes(made.SerializeToString())
        with pytest.raises(ValueError, match=r"'crazyflow_ros'.*usual\.json"):
            load(path)
        path.with_suffix(".json").write_text(text)
    else:
        set_model_props(made, {"crazyflow_ros": text})
        path.write_bytes(made.SerializeToString())
    policy = load(path)
    assert len(policy.network.layers) == 4 and Specification.of(policy) == SPECIFICATION
    agree(made, policy.network)


DOUBLING = " ".join(f"x{i + 1} = Add(x{i}, x{i})" for i in range(200))
SQUARES = " ".join(f"x{i + 1} = MatMul(x{i}, x{i})" for i in range(200))
GROWING = "a0 = Constant<value_ints = [9000, 9000]>() a1 = ConstantOfShape(a0)"
CHAIN = "x0 = Gemm<transB = 1>(obs, w0, b0)"
END = "actions = Gemm<transB = 1>({}, w2, b2)"


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        (USUAL + "more = Sin(actions)", None),  # the action does not depend on it
        (USUAL.replace("Tanh", "Sin"), "'i' (Sin)"),
        (USUAL.replace("Elu(c)", "Elu<alpha = 0.5>(c)"), "'d' (Elu): alpha is 0.5"),
        (USUAL.replace("Gemm<transB = 1>(b, w0", "Gemm<transB = 1>(b, w1"), "'c' (Gemm)"),
        (USUAL.replace("Add(e, b1)", "Add(e, d)"), "'f' (Add)"),
        (USUAL.replace("Div(a, std)", "Div(std, a)"), "'b' (Div)"),
        (USUAL.replace("Mul(i, half)", "Constant<value_float = 1.0>()"), "one observation"),
        (CHAIN + "y = Log(x0) z = Gemm(y, w1t, b1)" + END.format("z"), "'y' (Log)"),
        (CHAIN + "y = Cast<to = 7>(x0) z = Cast<to = 1>(y)" + END.format("z"), "'y' (Cast)"),
        (CHAIN + "y = Clip(x0, high, low)" + END.format("y"), "'y' (Clip)"),
        (CHAIN + DOUBLING + END.format("x200"), "'x1' (Add)"),
        (CHAIN + SQUARES + END.format("x200"), "'x1' (MatMul)"),
        (GROWING + "b = Gemm(obs, a1)" + END.format("b"), "'a1' (ConstantOfShape)"),
        (GROWING + "b = Expand(obs, a0)" + END.format("b"), "'b' (Expand)"),
        (CHAIN + "a = Expand(half, s) b = Mul(x0, a)" + END.format("b"), "allocate 4.00 TiB"),
        (CHAIN + "y = Reshape(x0, axis0)" + END.format("y"), "'y' (Reshape)"),
        (CHAIN + "y = Tile(x0, four)" + END.format("y"), "'y' (Tile)"),
    ],
)
def test_refuses_other_networks(nodes: str, named: str | None) -> None:
    made = model(nodes)
    if "Expand(half, s)" in nodes:
        huge = np.array([1 << 20, 1 << 20], np.int64)
        made.graph.initializer.append(numpy_helper.from_array(huge, "s"))
    if named is None:
        agree(made, network(made), output="actions")
        return
    with pytest.raises((ValueError, MemoryError), match=re.escape(named)):
        network(made)
