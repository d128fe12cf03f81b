"""What is trained in an environment flies in `Sim` as it did there."""

from __future__ import annotations

import jax
import numpy as np
from policies import policy_of_layers

from crazyflow_ros.envs import Reach
from crazyflow_ros.envs.beginning import ORIGIN
from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.policy import follow_policy
from crazyflow_ros.sim import Sim


def test_a_policy_flies_as_in_its_environment() -> None:
    parts = ("position_error", "velocity_error", "previous_action")
    env = Environment(4, Reach(), observation=parts, action="rotor_vel", action_freq=50)
    policy = policy_of_layers(["tanh"], env.observation, env.action)
    state, seen = env.reset(jax.random.key(0))
    sim = Sim(4, drone="cf2x_L250", control="state", state_freq=50)
    follow_policy(sim, policy)
    sim.data = sim.data.replace(states=state.states)
    goals = np.asarray(state.plugins[ORIGIN])
    sim.state_control(np.pad(goals, ((0, 0), (0, 0), (0, 10))))
    beyond = 0
    for _ in range(15):
        action = policy.network.apply((seen - policy.mean) / policy.std)
        beyond += int((np.abs(action) > 1).sum())
        state, step = env.step(state, action)
        assert not np.any(step.terminated)
        seen = step.observation
        sim.step(10)
    assert beyond  # what is clipped is remembered as it was clipped
    for name in ("pos", "quat", "vel"):
        flown, expected = (np.asarray(getattr(d.states, name)) for d in (sim.data, state))
        np.testing.assert_allclose(flown, expected, atol=1e-3)
