"""The environment as pure functions, and its options."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flights_of_tasks import flight_of
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.dynamics import SlungLoad
from crazyflow_ros.envs import (
    Carry,
    Configuration,
    Environment,
    FigureEight,
    Hover,
    QuadrotorVectorEnv,
    Reach,
)
from crazyflow_ros.envs.beginning import ORIGIN
from crazyflow_ros.envs.episodes import ACTION, EARLIER
from crazyflow_ros.envs.registration import TASKS
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.observation import PARTS
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.leaves import traced
from crazyflow_ros.sim.randomize import randomize_mass, randomize_payload
from crazyflow_ros.xla.kernels import fits_one_kernel

N = 6
SMALL: dict[str, Any] = {"drone": "cf21B_500", "dynamics": "so_rpy", "freq": 100}
FALL = np.tile(np.float32([0, 0, 0, -1]), (N, 1))


@pytest.fixture(scope="module")
def worlds() -> QuadrotorVectorEnv:
    return QuadrotorVectorEnv(N, Reach(), autoreset="same_step", max_episode_steps=40, **SMALL)


def flown(env: QuadrotorVectorEnv, actions: np.ndarray) -> list[Any]:
    return [env.reset(seed=4), *(env.step(action) for action in actions)]


def test_pure_functions_give_what_the_vector_environment_gives(worlds: QuadrotorVectorEnv) -> None:
    actions = np.random.default_rng(0).uniform(-1, 1, (50, N, 4)).astype(np.float32)
    actions[:, 0] = FALL[0]
    results = flown(worlds, actions)
    env = worlds.environment

    def body(state: SimData, action: jax.Array) -> tuple[SimData, Any]:
        return env.step(state, action)

    key = jax.random.key(int(np.random.default_rng(4).integers(2**31)))
    state, first = jax.jit(env.reset)(key)
    fly = jax.jit(lambda state: jax.lax.scan(body, state, actions))
    state, steps = fly(state)
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(results[0][0], first, **close)
    for i, result in enumerate(results[1:]):
        np.testing.assert_allclose(result[0], steps.observation[i], **close)
        np.testing.assert_allclose(result[1], steps.reward[i], **close)
        np.testing.assert_array_equal(result[2], steps.terminated[i])
        np.testing.assert_array_equal(result[3], steps.truncated[i])
        np.testing.assert_array_equal(result[4]["is_success"], steps.success[i])
    assert steps.terminated[:, 0].any() and not steps.terminated[:, 0].all()


def test_a_new_environment_begins_within_transformations() -> None:
    keys = jax.random.split(jax.random.key(5), 2)

    def new() -> Environment:
        return Environment(2, Reach(), randomizers=(randomize_mass(0.2),), **SMALL)

    env = new()
    states, seen = jax.vmap(env.reset)(keys)
    for i, key in enumerate(keys):
        state, alone = env.reset(key)  # keeps nothing of the transformation
        np.testing.assert_allclose(seen[i], alone, rtol=1e-6)
        np.testing.assert_allclose(states.params.mass[i], state.params.mass, rtol=1e-6)
    jax.eval_shape(new().step, state, jnp.zeros((2, 4)))
    jax.eval_shape(new().before_episodes, keys[0])


def test_an_episode_that_ends_gives_its_final_observation_beside_the_next(
    worlds: QuadrotorVectorEnv,
) -> None:
    worlds.reset(seed=1)
    ended = np.zeros(N, bool)
    while not ended.any():
        obs, reward, terminated, truncated, info = worlds.step(FALL)
        ended = terminated | truncated
    assert info["_final_obs"].tolist() == ended.tolist() == info["_final_info"].tolist()
    assert info["final_info"]["_is_success"].tolist() == ended.tolist()
    for i in range(N):
        if ended[i]:
            assert info["final_obs"][i].shape == (13,) and reward[i] < -0.9
            assert info["final_obs"][i][2] > 0.4  # of the goal above the floor
            np.testing.assert_array_equal(obs[i, 6:], [0, 0, 0, 1, 0, 0, 0])
        else:
            assert info["final_obs"][i] is None and obs[i, 5] > 0.3
    for _ in range(40):
        *_, truncated, info = worlds.step(0 * FALL)
        if truncated.any():
            break
    assert truncated.any() and (worlds.sim.data.core.steps[truncated] == 0).all()


def test_a_world_does_not_depend_on_others(worlds: QuadrotorVectorEnv) -> None:
    actions = np.random.default_rng(1).uniform(-0.3, 0.3, (60, N, 4)).astype(np.float32)
    alone = flown(worlds, actions)
    actions[:, 1:] = FALL[1:]  # which ends their episodes at other times
    among_others = flown(worlds, actions)
    for a, b in zip(alone, among_others):
        np.testing.assert_array_equal(a[0][0], b[0][0])
    assert any(step[3][0] for step in alone[1:])  # one episode of that world ended


def test_gradients_flow_through_steps(worlds: QuadrotorVectorEnv) -> None:
    env = worlds.environment
    state, _ = env.reset(jax.random.key(0))

    @jax.jit
    @jax.value_and_grad
    def loss(action: jax.Array) -> jax.Array:
        def body(state: SimData, _: None) -> tuple[SimData, jax.Array]:
            state, step = env.step(state, action)
            return state, (step.final_observation[:, :3] ** 2).sum()

        return jax.lax.scan(body, state, None, length=4)[1].sum()

    action = jnp.full((N, 4), 0.1)
    gradient = loss(action)[1]
    for index in ((0, 3), (2, 1)):
        step = jnp.zeros((N, 4)).at[index].set(0.05)
        slope = (loss(action + step)[0] - loss(action - step)[0]) / 0.1
        np.testing.assert_allclose(gradient[index], slope, rtol=0.05, atol=2e-4)


def test_options_do_what_they_say() -> None:
    def tow(data: SimData) -> SimData:
        """Pulls up with three times the weight of the drone."""
        weight = 3 * 9.81 * data.params.mass
        force = jnp.zeros_like(data.states.force).at[..., 2].set(weight[..., 0])
        return data.replace(states=data.states.replace(force=force))

    env = QuadrotorVectorEnv(
        2, Hover(spread=(0.0, 0.0, 0.0), point=(0.0, 0.0, 5.0), limit=50.0), drone="cf2x_L250",
        freq=100, action_freq=50, action="body_rate", n_drones=2, action_delay=0.02,
        observation=("position_error", "previous_action"), history=3,
        observation_noise={"position_error": 0.1}, stages=(tow,),
        randomizers=(randomize_mass(0.3),), max_episode_steps=5,
    )  # fmt: skip
    assert env.observation_space.shape == (2, 2, 3 * 7) and env.action_space.shape == (2, 2, 4)
    obs, _ = env.reset(seed=0)
    assert (obs[..., 7:] == 0).all()  # nothing before the first frame
    assert 0.01 < abs(obs[..., :3]).mean() < 0.3  # noise, where all is at its goal
    masses = np.array(env.sim.data.params.mass)
    assert masses.shape == (2, 2, 1) and len(np.unique(masses)) == 4
    actions = np.random.default_rng(0).uniform(-1, 1, (6, 2, 2, 4)).astype(np.float32)
    for i in range(5):
        before = obs
        obs, reward, terminated, truncated, _ = env.step(actions[i])
        np.testing.assert_array_equal(obs[..., 7:], before[..., :14])
        np.testing.assert_array_equal(obs[..., 3:7], actions[i])
        commands = np.array(env.sim.data.controls.body_rate.cmd)
        late = actions[i - 1] if i else 0 * actions[i]
        meaning = Action.of("cf2x_L250", "body_rate")
        np.testing.assert_allclose(commands, meaning(jnp.asarray(late)), rtol=1e-6)
        assert truncated.all() == truncated.any() == (i == 4) and not terminated.any()
    np.testing.assert_allclose(reward, env.rewards_of_drones.mean(axis=1))
    assert (np.array(env.sim.data.states.vel)[..., 2] > 1).all()  # lifted by the stage
    obs, *_ = env.step(actions[5])
    anew = np.array(env.sim.data.params.mass)
    assert (anew != masses).all() and len(np.unique(anew)) == 4
    assert (obs[..., 3:] == 0).all()  # of the previous episode


@given(delay=st.integers(0, 12), ticks=st.sampled_from([1, 2, 5]), data=st.data())
def test_commands_are_late_by_the_delay(delay: int, ticks: int, data: Any) -> None:
    env = _hovering(delay, ticks)
    given_actions = data.draw(st.lists(st.floats(-1, 1, width=32), min_size=6, max_size=6))
    actions = [np.full((1, 1, 4), x, np.float32) for x in given_actions]
    plugins, older = dict(env.sim.data.plugins), -(-delay // ticks)
    state, size = env.sim.data, 4 * older
    for i, action in enumerate(actions):
        plugins[ACTION] = jnp.asarray(action)
        if older:
            past = [actions[i - k] if i >= k else 0 * action for k in range(1, older + 1)]
            plugins[EARLIER] = jnp.concatenate(past, axis=-1)[..., :size]
        for tick in range(ticks):
            steps = jnp.full((1, 1), i * ticks + tick)
            now = state.replace(plugins=plugins, core=state.core.replace(steps=steps))
            at = (i * ticks + tick - delay) // ticks
            expected = env.action(jnp.asarray(actions[at] if at >= 0 else 0 * action))
            command = env.sim.step_pipeline[0](now).controls.attitude.cmd
            np.testing.assert_allclose(command, expected, rtol=1e-6)


_ENVIRONMENTS: dict[tuple[int, int], Environment] = {}


def _hovering(delay: int, ticks: int) -> Environment:
    if (delay, ticks) not in _ENVIRONMENTS:
        options = SMALL | {"action_delay": delay / 100, "action_freq": 100 // ticks}
        _ENVIRONMENTS[delay, ticks] = Environment(1, Hover(), **options)
    return _ENVIRONMENTS[delay, ticks]


@pytest.mark.parametrize(
    "options",
    [
        {"num_envs": 0}, {"task": "reach"}, {"action_freq": 70}, {"action_delay": 0.003},
        {"action_delay": -0.01}, {"action_delay": float("nan")}, {"history": 0},
        {"observation_noise": {"attitude": -1.0}}, {"observation_noise": float("inf")},
        {"observation_noise": {"position": 0.1}}, {"max_episode_steps": 0}, {"n_drones": 0},
        {"autoreset": "later"}, {"randomizers": (3,)}, {"stages": "all"}, {"thrust_range": 2},
        {"max_tilt": float("nan")}, {"render_mode": "sketch"},
    ],
)  # fmt: skip
def test_bad_options_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        QuadrotorVectorEnv(**{"num_envs": 1, "task": Hover()} | SMALL | options)


@pytest.mark.parametrize(
    ("task", "field", "value"),
    [
        (FigureEight, "period", 0.0),
        (FigureEight, "seconds", -1.0),
        (FigureEight, "size", (1.0, np.inf)),
        (Reach, "tolerance", 0),
        (Reach, "centre", (0.0, np.nan, 0.0)),
    ],
)
def test_tasks_that_nobody_can_do_are_refused(task: Any, field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{task.__name__}: {field} "):
        task(**{field: value})


@settings(deadline=None)
@given(
    parts=st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=4, unique=True),
    noise=st.floats(0, 10),
    history=st.integers(1, 5),
)
def test_observations_have_the_parts_and_noise_that_are_asked_for(
    parts: list[str], noise: float, history: int
) -> None:
    config = Configuration(
        observation=tuple(parts), history=history, observation_noise={parts[-1]: noise}
    )
    sizes = [PARTS[part].size for part in parts]
    assert config.observations.size == history * sum(sizes)
    expected = np.repeat([*[0.0] * (len(parts) - 1), noise], sizes)
    np.testing.assert_array_equal(config.frame_noise, expected)


def test_actions_of_a_wrong_shape_are_refused(worlds: QuadrotorVectorEnv) -> None:
    with pytest.raises(ValueError, match=r"\(6, 4\), got \(4,\)"):
        worlds.environment.step(worlds.sim.data, jnp.zeros(4))


def test_the_acceleration_of_a_goal_is_the_derivative_of_its_velocity() -> None:
    task = FigureEight(period=4.0)
    env = Environment(2, task, **SMALL)
    state, _ = env.reset(jax.random.key(0))
    later = state.core.replace(steps=jnp.full_like(state.core.steps, 8))
    found = np.asarray(env.motion(state.replace(core=later)).goal_acc)[:, 0]
    rate, t = 2 * np.pi / 4, 8 / 100
    x, y = -(rate**2) * np.sin(rate * t), -0.5 * (2 * rate) ** 2 * np.sin(2 * rate * t)
    np.testing.assert_allclose(found, [[x, y, 0]] * 2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
def test_the_steps_of_all_tasks_are_single_kernels(task: type[Any]) -> None:
    """Otherwise, a step of one world takes six times as long, and one of a thousand three times."""
    options = SMALL | ({"dynamics": "first_principles"} if task is Carry else {})
    env = Environment(2, task(), **options)
    program = env.compiled.program
    step = traced(lambda data: program.last(data, program.tick(data)), env.sim.default_data)
    assert fits_one_kernel(step)


def test_drones_carry_one_load_in_each_world() -> None:
    """At the start it hangs below them on taut cables, swings, and differs between episodes."""
    task = Carry(payload=SlungLoad(mass=0.01, length=0.5, drag_area=1e-3), swing=0.4)
    env = Environment(
        N,
        task,
        n_drones=2,
        drone="cf21B_500",
        freq=100,
        action="rotor_vel",
        observation=("body_load_position", "body_load_velocity", "rotation"),
        randomizers=(randomize_payload("mass", 0.5), randomize_payload("length", 0.2)),
        max_episode_steps=5,
        autoreset="same_step",
    )
    state, seen = env.reset(jax.random.key(0))
    payload, states = state.payload, state.states
    assert payload is not None and seen.shape == (N, 2, 15)
    away = np.array(payload.pos - states.pos)
    distance = np.linalg.norm(away, axis=-1)
    length = np.array(payload.length)[..., 0]
    # The cables have different lengths, so only one of them is taut.
    np.testing.assert_allclose((distance / length).max(axis=1), 1, rtol=1e-5)
    assert np.ptp(length) > 0.1 and np.ptp(np.array(payload.mass)) > 0.003
    moves = np.array(payload.vel)[:, 0]
    assert (abs(moves[:, :2]) <= 0.4).all() and (moves[:, 2] == 0).all() and moves.any(axis=1).all()
    np.testing.assert_allclose(seen[..., :3], away, atol=1e-6)  # level drones
    origin = state.plugins[ORIGIN]
    np.testing.assert_array_equal(origin[:, 0], origin[:, 1])  # the goal of the load
    for _ in range(5):
        state, step = env.step(state, jnp.zeros((N, 2, 4)))
    assert step.truncated.all()
    new = np.array(state.payload.mass)
    assert (new != np.array(payload.mass)).all()  # next episodes
    assert np.isfinite(np.array(step.observation)).all() and np.isfinite(step.reward).all()


def test_carrying_succeeds_where_the_load_hangs_still_at_its_goal() -> None:
    task = Carry(tolerance=0.1, speed=0.2, limit=3.0)
    goal = jnp.tile(jnp.array([0.0, 0.0, 1.0]), (4, 1))
    pos = goal + jnp.array([0.0, 0.0, 0.5])
    load = goal + jnp.array([[0.05, 0, 0], [0.05, 0, 0], [0.5, 0, 0], [3.5, 0, 0]])
    load_vel = jnp.array([[0.1, 0, 0], [0.3, 0, 0], [0.0, 0, 0], [0.0, 0, 0]])
    now = flight_of(pos, goal - pos, goal)._replace(load=load, load_vel=load_vel)
    before = now._replace(load=load + jnp.array([0.1, 0.0, 0.0]))
    verdict = task.judge(before, now)
    assert verdict.success.tolist() == [True, False, False, False]
    assert verdict.terminated.tolist() == [True, False, False, True]
    np.testing.assert_allclose(verdict.reward, [1.1, 0.1, 0.1, -0.9], atol=1e-6)
