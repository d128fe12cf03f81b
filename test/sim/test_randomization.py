"""Declarations of what differs between drones and flights; drawn delays and noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from crazyflow_ros.envs import Environment, Reach
from crazyflow_ros.sim import (
    ActionDelay,
    Sim,
    hang_payload,
    randomize_delay,
    randomize_noise,
    randomize_param,
    randomizers,
)
from crazyflow_ros.sim.pipeline import insert_before, names

FILE = """
mass: 0.1
J: {spread: [0.8, 1.2], per: element}
rpm2thrust: {spread: [0.9, 1.05], distribution: log_uniform, per: rotor}
wind: {spread: [0.0, 0.5], operation: add, distribution: gaussian, per: element}
payload: {mass: 0.5, length: 0.3}
pos: [0.1, 0.1, 0.0]
action_delay: [0.0, 0.05]
observation_noise: [0.5, 2.0]
"""
SMALL: dict[str, Any] = {"freq": 100, "action_freq": 50, "action": "body_rate"}


def test_a_file_names_the_stages_that_functions_return(tmp_path: Path) -> None:
    path = tmp_path / "randomize.yaml"
    path.write_text(FILE)
    found = randomizers(path)
    assert found[:4] == (
        randomize_param("mass", 0.1),
        randomize_param("J", (0.8, 1.2), per="element"),
        randomize_param("rpm2thrust", (0.9, 1.05), distribution="log_uniform", per="rotor"),
        randomize_param("wind", (0, 0.5), operation="add", distribution="gaussian", per="element"),
    )
    assert names(found[4:8]) == ("scale", "scale", "hang_payload", "shift")
    assert found[6] is hang_payload
    assert found[8:] == (randomize_delay((0.0, 0.05)), randomize_noise((0.5, 2.0)))
    assert randomizers({"mass": 0.1}) == found[:1]
    assert randomizers({}) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- mass", r"y\.yaml: expected names of what is drawn, got \['mass'\]"),
        ("5: 0.1", "expected names"),
        ("mas: 0.1", "no parameter to randomise 'mas'.*mass"),
        ("mass: {sprad: 0.1}", "mass: there is no option 'sprad', only spread"),
        ("mass: {per: drone}", "mass: expected a spread"),
        ("mass: heavy", "spread of mass is from 0 to less than 1, got heavy"),
        ("mass: [1, 2, 3]", "spread of mass is one number or two"),
        ("mass: {spread: [0.5, 1], distribution: normal}", "normal"),
        ("payload: 0.1", "payload: expected a mapping"),
        ("payload: {colour: 0.1}", "no figure of the payload to randomise 'colour'"),
        ("pos: [1, 2]", "one or three finite numbers"),
        ("action_delay: 0.1", "action_delay: expected two numbers from 0 to 10, got 0.1"),
        ("action_delay: [0.2, 0.1]", "expected two numbers"),
        ("action_delay: [0, .nan]", "expected two numbers"),
        ("observation_noise: [-1, 1]", "observation_noise: expected two numbers from 0 to 100"),
        ("mass: 0.1\nmass: 0.2", "mass occurs twice"),
    ],
)
def test_wrong_declarations_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "y.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as refused:
        randomizers(path)
    assert str(path) in str(refused.value)


def test_what_a_simulation_lacks_is_refused() -> None:
    sim = Sim(control="rotor_vel")
    with pytest.raises(ValueError, match=r"ActionDelay\(25, each=True\) before integrate does"):
        sim.reset_pipeline = randomizers({"action_delay": [0.0, 0.05]})
    delay = ActionDelay(10, each=True)
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", delay)
    with pytest.raises(ValueError, match="up to 25 ticks, but ActionDelay has 10"):
        sim.reset_pipeline = randomizers({"action_delay": [0.0, 0.05]})
    sim.reset_pipeline = randomizers({"action_delay": [0.0, 0.02]})
    with pytest.raises(ValueError, match="no noise to multiply"):
        sim.reset_pipeline = randomizers({"observation_noise": [0.5, 1.0]})
    drawn = (randomize_delay((0.0, 0.1)),)
    with pytest.raises(ValueError, match="drawn by a randomizer"):
        Environment(1, Reach(), randomizers=drawn, action_delay=0.02, **SMALL)


def test_a_drawn_delay_acts_as_a_given_one() -> None:
    """In each world, as in an environment with that `action_delay`; redrawn at each episode."""
    n, key, steps = 16, jax.random.key(3), 12
    actions = jax.random.uniform(jax.random.key(0), (steps, n, 4), minval=-0.3, maxval=0.3)

    def flown(**options: Any) -> Any:
        env = Environment(n, Reach(), autoreset="disabled", **SMALL | options)
        state, _ = env.reset(key)
        for action in actions:
            state, _ = env.step(state, action)
        return env, state

    env, state = flown(randomizers=randomizers({"action_delay": [0.0, 0.05]}))
    drawn = np.asarray(state.plugins["delay_ticks"]).ravel()
    assert len(set(drawn)) >= 4 and drawn.min() >= 0 and drawn.max() <= 5
    for ticks in sorted(set(drawn))[::2]:
        _, other = flown(action_delay=ticks / 100)
        same = np.flatnonzero(drawn == ticks)
        for name in ("pos", "quat", "rotor_vel"):
            now, given = (getattr(x.states, name)[same] for x in (state, other))
            np.testing.assert_allclose(now, given, rtol=2e-6, atol=2e-6)
    again = env.reset(jax.random.key(4))[0].plugins["delay_ticks"]
    assert (np.asarray(again).ravel() != drawn).any()


def test_the_delays_of_a_simulation_are_those_of_its_rotors() -> None:
    n, commands = 6, np.random.default_rng(0).uniform(1e4, 2e4, (30, 1, 1, 4))
    sim = Sim(n, control="rotor_vel")
    stage = ActionDelay(12, each=True)
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", stage)
    sim.reset_pipeline = (randomize_delay((0.0, 0.024)),)
    sim.reset()
    drawn = np.asarray(sim.data.plugins["delay_ticks"]).ravel()
    seen = []
    for command in commands:
        sim.rotor_vel_control(np.broadcast_to(command, (n, 1, 4)))
        sim.step()
        seen.append(np.asarray(sim.data.controls.actuators)[:, 0])
    given = np.concatenate([np.zeros((12, 4)), commands[:, 0, 0]])
    for world, delay in enumerate(drawn):
        expected = given[12 - delay : 12 - delay + len(seen)]
        np.testing.assert_allclose(np.array(seen)[:, world], expected, rtol=1e-6)
    kept = np.array([True, *[False] * (n - 1)])
    for _ in range(4):
        sim.reset(~kept)
        now = np.asarray(sim.data.plugins["delay_ticks"]).ravel()
        assert now[0] == drawn[0]


def test_noise_has_the_drawn_gain() -> None:
    options = SMALL | {"observation": ("position_error",), "observation_noise": 0.1}
    n, gains = 400, (0.5, 2.0)
    options |= {"autoreset": "disabled"}  # an episode has one gain
    env = Environment(n, Reach(), randomizers=(randomize_noise(gains),), **options)
    state, _ = env.reset(jax.random.key(0))
    gain, errors = np.asarray(state.plugins["noise_gain"])[:, 0], []
    assert 0.5 <= gain.min() < 0.52 and 1.95 < gain.max() <= 2.0
    for _ in range(60):
        state, step = env.step(state, np.zeros((n, 4)))
        exact = env.motion(state)
        errors.append(np.asarray(step.observation - (exact.goal - exact.pos)[:, 0]))
    deviation = np.std(np.array(errors), axis=(0, 2))
    # With 180 numbers the standard deviation of a deviation is 5.3 % of it.
    np.testing.assert_allclose(deviation / (0.1 * gain[:, 0]), 1, atol=0.25)
    assert abs(np.corrcoef(deviation, gain[:, 0])[0, 1]) > 0.95
