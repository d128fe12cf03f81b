"""Fly the environments of Crazyflow, from the library that is named, and write what they return.

    python crazyflow_environments.py (crazyflow_ros.compat.crazyflow | crazyflow) output.json

Runs in the library's own environment. Starts, goals and actions are the same for both.
"""

from __future__ import annotations

import importlib
import json
import sys

import gymnasium
import jax.numpy as jnp
import numpy as np

NAMES = (
    "DroneReachPos-v0",
    "DroneReachVel-v0",
    "DroneLanding-v0",
    "DroneFigureEightTrajectory-v0",
)
N, STEPS = 3, 80
rng = np.random.default_rng(0)
POS = rng.uniform([-1, -1, 1], [1, 1, 2], (N, 1, 3)).astype(np.float32)
VEL = rng.uniform(-1, 1, (N, 1, 3)).astype(np.float32)
GOALS = rng.uniform(0.5, 1, (N, 3)).astype(np.float32)
ACTIONS = rng.uniform(-0.3, 0.3, (STEPS, N, 4)).astype(np.float32)


def set_goals(env):
    """Set the goals of the environments that draw them."""
    name = "_goal" if hasattr(env, "_goal") else "_goal_vel"
    setattr(env, name, jnp.asarray(GOALS))


def main() -> None:
    library, output = sys.argv[1:]
    envs = importlib.import_module(f"{library}.envs")
    results = {}
    for name in NAMES:
        env = gymnasium.make_vec(name, num_envs=N, freq=50)
        plain, env = env.unwrapped, envs.NormalizeActions(env)
        env.reset(seed=0)
        data = plain.sim.data
        data = data.replace(states=data.states.replace(pos=jnp.asarray(POS), vel=jnp.asarray(VEL)))
        plain.sim.data = data
        if "Reach" in name:
            set_goals(plain)
        results[name] = []
        for action in ACTIONS:
            obs, reward, terminated, *_ = env.step(action)
            obs = {key: np.asarray(value).tolist() for key, value in obs.items()}
            results[name].append(
                [obs, np.asarray(reward).tolist(), np.asarray(terminated).tolist()]
            )
    with open(output, "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
