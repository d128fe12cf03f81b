"""Policies survive their files, and files from outside are refused with a reason."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import h5py
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import motions, policy_of_layers

from crazyflow_ros.checks.archive import read_arrays
from crazyflow_ros.network_files import MOST_BYTES
from crazyflow_ros.policy import load, save
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.network import ACTIVATIONS, column_by_column, mlp
from crazyflow_ros.policy.observation import PARTS, Observation
from crazyflow_ros.policy.policy import Policy

foundation_policy = pytest.importorskip("foundation_policy", reason="is a judge of make test")
WEIGHTS = Path(foundation_policy.__file__).parent / "blob" / "checkpoint.h5"


def flown(policy: Policy, n: int = 5) -> np.ndarray:
    """Commands for some motions."""
    state, commands = policy.initial_state((3,)), []
    for motion in motions(n, 3):
        state, command = policy.act(state, motion)
        commands.append(np.asarray(command))
    return np.array(commands)


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_file_keeps_all_of_a_policy(data: st.DataObject, tmp_path_factory) -> None:
    parts = data.draw(st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=4))
    history = data.draw(st.integers(1, 3))
    control = data.draw(st.sampled_from(["attitude", "body_rate", "force_torque", "rotor_vel"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    observation = Observation(tuple(parts), history, (3000.0, 20000.0))
    kinds = data.draw(st.lists(st.sampled_from([*ACTIVATIONS, "gru"]), min_size=0, max_size=3))
    policy = policy_of_layers(kinds, observation, Action.of("cf2x_P250", control), rng)
    path = tmp_path_factory.mktemp("policies") / "own.policy"
    save(policy, path)
    again = load(path)
    assert jax.tree.structure(again) == jax.tree.structure(policy)  # with all that is static
    jax.tree.map(np.testing.assert_array_equal, again, policy)
    np.testing.assert_array_equal(flown(again), flown(policy))


def test_both_products_are_the_same() -> None:
    rng = np.random.default_rng(0)
    inputs, weights = (rng.normal(size=s).astype(np.float32) for s in ((5, 2, 30), (20, 30)))
    expected = np.einsum("abn,mn->abm", inputs.astype(float), weights.astype(float))
    np.testing.assert_allclose(column_by_column(inputs, weights), expected, atol=1e-5)
    np.testing.assert_allclose(jax.jit(column_by_column)(inputs, weights), expected, atol=1e-5)


def test_an_initial_network_hardly_acts() -> None:
    network = mlp(jax.random.key(0), [13, 64, 64, 4])
    inputs = np.random.default_rng(0).normal(size=(100, 13)).astype(np.float32)
    outputs = np.asarray(network.apply(inputs))
    assert outputs.shape == (100, 4) and 0 < np.abs(outputs).max() < 0.1
    rows = network.layers[1].weights
    np.testing.assert_allclose(rows @ rows.T, 2 * np.eye(64), atol=1e-4)  # orthogonal
    with pytest.raises(ValueError, match="there is no activation 'wish'"):
        mlp(jax.random.key(0), [13, 4], output_activation="wish")


def test_foundation_policy_computes_what_its_own_program_does() -> None:
    policy = load(WEIGHTS, "cf2x_L250")
    theirs = foundation_policy.Raptor()
    theirs.reset()
    state = policy.initial_state((100,))
    offset, scale = np.array(policy.action.offset), np.array(policy.action.scale)
    for motion in motions(10, 100):
        seen = np.concatenate(
            [
                np.clip(motion.pos - motion.goal, -0.5, 0.5),  # as its authors do in PX4
                Observation(("rotation",))(motion),
                np.clip(motion.vel - motion.goal_vel, -1, 1),
                motion.ang_vel,
                state.action,
            ],
            axis=-1,
        )
        expected = np.clip(theirs.evaluate_step(seen), -1, 1)
        state, command = policy.act(state, motion)
        np.testing.assert_allclose(state.action, expected, atol=1e-5)
        np.testing.assert_allclose((command - offset) / scale, expected, atol=1e-5)
    assert np.mean(np.abs(expected) < 1) > 0.1  # not all of them are clipped


def test_foundation_policy_needs_a_drone() -> None:
    with pytest.raises(ValueError, match="name the drone that it flies"):
        load(WEIGHTS)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("policy") / "some.policy"
    policy = policy_of_layers(["tanh", "gru"], Observation(), Action.of("cf2x_L250"))
    save(policy, path)
    return path


def changed(path: Path, to: Path, about: dict | None = None, **arrays: np.ndarray | None) -> Path:
    """A copy of a file with other arrays and entries of its JSON."""
    with path.open("rb") as file:
        held = read_arrays(file, MOST_BYTES)
    values = json.loads(str(held.pop("about")))
    for name, value in (about or {}).items():
        target = values
        *groups, last = name.split(".")
        for group in groups:
            target = target[int(group) if group.isdigit() else group]
        target[last] = value
    held |= {name.replace("__", "."): array for name, array in arrays.items()}
    held = {name: array for name, array in held.items() if array is not None}
    with to.open("wb") as file:
        np.savez(file, about=np.array(json.dumps(values)), **held)
    return to


@pytest.mark.parametrize(
    ("about", "arrays", "message"),
    [
        ({"format": "crazyflow_ros policy 9"}, {}, "crazyflow_ros policy 1"),
        ({"policy.freq": 0}, {}, "freq .*0"),
        ({"policy.freq": "fast"}, {}, "freq.*'fast'"),
        ({"policy.observation.parts": ["mood"]}, {}, "'mood'"),
        ({"policy.observation.parts": ["position"]}, {}, "layer 0 .*13.*3"),
        ({"policy.observation.history": 10**6}, {}, "history"),
        ({"policy.action.control": "state"}, {}, "state"),
        ({"policy.action.scale": [1.0, 2.0]}, {}, r"\[1.0, 2"),
        ({"policy.action.scale": [1.0, 2.0, 3.0, 1e9]}, {}, "scale"),
        ({"policy.dynamics": "aristotle"}, {}, "'aristotle'"),
        ({"policy.drone": "x" * 5000}, {}, "drone"),
        ({"policy.mood": 1}, {}, "mood"),
        ({"layers": []}, {}, "'0.bias'"),
        ({"layers.0.kind": "lstm"}, {}, "layer 0: .*'lstm'"),
        ({"layers.0.activation": "wish"}, {}, "'wish'"),
        ({}, {"0__bias": None}, "0.bias"),
        ({}, {"0__bias": np.zeros(7)}, "0.bias"),
        ({}, {"0__bias": np.full(8, np.nan)}, "0.bias"),
        ({}, {"0__weights": np.zeros((8, 5000))}, "0.weights .*5000"),
        ({}, {"0__weights": np.array([["a"]])}, "0.weights"),
        ({}, {"2__weights": np.zeros((5, 8)), "2__bias": np.zeros(5)}, "5 outputs"),
        ({}, {"std": np.zeros(13)}, "std .*0"),
        ({}, {"mean": None}, "mean"),
        ({}, {"extra": np.zeros(3)}, "'extra'"),
    ],
)
def test_refuses_a_file(
    written: Path, tmp_path: Path, about: dict, arrays: dict, message: str
) -> None:
    path = changed(written, tmp_path / "other.policy", about, **arrays)
    with pytest.raises(ValueError, match=rf"is not a policy.*: .*{message}"):
        load(path)


def test_refuses_what_is_no_archive(tmp_path: Path, written: Path) -> None:
    content, path = written.read_bytes(), tmp_path / "file.policy"
    huge = b"\0" * (MOST_BYTES + 1)
    for damaged in (b"", b"policy", content[:-100], content[: len(content) // 2], huge):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=str(path)):
            load(path)
    for other in (tmp_path, tmp_path / "absent", Path("/dev/zero"), "a\0b"):
        with pytest.raises(ValueError, match="is not a policy"):
            load(other)


@settings(max_examples=20, deadline=None)
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_harmless(at: int, byte: int, written: Path) -> None:
    content = bytearray(written.read_bytes())
    content[at % len(content)] = byte
    path = written.with_name("changed.policy")
    path.write_bytes(content)
    with suppress(ValueError):
        assert np.isfinite(flown(load(path))).all()


def test_refuses_other_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "other.h5"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="RLtools"):
        load(path, "cf2x_L250")
    few = {"data": np.zeros((4, 9), np.float32)}
    # More numbers than memory, none of them stored.
    huge = {"shape": (10**6, 10**6), "dtype": "f4", "chunks": (1000, 1000)}
    for kind, weights, message in (
        ("dense", few, "22 inputs"), ("conv", few, "layer 0: .*'conv'"), ("dense", huge, "weights"),
    ):  # fmt: skip
        with h5py.File(path, "w") as file:
            layer = file.create_group("actor/layers/0")
            layer.attrs["type"], layer.attrs["activation_function"] = kind, "RELU"
            layer.create_dataset("weights/parameters", **weights)
            layer["biases/parameters"] = np.zeros((1, 4), np.float32)
        with pytest.raises(ValueError, match=message):
            load(path, "cf2x_L250")


@pytest.mark.parametrize("name", ["h5py", "onnx"])
def test_says_which_package_a_file_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = {"h5py": "h5", "onnx": "onnx"}[name]
    (tmp_path / f"some.{kind}").write_bytes(b"nothing")
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("crazyflow_ros.extras.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=f"pip install '{name}>="):
        load(tmp_path / f"some.{kind}", "cf2x_L250")


def test_does_not_save_what_it_would_refuse(tmp_path: Path) -> None:
    policy = policy_of_layers([], Observation(), Action.of("cf2x_L250"))
    (layer,) = policy.network.layers
    broken = policy.network.replace(layers=(layer.replace(bias=layer.bias * np.nan),))
    with pytest.raises(ValueError, match=r"0\.bias must be"):
        save(replace(policy, network=broken), tmp_path / "nan.policy")
    assert not list(tmp_path.iterdir())
