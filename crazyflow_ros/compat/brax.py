"""Environments for Brax's training; requires the extra `brax`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.envs.task import Task
from crazyflow_ros.extras import extra
from crazyflow_ros.policy.action import SIZE

with extra("brax"):
    from brax.envs import Env, State

__all__ = ["BraxEnv"]


class BraxEnv(Env):  # type: ignore[misc]  # absent where this is checked
    """A world of one drone, as `brax.training.agents.*.train(environment=...)` expects it.

    Brax makes many worlds of it, and ends episodes after `episode_length`. `done` is 1 where the
    task ends; metrics are the terms of the task and `success`, 1 or 0.

    Attributes:
        environment: The environment of one world.
    """

    def __init__(self, task: Task, **options: Any) -> None:
        """Build the world.

        Args:
            task: Task of the drone.
            **options: See `Configuration`; not `autoreset` and `n_drones`.

        Raises:
            ValueError: An argument is out of range; the message names it.
            TypeError: There is no such option.
        """
        self.environment = Environment(1, task, autoreset="disabled", n_drones=1, **options)
        self.environment.compiled  # noqa: B018  # before Brax traces the first call

    def reset(self, rng: Array) -> State:
        """Begin an episode."""
        data, seen = self.environment.reset(rng)
        zero = jnp.zeros(())
        metrics = dict.fromkeys((*self.environment.episodes.names, "success"), zero)
        return State(data, _single(seen), zero, zero, metrics)

    def step(self, state: State, action: Array) -> State:
        """Apply an action (4,) until the next one is due."""
        data, step = self.environment.step(state.pipeline_state, action[None])
        values = {**step.terms, "success": step.success}
        metrics = state.metrics | {name: x[0].astype(float) for name, x in values.items()}
        done = step.terminated[0].astype(float)
        seen = _single(step.observation)
        return state.replace(
            pipeline_state=data, obs=seen, reward=step.reward[0], done=done, metrics=metrics
        )

    @property
    def observation_size(self) -> int:
        """Numbers of an observation, without pictures."""
        return self.environment.observation.numbers

    @property
    def action_size(self) -> int:
        """Numbers of an action."""
        return SIZE

    @property
    def backend(self) -> str:
        """The name of the physics."""
        return "crazyflow_ros"


def _single(seen: Any) -> Any:
    return {name: x[0] for name, x in seen.items()} if isinstance(seen, dict) else seen[0]
