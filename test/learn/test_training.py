"""Trainings: gradients, checkpoints, progress, refusals; a complete one is a soak test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.drones import DEFAULT_DRONE
from crazyflow_ros.envs import Environment, Hover, Reach, Recovery
from crazyflow_ros.learn import training
from crazyflow_ros.learn.__main__ import TASKS, main
from crazyflow_ros.learn.batch import TrainingWorlds
from crazyflow_ros.learn.bptt import Bptt, BpttSettings, bounded
from crazyflow_ros.learn.costs import Approach
from crazyflow_ros.learn.evaluation import evaluate
from crazyflow_ros.learn.ppo import Ppo, PpoSettings
from crazyflow_ros.learn.quick import QuickHover
from crazyflow_ros.learn.ready import APPROACHING, READY, SPREAD
from crazyflow_ros.learn.training import CHUNK, Progress, Training, train
from crazyflow_ros.policy import load, save
from crazyflow_ros.xla import compiled_files

SMALL = {"horizon": 4, "updates": 2 * CHUNK, "hidden": 8}


def learner(algorithm: str, worlds: Any = 8, **changes: Any) -> Bptt | Ppo:
    values = {**SMALL, "spread": SPREAD, **changes}
    worlds = QuickHover(worlds, APPROACHING) if isinstance(worlds, int) else worlds
    if algorithm == "bptt":
        return Bptt(worlds, BpttSettings(**values))
    return Ppo(worlds, PpoSettings(**values, minibatches=2, epochs=2))


def weights_of(result: Training) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(result.policy.network)]


def test_the_gradient_is_that_of_finite_differences() -> None:
    with jax.enable_x64(True):
        bptt = learner("bptt", 3, horizon=5, hidden=4)
        state = jax.tree.map(
            lambda x: np.asarray(x, float) if np.asarray(x).dtype == np.float32 else x,
            bptt.begin().worlds,
        )
        weights = np.asarray(bptt.begin().weights, float)
        cost = jax.jit(
            jax.value_and_grad(lambda w: bptt.cost(w, state)[0]),
        )
        gradient = np.asarray(cost(weights)[1])
        rng = np.random.default_rng(0)
        for _ in range(3):
            direction = rng.normal(size=weights.shape)
            step = 1e-6 * direction
            slope = (float(cost(weights + step)[0]) - float(cost(weights - step)[0])) / 2e-6
            assert slope == pytest.approx(gradient @ direction, rel=1e-5)


def test_no_drone_has_a_larger_gradient_than_is_allowed() -> None:
    x = jnp.array([[3.0, 4.0], [0.3, 0.4], [1.0, 1.0], [1.0, 1.0]])
    weights = jnp.array([[1.0], [1.0], [jnp.nan], [jnp.inf]])
    slope = jax.grad(lambda x: (weights * 0.5 * bounded(x, 2.0) ** 2).sum())
    np.testing.assert_allclose(slope(x), [[1.2, 1.6], [0.3, 0.4], [0, 0], [0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(bounded(x, 2.0), x)


def test_a_drone_whose_state_overflows_spoils_nothing() -> None:
    bptt = learner("bptt", 3, horizon=5, hidden=4)
    now = bptt.begin()
    body = jnp.asarray(now.worlds.body).at[1].set(1e30)
    fast = now.worlds._replace(body=body)
    update = jax.jit(bptt.update)
    after, found = update(now._replace(worlds=fast), np.zeros(3, bool))
    assert not np.isfinite(found["cost"])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((after.weights, after.worlds)))


@pytest.mark.parametrize("algorithm", [pytest.param("bptt", marks=pytest.mark.soak), "ppo"])
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, curve = tmp_path / "hover.policy", tmp_path / "curve.png"
    words = ["--updates", "60", "--worlds", "64", "--horizon", "32", "--learning-rate", "0.012"]
    titles: list[str] = []
    draw = training.learning_curve
    monkeypatch.setattr(
        training, "learning_curve", lambda p, title: titles.append(title) or draw(p, title)
    )
    assert main(["hover", "--out", str(file), "--curve", str(curve), *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    lines = [line for line in lines if "still compiling" not in line]  # of a busy machine
    # It says at once what it does, and how long the rest takes as soon as it can know.
    assert "hover, bptt: importing JAX" in lines[0]
    assert "60 updates of 32 actions of 64 drones, on cpu; compiling" in lines[1]
    assert "fastest=40.0" in lines[2] and "clip_action=20.0, cost=Approach(" in lines[2]
    assert lines[2].partition("options: ")[2] in load(file).about
    assert "compiled in" in lines[3]
    left = [re.search(r"(\d+) of 60 updates(, \d+ s left)?$", line) for line in lines[4:7]]
    assert re.search(r"cost +\S+ [▁-█]{3} \S+$", lines[7])
    assert [m and (m[1], bool(m[2])) for m in left] == [("20", True), ("40", True), ("60", False)]
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)
    # The time of the curve is the one that is printed.
    took = float(titles[0].removeprefix("hover, bptt: ").removesuffix(" s"))
    wrote = next(time for time, line in zip(times, lines) if line.endswith(f"wrote {file}"))
    assert times[6] <= took <= wrote
    costs = [float(line.split("cost ")[1].split()[0]) for line in lines[4:7]]
    assert len(costs) == 3 and costs[-1] < 0.75 * costs[0]
    assert curve.read_bytes().startswith(b"\x89PNG")
    assert main(["evaluate", str(file), "--starts", "3", "--seconds", "0.1"]) == 0
    assert "of 3 flights" in capsys.readouterr().out


def test_a_declared_difference_is_trained_with_and_kept_in_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, drawn = tmp_path / "hover.policy", tmp_path / "randomize.yaml"
    drawn.write_text("mass: 0.2\naction_delay: [0.0, 0.02]\n")
    words = ["--updates", "20", "--worlds", "8", "--horizon", "8", "--randomize", str(drawn)]
    assert main(["reach", "--out", str(file), *words]) == 0
    for kept in ("RandomParameter(name='mass'", "RandomDelay(seconds=(0.0, 0.02))"):
        assert kept in load(file).about
    words = ["evaluate", str(file), "--task", "reach", "--starts", "3", "--seconds", "0.1"]
    assert main([*words, "--randomize", str(drawn)]) == 0
    drawn.write_text("mass: 2.0\n")
    capsys.readouterr()
    assert main([*words, "--randomize", str(drawn)]) == 2
    assert "spread of mass is from 0 to less than 1, got 2.0" in capsys.readouterr().err


def test_trainings_with_other_seeds_use_the_same_compiled_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that contained the drones or the weights of a training would be of no use to another."""
    files = compiled_files.CompiledFiles(tmp_path, pytest.fail)
    monkeypatch.setattr(compiled_files, "_files", files)
    first, second = (weights_of(train(learner("bptt", seed=seed))) for seed in (0, 1))
    assert files.n_compiled == 1
    assert not all(np.array_equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize("costs", [(5.0, 3.0, 2.1), (40.0, 0.7, 0.06), (1.31, 1.3, 1.28)])
def test_a_curve_has_plain_numbers_on_its_axis(costs: tuple[float, ...]) -> None:
    points = [Progress(i, 1000 * i, cost, 0.1 * i) for i, cost in enumerate(costs)]
    drawn = training.learning_curve(points, "hover")
    drawn.canvas.draw()
    axis = drawn.axes[0].yaxis
    labels = [tick.get_text() for tick in (*axis.get_ticklabels(), *axis.get_minorticklabels())]
    shown = [float(label) for label in labels if label]  # no 2x10^0 among them
    low, high = drawn.axes[0].get_ylim()
    assert sum(low <= number <= high for number in shown) >= 2


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ["bptt", "ppo"])
def test_any_environment_is_trained_and_its_policy_flies(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drones in a world, a delay, noise and history, a control mode with inner loops."""
    env = Environment(
        4, Hover(), n_drones=2, freq=100, action="attitude", action_delay=0.01,
        observation_noise=0.01, history=2, max_episode_steps=6,
    )  # fmt: skip
    trained = learner(algorithm, env, updates=CHUNK, spread={})
    result = train(trained, checkpoint=tmp_path / "checkpoint.npz")
    resumed = train(trained, checkpoint=tmp_path / "checkpoint.npz", resume=True)
    assert resumed.progress == result.progress
    before = jax.tree.leaves(trained.network(trained.begin()))
    changed = [np.abs(a - b).max() for a, b in zip(weights_of(result), before)]
    assert max(changed) > 0 and np.isfinite(changed).all()
    save(result.policy, tmp_path / "a.policy")
    flown = load(tmp_path / "a.policy")
    assert flown.observation == env.observation and flown.action == env.action
    assert flown.freq == env.config.action_freq
    files = compiled_files.CompiledFiles(tmp_path / "code", pytest.fail)
    monkeypatch.setattr(compiled_files, "_files", files)
    for about in ("One.", "Another one, with the same code."):
        named, what = flown.replace(about=about), ("flown", algorithm)
        flights = evaluate(named, Hover(), starts=3, seconds=0.1, freq=100, what=what)
        assert np.isfinite(flights.error).all()
    assert files.n_compiled == 1


def test_steps_of_worlds_are_those_of_the_environment() -> None:
    """The cost is minus the reward, and the step that begins an episode counts as that."""
    env = Environment(3, Reach(), freq=500, max_episode_steps=3, action="rotor_vel")
    worlds = TrainingWorlds(env, None)
    state, action = worlds.begin(0, {}), np.zeros((3, 4), np.float32)
    begins, late, costs, jumps = [], [], [], []
    for _ in range(8):
        now, step = env.step(state, action)
        jumps.append(bool((np.abs(now.states.pos - state.states.pos) > 0.01).any()))
        state, found = worlds.step(state, action)
        np.testing.assert_array_equal(found.cost, -np.asarray(step.reward))
        begins.append(bool(found.begins.all()))
        late.append(bool(found.late.all()))
        costs.append(float(np.abs(found.cost).max()))
        np.testing.assert_array_equal(state.states.pos, now.states.pos)
    assert begins == [True, False, False, False] * 2 and late == [False, False, False, True] * 2
    assert [cost == 0 for cost in costs] == begins
    assert jumps == begins  # so that after a late step the end of the episode is observed
    state = worlds.ended(state, np.array([True, False, False]))
    assert worlds.step(state, action)[1].begins.tolist() == [True] * 3


def test_a_world_of_no_use_begins_anew() -> None:
    env = Environment(3, Hover(), freq=50, action="rotor_vel")
    worlds = TrainingWorlds(env, Approach(), fastest=40.0)
    action = np.zeros((3, 4), np.float32)
    state, _ = worlds.step(worlds.begin(0, {}), action)
    ang_vel = np.zeros((3, 1, 3), np.float32)
    ang_vel[0], ang_vel[1] = 100.0, np.nan
    state = state.replace(states=state.states.replace(ang_vel=jax.numpy.asarray(ang_vel)))
    state, step = worlds.step(state, action)
    assert step.failed.tolist() == [True, True, False]
    state, step = worlds.step(state, action)
    assert step.begins.tolist() == [True, True, False]
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.states))


def test_drones_differ_as_the_spread_says() -> None:
    env = Environment(50, Hover(), freq=50)
    state = TrainingWorlds(env, None).begin(0, {"J": (0.5, 2.0)})
    nominal = np.asarray(env.sim.data.params.J)
    factors = np.asarray(state.params.J)[:, 0, 0, 0] / nominal.ravel()[0]
    assert 0.5 <= factors.min() < 0.7 and 1.4 < factors.max() <= 2.0
    products = np.asarray(state.params.J) @ np.asarray(state.params.J_inv)
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(3), products.shape), atol=1e-4)
    for spread, message in ({"mood": (1.0, 2.0)}, "mood"), ({"J": (2.0, 1.0)}, "J must rise"):
        with pytest.raises(ValueError, match=message):
            TrainingWorlds(env, None).begin(0, spread)


def test_the_tasks_of_the_command_are_those_that_are_ready() -> None:
    assert tuple(READY) == TASKS
    for ready in READY.values():
        ready.task("cf2x_L250")


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("hover --seed -1", "seed", "-1"),
        ("hover --worlds 0", "worlds", "0"),
        ("reach --worlds 0", "num_envs", "0"),
        ("hover --updates 7", "updates", "7"),
        ("hover --learning-rate nan", "learning_rate", "nan"),
        ("hover --algorithm ppo --worlds 6", "minibatches", "6"),
        ("hover --drone none", "drone", "none"),
        ("hover --resume", "checkpoint", ""),
        ("hover --laps 2", "hover", "laps"),
        ("figure_eight --period 0", "period", "0"),
        ("hover --out /nowhere/hover.policy", "folder", "/nowhere"),
        ("evaluate /nowhere/hover.policy", "policy", "/nowhere"),
    ],
)
def test_refusals_name_the_value(
    words: str, name: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert name in said and value in said


def test_environments_that_begin_no_episodes_by_themselves_are_refused() -> None:
    with pytest.raises(ValueError, match="autoreset=same_step"):
        Bptt(Environment(4, Hover(), autoreset="same_step"))
    with pytest.raises(ValueError, match=r"scales: velocity .*got 0"):
        Bptt(Environment(4, Hover()), BpttSettings(scales={"velocity": 0.0}))


def test_quick_drones_are_those_of_sim() -> None:
    """One step of the integrator for each action, as `Sim` makes at the same rate."""
    from crazyflow_ros.sim import Sim

    n, freq = 6, 100
    hover = QuickHover(n, APPROACHING, "cf2x_L250", freq)
    rng, state = np.random.default_rng(3), hover.begin(0, {})
    how = {"control": "rotor_vel", "integrator": "symplectic_euler", "freq": freq, "forces": ()}
    sim = Sim(n, drone="cf2x_L250", **how)
    x = np.asarray(state.body)[:, None]
    parts = np.split(x, [3, 7, 10, 13], axis=-1)
    names = ("pos", "quat", "vel", "ang_vel", "rotor_vel")
    values = dict(zip(names, map(jax.numpy.asarray, parts)))
    sim.data = sim.data.replace(states=sim.data.states.replace(**values))
    for _ in range(10):
        action = rng.uniform(-1, 1, (n, 4)).astype(np.float32)
        state, _step = hover.step(state, action)
        sim.rotor_vel_control(np.asarray(hover.action(action))[:, None])
        sim.step()
    found = np.concatenate([getattr(sim.data.states, name)[:, 0] for name in names], axis=-1)
    np.testing.assert_allclose(state.body, found, rtol=2e-4, atol=2e-4)


def test_quick_drones_begin_as_those_of_the_task() -> None:
    """In any attitude: all directions of the body's z axis are equally probable."""
    task = READY["hover"].task("cf2x_L250")
    assert isinstance(task, Recovery)
    start = task.begin(jax.random.key(0), 4000)
    states = QuickHover(4000, APPROACHING, "cf2x_L250").begin(0, {}).body
    pos, quat, *rest = np.split(np.asarray(states), [3, 7, 10, 13], axis=-1)
    offset = np.asarray(start.pos - start.origin)
    pairs = zip((pos, *rest), (offset, start.vel, start.ang_vel, start.rotor_vel))
    for mine, theirs in pairs:
        np.testing.assert_allclose(np.abs(mine).max(axis=0), np.abs(theirs).max(axis=0), rtol=0.02)
    for x, y, _z, _w in (quat.T, np.asarray(start.quat).T):
        heights = np.sort(1 - 2 * (x * x + y * y))
        np.testing.assert_allclose(heights, np.linspace(-1, 1, 4000), atol=0.06)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("algorithm", "least"), [("bptt", 0.95), ("ppo", 0.9)])
