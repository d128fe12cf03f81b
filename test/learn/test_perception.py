"""Perception: a policy learns to see what its teacher is told, and flies as its teacher would."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from paths import ROOT

from crazyflow_ros.drones import DEFAULT_DRONE
from crazyflow_ros.envs import Environment, Race
from crazyflow_ros.learn import (
    READY,
    Bptt,
    BpttSettings,
    Perception,
    PerceptionSettings,
    Ppo,
    PpoSettings,
    evaluate,
    train,
)
from crazyflow_ros.learn.__main__ import SEEING, TASKS, main
from crazyflow_ros.learn.batch import scale_of
from crazyflow_ros.learn.learner import CHUNK, new_network
from crazyflow_ros.policy import Eye, Network, Policy, load, save

NAME = "race_by_depth"
FILE = ROOT / "examples" / "16_race_by_depth" / f"{NAME}.policy"
EYE = Eye(width=12, height=12)
SMALL: dict[str, Any] = {"horizon": 4, "updates": 20, "hidden": 8}


@pytest.fixture(scope="module")
def env() -> Environment:
    """Drones that see little, not yet compiled."""
    ready = READY[NAME]
    task = ready.task(DEFAULT_DRONE, **ready.training)
    return ready.environment(2, task, DEFAULT_DRONE, eye=EYE)


@pytest.fixture(scope="module")
def teacher() -> Policy:
    """The teacher of the example's policy, whose last layers are its network."""
    learner, ready = load(FILE), READY[NAME].teacher
    assert ready is not None
    told = ready.environment(2, Race(), DEFAULT_DRONE).observation
    scale = scale_of(told, ready.bptt["scales"])
    network = Network(learner.network.layers[-3:])
    return learner.replace(network=network, observation=told, mean=0 * scale, std=scale)


def test_the_command_teaches_to_see(
    teacher: Policy,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the teacher flies, so that drones come to the same places throughout the training."""
    assert set(SEEING) == {name for name in TASKS if READY[name].teacher is not None}
    settings = READY[NAME].perception | {"minibatches": 2, "guided": 10**6}
    monkeypatch.setitem(READY, NAME, replace(READY[NAME], perception=settings, eye=EYE))
    file, out = tmp_path / "teacher.policy", tmp_path / "seeing.policy"
    save(teacher, file)
    words = ["--teacher", str(file), "--out", str(out), "--updates", "120", "--worlds", "16"]
    assert main([NAME, *words, "--horizon", "20"]) == 0
    said = capsys.readouterr().out
    assert f"wrote {out}" in said
    costs = [float(cost) for cost in re.findall(r"cost (\S+)", said)]
    assert len(costs) == 120 // CHUNK and costs[-1] < 0.6 * costs[0], costs
    policy = load(out)
    assert policy.observation.eye == EYE
    assert policy.observation.parts == READY[NAME].parts  # nobody tells it where the gates are
    for layer, same in zip(policy.network.layers[-3:], teacher.network.layers, strict=True):
        np.testing.assert_array_equal(layer.weights, same.weights)


def test_right_estimates_fly_as_the_teacher_does(env: Environment, teacher: Policy) -> None:
    """With what the teacher is told in place of the estimates, the actions are the teacher's."""
    perception = Perception(env, teacher, PerceptionSettings(**SMALL, minibatches=2))
    network = perception.network(perception.begin())
    told = np.random.default_rng(0).normal(size=(5, teacher.observation.size)).astype(np.float32)
    acting = network.replace(layers=network.layers[-3:])
    np.testing.assert_allclose(acting.apply(told), teacher.network.apply(told), atol=1e-6)
    felt, seen = env.observation.motion_size, env.observation.size
    inputs = np.random.default_rng(1).normal(size=(5, seen)).astype(np.float32)
    eyes = network.replace(layers=network.layers[:-3])
    estimates, memory = eyes(inputs, np.zeros((5, eyes.memory.size), np.float32))
    np.testing.assert_array_equal(estimates[:, :felt], inputs[:, :felt])
    assert eyes.n_out == teacher.observation.size
    again, _ = eyes(inputs, memory)  # estimates are of what it saw before, too
    assert not np.allclose(again[:, felt:], estimates[:, felt:], rtol=0.01)


@pytest.mark.parametrize("kind", [pytest.param(Bptt, marks=pytest.mark.soak), Ppo])
def test_other_algorithms_see_pictures_too(kind: Any, env: Environment) -> None:
    """Traced, not compiled."""
    settings = BpttSettings(**SMALL) if kind is Bptt else PpoSettings(**SMALL, minibatches=2)
    learner = kind(env, settings)
    now, inputs = learner.begin(), learner.inputs([np.random.default_rng(0)])
    first = jax.tree.map(lambda x: x[0], inputs)
    after, cost = jax.eval_shape(learner.update, now, first)
    assert cost["cost"].shape == () and jax.tree.structure(after) == jax.tree.structure(now)
    assert learner.network(now).n_in == env.observation.size


def test_what_does_not_fit_is_refused(env: Environment, teacher: Policy) -> None:
    ready, task = READY[NAME], env.task
    blind = Environment(2, task, freq=100, action="rotor_vel", observation=ready.parts)
    other = Environment(2, task, freq=100, action="attitude", observation=ready.parts, eye=Eye())
    told = Environment(2, task, freq=100, action="rotor_vel", observation=("position",), eye=Eye())
    wide = teacher.replace(std=2 * teacher.std)
    for given, taught, n, named in (
        (blind, teacher, 2, "eye"),
        (other, teacher, 2, "actions of the teacher"),
        (told, teacher, 2, r"teacher .*\('position',\)"),
        (env, wide, 2, "scale"),
        (env, teacher, 8, r"drones \(2\) .*minibatches, got 8"),
    ):
        with pytest.raises(ValueError, match=named):
            Perception(given, taught, PerceptionSettings(minibatches=n))
    with pytest.raises(ValueError, match=r"teacher.*ppo"):
        ready.learner("ppo", task, DEFAULT_DRONE, teacher=teacher)
    with pytest.raises(ValueError, match="16 x 12"):
        new_network(np.random.default_rng(0), (200, 8, 4), "tanh", 0.0, 0.1, Eye("depth", 16, 12))


@pytest.mark.soak
@pytest.mark.parametrize(("name", "seconds"), [("race_by_depth", 25.0), ("recovery_by_depth", 5.0)])
def test_a_drone_learns_to_fly_by_depth(name: str, seconds: float) -> None:
    """The teacher and the learner are trained with the defaults of the command."""
    ready = READY[name]
    assert ready.teacher is not None
    task = ready.task(DEFAULT_DRONE, **ready.training)
    told = train(ready.teacher.learner("bptt", task, DEFAULT_DRONE)).policy
    seeing = ready.learner("perception", task, DEFAULT_DRONE, teacher=told)
    flown = evaluate(train(seeing).policy, ready.task(), starts=1000, seconds=seconds, seed=7)
    assert flown.success >= 0.95
