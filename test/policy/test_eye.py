"""Policies that see pictures: what they see, and the layers that see it, compared with SciPy."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from policies import motions
from scipy.signal import correlate

from crazyflow_ros.policy import (
    Action,
    Dense,
    Eye,
    Network,
    Observation,
    Patches,
    Policy,
    load,
    save,
)

EYE = Eye(width=6, height=4, far=5.0)
SEEN = Observation(("body_rates",), eye=EYE)


def random_policy() -> Policy:
    """Patches of 2 x 2, and a layer that keeps what the drone feels."""
    rng = np.random.default_rng(0)

    def some(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    layers = (
        Patches(some(3, 1, 2, 2), some(3), "relu", kept=3, height=4, width=6),
        Dense(some(5, 21), some(5), "tanh", kept=3),
        Dense(some(4, 8), some(4), "tanh"),
    )
    scale = {"mean": np.zeros(27, np.float32), "std": np.ones(27, np.float32)}
    action, drone = Action.of("cf2x_L250"), "cf2x_L250"
    about = {"freq": 50, "drone": drone, "dynamics": "", "about": ""}
    return Policy(Network(layers), **scale, observation=SEEN, action=action, **about)


def test_depth_is_seen_as_nearness_and_colors_from_0_to_1() -> None:
    depth = np.array([[0.0, 1.0, 5.0], [7.0, np.inf, 2.5]], np.float32)[..., None]
    seen = Eye(width=3, height=2, far=5.0).seen(depth)
    np.testing.assert_allclose(seen, [1, 0.8, 0, 0, 0, 0.5], atol=1e-6)
    picture = np.array([[[255, 0, 51]]], np.uint8)
    np.testing.assert_allclose(Eye("rgb", 1, 1).seen(picture), [1, 0, 0.2], atol=1e-6)
    with pytest.raises(ValueError, match=r"must have shape \(2, 3, 1\), got \(3, 2, 1\)"):
        Eye(width=3, height=2).seen(depth.reshape(3, 2, 1))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kind": "heat"}, "'heat'"), ({"width": 0}, "0 x 36"),
        ({"width": 640, "height": 480}, "640 x 480"), ({"fovy": 180.0}, "fovy .*180"),
        ({"far": np.nan}, "far .*nan"),
    ],
)  # fmt: skip
def test_eyes_that_cannot_be_are_refused(fields: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Eye(**fields)


@pytest.mark.parametrize("channels", [1, 3])
def test_patches_are_a_convolution_with_a_stride(channels: int) -> None:
    rng = np.random.default_rng(channels)
    weights, bias = rng.normal(size=(5, channels, 3, 3)), rng.normal(size=5)
    picture, before = rng.normal(size=(6, 9, channels)), rng.normal(size=2)
    with jax.enable_x64(True):
        layer = Patches(weights, bias, "tanh", kept=2, height=6, width=9)
        inputs = np.concatenate([before, picture.ravel()])
        found = np.asarray(layer(inputs[None], np.zeros((1, 0)))[0][0])
    whole = [
        sum(correlate(picture[..., c], kernel[c], "valid") for c in range(channels))
        for kernel in weights
    ]
    expected = np.tanh(np.stack(whole, axis=-1)[::3, ::3] + bias)
    np.testing.assert_allclose(found, np.concatenate([before, expected.ravel()]), atol=1e-12)
    assert (layer.n_in, layer.n_out) == (inputs.size, found.size)


def test_a_file_keeps_what_a_policy_sees(tmp_path: Path) -> None:
    policy, file = random_policy(), tmp_path / "seeing.policy"
    save(policy, file)
    again = load(file)
    assert jax.tree.structure(again) == jax.tree.structure(policy)
    assert again.observation.eye == EYE
    motion = next(motions(1, 2))
    pictures = np.random.default_rng(1).uniform(0, 8, (2, 4, 6, 1)).astype(np.float32)
    before = policy.initial_state((2,))
    commands = [p.act(before, motion, picture=pictures)[1] for p in (policy, again)]
    np.testing.assert_array_equal(*commands)
    other = policy.act(before, motion, picture=np.full_like(pictures, np.inf))[1]
    assert np.abs(other - commands[0]).max() > 1e-3
    with pytest.raises(ValueError, match=r"needs a picture of \(4, 6, 1\)"):
        policy.act(before, motion)
    with pytest.raises(ValueError, match="needs no picture"):
        Observation()(motion, picture=pictures)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Patches(np.zeros((2, 1, 4, 4)), np.zeros(2), "relu", 3, 4, 6), "4 x 6 .*kernel, 4"),
        (Patches(np.zeros((2, 1, 2, 3)), np.zeros(2), "relu", 3, 4, 6), r"\(2, 1, 2, 3\)"),
        (Patches(np.zeros((2, 1, 2, 2)), np.zeros(2), "relu", -1, 4, 6), "kept.*-1"),
        (Patches(np.zeros((2, 1, 2, 2)), np.zeros(2), "relu", 2, 4, 6), "26 inputs"),
        (Dense(np.zeros((2, 27)), np.zeros(2), "relu", 28), "28"),
    ],
)
def test_layers_that_do_not_fit_are_refused(layer: Patches | Dense, message: str) -> None:
    policy = random_policy()
    network = Network((layer, *policy.network.layers[1:]))
    with pytest.raises(ValueError, match=message):
        save(policy.replace(network=network), "never_written.policy")
