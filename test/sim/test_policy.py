"""Policies in `Sim`: they fly as functions of one's own do, and foundation-policy holds all drones.

foundation-policy knows nothing of this simulator, so that each sign, order and unit that it meets
here is checked by others.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from multirotors import HEXA, QUADROTORS
from policies import GOAL, policy_of_layers, raptor, started
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Control
from crazyflow_ros.policy import follow_policy, load
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.network import Network
from crazyflow_ros.policy.observation import Motion, Observation
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.functional import state_control
from crazyflow_ros.sim.pipeline import names

FREQ = 500
OFF = 0.1  # m: foundation-policy has a steady error of up to 7 cm


def flying(policy: Policy, n: int = 1, drone: str = "cf2x_L250", **options: str) -> Sim:
    sim = Sim(n, drone=drone, control="state", state_freq=policy.freq, freq=FREQ, **options)
    follow_policy(sim, policy)
    return sim


def command(sim: Sim) -> np.ndarray:
    cmd = np.zeros((sim.n_worlds, 1, 13), np.float32)
    cmd[..., :3], cmd[..., 3:6] = GOAL, [0.1, 0, 0]
    return cmd


def held(drone: str, n: int) -> None:
    sim = started(flying(load(raptor(), drone), n, drone))
    sim.state_control(command(sim) * [1, 1, 1, *[0] * 10])
    sim.step(4 * FREQ)
    for _ in range(4):
        sim.step(FREQ // 4)
        off = np.linalg.norm(np.asarray(sim.data.states.pos)[:, 0] - GOAL, axis=-1)
        assert off.max() < OFF, f"{(off > OFF).sum()} of {n} are up to {off.max():.2f} m off"
        assert np.abs(sim.data.states.vel).max() < 0.05


@pytest.mark.parametrize("drone", QUADROTORS)
def test_foundation_policy_holds_each_drone(drone: str) -> None:
    held(drone, 100)


def test_a_policy_refuses_what_is_no_quadrotor() -> None:
    with pytest.raises(ValueError, match="a policy is for quadrotors, but hexa_x680 has tables"):
        held(HEXA, 1)


@pytest.mark.soak
@pytest.mark.parametrize("drone", QUADROTORS)
def test_foundation_policy_holds_each_drone_from_a_thousand_starts(drone: str) -> None:
    held(drone, 1000)


def test_flies_as_when_called_step_by_step() -> None:
    control = "body_rate"
    parts = ("position_error", "velocity_error", "rotor_speeds", "previous_action")
    observation = Observation.of("cf2x_L250", parts, history=2)
    policy = policy_of_layers(["tanh", "gru"], observation, Action.of("cf2x_L250", control))
    sim, n = started(flying(policy, 3)), 3
    sim.state_control(command(sim))
    other = started(Sim(n, drone="cf2x_L250", control=control, freq=FREQ))
    state, goal, act = policy.initial_state((n, 1)), command(sim), jax.jit(Policy.act)
    for _ in range(10):
        now = other.data.states
        motion = Motion(
            *(now.pos, now.quat, now.vel, now.ang_vel, now.rotor_vel),
            *(goal[..., :3], goal[..., 3:6], goal[..., 6:9], state.action),
        )
        state, chosen = act(policy, state, motion)
        getattr(other, f"{control}_control")(np.asarray(chosen))
        other.step(FREQ // policy.freq)
        sim.step(FREQ // policy.freq)
    for name in ("pos", "quat", "vel", "ang_vel"):
        flown, expected = (getattr(s.data.states, name) for s in (sim, other))
        np.testing.assert_allclose(flown, expected, atol=2e-4, rtol=2e-4)
    assert np.abs(np.asarray(sim.data.states.pos)[:, 0] - GOAL).max() > 0.05  # they did fly


def test_a_commanded_yaw_turns_the_whole_flight() -> None:
    parts = ("position_error", "velocity_error", "rotation", "body_rates")
    policy = policy_of_layers(["tanh"], Observation(parts), Action.of("cf2x_L250"))
    angles = [0.0, 0.7, 2.0, -2.8]
    sim = flying(policy, len(angles))
    starts = [started(sim, turn=angle).data.states for angle in angles]
    fields = {  # of the first world, turned by each angle
        name: jnp.stack([getattr(start, name)[0] for start in starts])
        for name in ("pos", "quat", "vel", "ang_vel", "rotor_vel")
    }
    sim.data = sim.data.replace(states=sim.data.states.replace(**fields))
    cmd, headings = command(sim), [Rotation.from_rotvec([0, 0, angle]) for angle in angles]
    cmd[:, 0, 3:6], cmd[:, 0, 9] = [turn.apply([0.1, 0, 0]) for turn in headings], angles
    sim.state_control(cmd)
    sim.step(100)
    moved = np.asarray(sim.data.states.pos)[:, 0] - GOAL
    flown = [turn.inv().apply(x) for turn, x in zip(headings, moved)]
    np.testing.assert_allclose(flown[1:], flown[:1] * 3, atol=1e-3)


@pytest.mark.soak
def test_a_flight_has_a_derivative() -> None:
    policy = policy_of_layers(["tanh", "gru"], Observation(), Action.of("cf2x_L250"))
    last = policy.network.layers[-1]  # so small that nothing is clipped
    layers = (
        *policy.network.layers[:-1],
        last.replace(weights=last.weights / 4, bias=last.bias / 4),
    )
    sim = started(flying(policy.replace(network=Network(layers))))
    step, data = sim.build_step_fn(), sim.data

    def height(goal: jax.Array) -> jax.Array:
        cmd = jnp.zeros((1, 1, 13)).at[..., :3].set(goal)
        return step(state_control(data, cmd), 100).states.pos[0, 0].sum()

    slope = jax.grad(height)(jnp.asarray(GOAL, jnp.float32))
    for i, one in enumerate(np.eye(3, dtype=np.float32) * 0.05):
        change = (height(GOAL + one) - height(GOAL - one)) / 0.1
        assert float(slope[i]) == pytest.approx(float(change), rel=0.1, abs=2e-5)
    assert np.abs(slope).max() > 3e-4


def test_begins_when_it_is_armed() -> None:
    policy = policy_of_layers(["gru"], Observation(), Action.of("cf2x_L250", "rotor_vel"))
    sim = flying(policy, 2)
    armed = jnp.asarray([[[True]], [[False]]])
    sim.data = sim.data.replace(controls=sim.data.controls.replace(armed=armed))
    start = np.asarray(sim.data.plugins["policy"])
    sim.state_control(command(sim))
    sim.step(10)
    memory = np.asarray(sim.data.plugins["policy"])
    assert np.abs(memory[0] - start[0]).max() > 0
    np.testing.assert_array_equal(memory[1], start[1])
    assert (
        np.asarray(sim.data.states.rotor_vel)[1].max()
        < 1
        < np.asarray(sim.data.states.rotor_vel)[0].min()
    )


def test_the_pipeline_has_the_controllers_that_the_action_needs() -> None:
    for control, expected in {
        Control.rotor_vel: ["limit_rotor_vel"],
        Control.force_torque: ["control_force_torque", "limit_rotor_vel"],
        Control.attitude: ["control_attitude", "control_force_torque", "limit_rotor_vel"],
    }.items():
        policy = policy_of_layers([], Observation(), Action.of("cf2x_L250", control))
        assert list(names(flying(policy).step_pipeline)[:-3]) == ["ControlPolicy", *expected]


def test_flies_a_fitted_model_by_attitude_only() -> None:
    policy = policy_of_layers([], Observation(), Action.of("cf2x_L250", dynamics="so_rpy"))
    sim = flying(policy, dynamics="so_rpy")
    sim.state_control(command(sim))
    sim.step(20)
    assert np.isfinite(sim.data.states.pos).all()
    by_rotors = policy_of_layers([], Observation(), Action.of("cf2x_L250", "rotor_vel"))
    with pytest.raises(ValueError, match="control=rotor_vel needs dynamics=first_principles"):
        flying(by_rotors, dynamics="so_rpy")


def test_refuses_another_mode_or_rate() -> None:
    policy = policy_of_layers([], Observation(), Action.of("cf2x_L250"))
    with pytest.raises(ValueError, match="control=state for its goals, this one has attitude"):
        follow_policy(Sim(drone="cf2x_L250", control="attitude"), policy)
    with pytest.raises(ValueError, match="needs state_freq=50, got 100"):
        follow_policy(Sim(drone="cf2x_L250", control="state"), policy)