def test_a_trained_drone_recovers_from_any_attitude(
    algorithm: str, least: float, seed: int
) -> None:
    ready = READY["hover"]
    learned = train(ready.learner(algorithm, ready.task(), DEFAULT_DRONE, seed=seed))
    assert evaluate(learned.policy, ready.task(), seed=7).near >= least


@pytest.mark.soak
@pytest.mark.parametrize(
    "name", ["reach", "carry", "landing", "velocity", "recovery", "figure_eight"]
)
def test_a_drone_completes_the_task_that_it_was_trained_for(name: str) -> None:
    """A thousand flights of a policy that was trained with the defaults of the command."""
    ready = READY[name]
    env = ready.environment(96, ready.task(**ready.training), DEFAULT_DRONE)
    learned = Bptt(env, BpttSettings(spread=SPREAD, **ready.bptt), ready.cost)
    flights = evaluate(train(learned).policy, ready.task(), starts=1000, seed=7)
    good = flights.successes  # at its goal, slow, or has landed on the pad, slowly
    if name == "velocity":
        good = (flights.slip[flights.time >= 2.0] < 0.1).all(axis=0)
    elif name == "recovery":
        later = flights.time >= 4.0  # it has fallen by up to 3 m
        level, slow = flights.tilt[later] < np.radians(5), flights.slip[later] < 0.2
        good = (level & slow & (flights.error[later] < 0.1)).all(axis=0)
    elif name == "figure_eight":
        good = flights.error[-1] < 0.05
    assert good.mean() >= (0.9 if name == "figure_eight" else 0.95)
