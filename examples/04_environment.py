"""A task of your own for the Gymnasium environment: hover as low as possible.

Run it from the root folder of the repository: .venv/bin/python examples/04_environment.py
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs import Flight, QuadrotorVectorEnv, Verdict


@dataclass(frozen=True)
class HoverLow:
    """Hover above a point on the floor; lower is better, and touching the floor ends the episode.

    Attributes:
        seconds: Length of an episode.
        height: Of the start, m.
    """

    seconds: float = 4.0
    height: float = 1.0

    def begin(self, key: Array, n: int) -> tuple[Array, Array]:
        """Positions to start from and the points to hover above, both (n, 3) m."""
        place = jax.random.uniform(key, (n, 3), minval=-1.0) * jnp.array([1.0, 1.0, 0.0])
        return place + jnp.array([0.0, 0.0, self.height]), place

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """Position [m] and velocity [m/s] to have, both (N, 3), at a time (N, 1) s."""
        del time
        return origin, jnp.zeros_like(origin)

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """The verdict on a step."""
        del before
        height, aside = after.pos[:, 2], jnp.linalg.norm(after.error[:, :2], axis=-1)
        crashed = height < 0.02
        reward = 1 / (1 + 10 * height) - aside - 10 * crashed
        return Verdict(reward, terminated=crashed, success=(height < 0.2) & ~crashed)


def policy(obs: np.ndarray) -> np.ndarray:
    """Hold a place 0.1 m above the goal, as a damped spring would."""
    pull = 4 * np.clip(obs[:, :3] + [0, 0, 0.1], -0.3, 0.3) + 3.5 * obs[:, 3:6]
    tilt = np.stack([-pull[:, 1], pull[:, 0]], axis=-1) / 9.81 / 0.5
    return np.concatenate([tilt, np.zeros((len(obs), 1)), pull[:, 2:] / 9.81 / 0.6], axis=-1)


def main() -> None:
    """Fly 16 worlds for three seconds."""
    env = QuadrotorVectorEnv(num_envs=16, task=HoverLow())
    obs, _ = env.reset(seed=0)
    for _ in range(150):
        obs, reward, _, _, info = env.step(policy(obs).clip(-1, 1))
    print(f"reward {reward.mean():.2f}, {info['is_success'].mean():.0%} hover low")


if __name__ == "__main__":
    main()
