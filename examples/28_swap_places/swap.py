"""Eight drones swap places without touching, by a policy that is trained here.

The task consists of terms: each drone is told where the others are, and pays for tilt, effort,
sudden actions and for coming close. Run it from the root folder of the repository:

    .venv/bin/python examples/28_swap_places/swap.py            # fly the policy beside this file
    .venv/bin/python examples/28_swap_places/swap.py --train    # train another one
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import pi
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros import envs
from crazyflow_ros.envs import Flight, ObservationTerm, RewardTerm, TerminationTerm, Terms, TermTask
from crazyflow_ros.learn import (
    Bptt,
    BpttSettings,
    Evaluation,
    Progress,
    Training,
    evaluate,
    train,
)
from crazyflow_ros.policy import load, save

N = 8
POLICY = Path(__file__).with_name("swap.policy")
PARTS = ("body_position_error", "body_velocity", "rotation", "body_rates", "previous_action")


@dataclass(frozen=True)
class Swap(TermTask):
    """Drones on a circle fly to the places of those opposite.

    Attributes:
        seconds: Length of an episode.
        radius: Of the circle, m.
        spread: How far places are off the circle along each axis, m.
        touch: Distance of two centres at which drones touch, m.
        clear: Distance below which closeness costs, m.
    """

    seconds: float = 8.0
    radius: float = 1.2
    spread: float = 0.2
    touch: float = 0.15
    clear: float = 0.5

    def begin(self, key: Array, n: int) -> envs.Start:
        """Each drone has the place of the one half a circle further as its goal."""
        draw = jax.random.uniform(key, (n, 4), minval=-1)
        angle = 2 * pi * jnp.arange(n) / n + pi * draw[0, 3]
        level = self.radius * jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], axis=-1)
        pos = level + self.spread * draw[:, :3] + jnp.array([0.0, 0.0, 2.0])
        return envs.Start(pos, jnp.roll(pos, n // 2, axis=0), rotor_vel=jnp.full((n, 4), 16e3))

    def close(self, now: Flight) -> Array:
        """What others cost that are nearer than `clear`."""
        apart = envs.length(now.others(now.pos) - now.pos[:, None])
        return (jnp.maximum(1 - apart / self.clear, 0) ** 2).sum(axis=-1)

    @staticmethod
    def slip(now: Flight) -> Array:
        """The difference from the velocity of a good approach, m/s."""
        wanted = 2 * now.error / jnp.sqrt(1 + 2 * (now.error**2).sum(axis=-1))[:, None]
        return envs.length(now.vel - wanted)

    @property
    def terms(self) -> Terms:
        """What is rewarded, what ends an episode, and what drones are told of each other."""
        return Terms(
            rewards={
                "distance": RewardTerm(lambda now: envs.length(now.error), -1.0),
                "slip": RewardTerm(self.slip, -0.4),
                "close": RewardTerm(self.close, -20.0),
                "tilt": RewardTerm(envs.tilt, -0.05),
                "spin": RewardTerm(envs.spin, -0.002),
                "effort": RewardTerm(envs.effort, -0.01),
                "smooth": RewardTerm(envs.action_rate, -0.02),
            },
            terminations={
                "touched": TerminationTerm(lambda now: envs.nearest(now) < self.touch),
                "floor": TerminationTerm(envs.on_floor),
            },
            success=lambda now: envs.length(now.error) < 0.1,
            observations={"others": ObservationTerm(envs.neighbours)},
        )


def learned(updates: int = 1600, worlds: int = 24, seed: int = 0) -> Training:
    """Let a policy learn by back-propagation of the rewards through time."""
    env = envs.Environment(
        worlds, Swap(), n_drones=N, freq=100, action="rotor_vel", observation=PARTS
    )
    settings = BpttSettings(updates=updates, seed=seed, learning_rate=0.01, episode=8)

    def report(now: Progress) -> None:
        terms = "  ".join(f"{name} {value:.3f}" for name, value in now.terms.items())
        print(f"{now.seconds:.0f} s, {now.updates} updates: {terms}", flush=True)

    return train(Bptt(env, settings, cost=None), report)


def swapped(starts: int) -> Evaluation:
    """Let the policy beside this file swap places, with the physics at 500 Hz."""
    return evaluate(load(POLICY), Swap(), starts, n_drones=N)


def paths(seconds: float = 6.0) -> np.ndarray:
    """Return the positions of the drones in one swap, (steps, N, 3) m."""
    policy = load(POLICY)
    env = envs.Environment(1, Swap(), n_drones=N, action=policy.action, observation=PARTS)

    def fly(carry: Any, _: None) -> tuple[Any, Array]:
        state, seen = carry
        action, _ = policy.network((seen - policy.mean) / policy.std, policy.network.memory)
        state, step = env.step(state, action)
        return (state, step.observation), state.states.pos[0]

    first = env.reset(jax.random.key(2))
    return np.asarray(jax.jit(lambda: jax.lax.scan(fly, first, length=round(50 * seconds)))()[1])


def main() -> None:
    """Train, if asked to, and print how many swaps succeed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", action="store_true", help="train the policy anew")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--starts", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.train:
        save(learned(seed=arguments.seed).policy, POLICY)
    print(swapped(arguments.starts))


if __name__ == "__main__":
    main()
