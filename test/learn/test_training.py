"""Trainings: gradients, checkpoints, progress, refusals; a complete one is a soak test."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from crazyflow_ros.learn import training
from crazyflow_ros.learn.__main__ import main
from crazyflow_ros.learn.bptt import Bptt, BpttSettings
from crazyflow_ros.learn.evaluate import evaluate
from crazyflow_ros.learn.flight import Flights, Start, Task
from crazyflow_ros.learn.ppo import Ppo, PpoSettings
from crazyflow_ros.learn.training import CHUNK, Progress, Training, train
from crazyflow_ros.policy.files import load

SMALL = {"worlds": 8, "horizon": 4, "updates": 2 * CHUNK, "hidden": 8}


def learner(algorithm: str, **changes: int) -> Bptt | Ppo:
    values = {**SMALL, **changes}
    if algorithm == "bptt":
        return Bptt(BpttSettings(**values))
    return Ppo(PpoSettings(**values, minibatches=2, epochs=2))


def weights_of(result: Training) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(result.policy.network)]


def test_the_gradient_is_that_of_finite_differences() -> None:
    with jax.enable_x64(True):
        bptt = learner("bptt", worlds=3, horizon=5, hidden=4)
        state = jax.tree.map(lambda x: np.asarray(x, float), bptt.begin().flights)
        weights = np.asarray(bptt.begin().weights, float)
        cost = jax.jit(lambda w: bptt.cost(w, state)[0])
        gradient = np.asarray(jax.grad(cost)(weights))
        rng = np.random.default_rng(0)
        for _ in range(3):
            direction = rng.normal(size=weights.shape)
            step = 1e-6 * direction
            slope = (float(cost(weights + step)) - float(cost(weights - step))) / 2e-6
            assert slope == pytest.approx(gradient @ direction, rel=1e-5)


@pytest.mark.parametrize("algorithm", ["bptt", "ppo"])
def test_a_resumed_training_equals_one_without_a_pause(algorithm: str, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.npz"
    whole = train(learner(algorithm))

    class Pause(Exception):
        pass

    def pause(_: Progress) -> None:
        raise Pause

    with pytest.raises(Pause):
        train(learner(algorithm), pause, file)
    resumed = train(learner(algorithm), checkpoint=file, resume=True)
    assert [p.updates for p in resumed.progress] == [CHUNK, 2 * CHUNK]
    assert [p.cost for p in resumed.progress] == [p.cost for p in whole.progress]
    for a, b in zip(weights_of(resumed), weights_of(whole)):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="other settings"):
        train(learner(algorithm, seed=1), checkpoint=file, resume=True)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cannot resume from"):
        train(learner(algorithm), checkpoint=file, resume=True)


def test_a_short_training_lowers_the_cost_and_its_file_flies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, curve = tmp_path / "hover.policy", tmp_path / "curve.png"
    words = ["--updates", "60", "--worlds", "64", "--horizon", "32", "--learning-rate", "0.012"]
    assert main(["hover", "--out", str(file), "--curve", str(curve), *words]) == 0
    costs = [
        float(x.split("cost ")[1]) for x in capsys.readouterr().out.splitlines() if "cost" in x
    ]
    assert len(costs) == 3 and costs[-1] < 0.75 * costs[0]
    assert curve.read_bytes().startswith(b"\x89PNG")
    policy = load(file)
    near = evaluate(policy, Task(), starts=50, seconds=1.0, start=Start(0.1, 0.1, 0.1))
    assert near.error.shape == (50, 50) and np.isfinite(near.error).all()
    assert main(["evaluate", str(file), "--starts", "3", "--seconds", "0.1"]) == 0
    assert "of 3 flights" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hover", "--seed", "-1"], "seed must be from 0"),
        (["hover", "--worlds", "0"], "worlds must be from 1"),
        (["hover", "--updates", "7"], "multiple of 20, got 7"),
        (["hover", "--learning-rate", "nan"], "learning_rate must be finite and above 0, got nan"),
        (["hover", "--algorithm", "ppo", "--worlds", "6"], "multiple of minibatches"),
        (["hover", "--drone", "none"], "none"),
        (["hover", "--resume"], "needs a checkpoint"),
        (["figure_eight", "--period", "0"], "period must be above 0"),
        (["hover", "--out", "/nowhere/hover.policy"], "no folder /nowhere"),
        (["evaluate", "/nowhere/hover.policy"], "is not a policy"),
    ],
)
def test_refusals_name_the_value(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_the_goal_of_an_eight_moves_at_its_velocity() -> None:
    task, time = Task("figure_eight", period=4.0), np.linspace(0, 4, 9)
    with jax.enable_x64(True):
        before, after = (np.asarray(task.goal(time + dt)[0]) for dt in (-1e-6, 1e-6))
        velocity = np.asarray(task.goal(time)[1])
    np.testing.assert_allclose((after - before) / 2e-6, velocity, atol=1e-6)
    np.testing.assert_allclose(
        task.goal(np.array([0.0]))[0], task.goal(np.array([4.0]))[0], atol=1e-5
    )


def test_flights_are_those_of_sim() -> None:
    """One step of the integrator for each action, as `Sim` makes at the same rate."""
    from crazyflow_ros.sim import Sim

    n, freq = 6, 100
    flights = Flights(n, Task(), "cf2x_L250", freq, 0, None)
    rng = np.random.default_rng(3)
    state = flights.begin(rng, Start())
    sim = Sim(
        n,
        drone="cf2x_L250",
        control="rotor_vel",
        integrator="symplectic_euler",
        freq=freq,
        forces=(),
    )
    x = state.body[:, None]
    parts = (x[..., :3], x[..., 3:7], x[..., 7:10], x[..., 10:13], x[..., 13:])
    names = ("pos", "quat", "vel", "ang_vel", "rotor_vel")
    values = dict(zip(names, map(jax.numpy.asarray, parts)))
    sim.data = sim.data.replace(states=sim.data.states.replace(**values))
    for _ in range(10):
        action = rng.uniform(-1, 1, (n, 4)).astype(np.float32)
        state = flights.step(state, action)
        sim.rotor_vel_control(np.asarray(flights.action(action))[:, None])
        sim.step()
    found = np.concatenate([getattr(sim.data.states, name)[:, 0] for name in names], axis=-1)
    np.testing.assert_allclose(state.body, found, rtol=2e-4, atol=2e-4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("algorithm", "least"), [("bptt", 0.95), ("ppo", 0.9)])
def test_a_trained_drone_recovers_from_any_attitude(
    algorithm: str, least: float, seed: int
) -> None:
    learner = Bptt(BpttSettings(seed=seed)) if algorithm == "bptt" else Ppo(PpoSettings(seed=seed))
    policy, _ = training.train(learner)
    assert evaluate(policy, Task(), starts=1000, seconds=5.0, seed=7).success >= least
