"""Environments with gymnax's interface, for rejax and others; requires the extra `gymnax`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.envs import environment as ours
from crazyflow_ros.envs.task import Task
from crazyflow_ros.extras import extra
from crazyflow_ros.policy.action import SIZE

with extra("gymnax"):
    from gymnax.environments.environment import Environment, EnvParams
    from gymnax.environments.spaces import Box

__all__ = ["GymnaxEnv"]


class GymnaxEnv(Environment):  # type: ignore[misc]  # absent where this is checked
    """A world of one drone, whose episodes begin again in the step that ends them.

    `done` is also true where time is up, because gymnax does not tell these apart.

    Attributes:
        environment: The environment of one world.
    """

    def __init__(self, task: Task, **options: Any) -> None:
        """Build the world.

        Args:
            task: Task of the drone.
            **options: See `Configuration`; not `autoreset` and `n_drones`, and without an eye.

        Raises:
            ValueError: An argument is out of range; the message names it.
            TypeError: There is no such option.
        """
        self.environment = ours.Environment(1, task, autoreset="disabled", n_drones=1, **options)
        if self.environment.eyes is not None:
            raise ValueError("an environment for gymnax has no eye: its observations are arrays")
        self.environment.compiled  # noqa: B018  # before gymnax traces the first call

    def __deepcopy__(self, memo: Any) -> GymnaxEnv:
        """Return this: rejax copies environments, and this one has functions without a state."""
        del memo
        return self

    @property
    def default_params(self) -> EnvParams:
        """The length of an episode."""
        return EnvParams(max_steps_in_episode=self.environment.max_episode_steps)

    def reset_env(self, key: Array, params: Any) -> tuple[Array, Any]:
        """Begin an episode; return the observation and the state."""
        del params
        data, seen = self.environment.reset(key)
        return seen[0], data  # type: ignore[index]  # an array

    def step_env(
        self, key: Array, state: Any, action: Array, params: Any
    ) -> tuple[Array, Any, Array, Array, dict[str, Array]]:
        """Apply an action (4,) until the next one is due.

        Returns:
            The observation, the state, the reward, whether the episode ends, and `is_success`.
        """
        del key, params
        data, step = self.environment.step(state, action[None])
        done = (step.terminated | step.truncated)[0]
        seen: Any = step.observation
        return seen[0], data, step.reward[0], done, {"is_success": step.success[0]}

    def action_space(self, params: Any = None) -> Box:
        """Return the space of actions."""
        del params
        return Box(-1.0, 1.0, (SIZE,), jnp.float32)

    def observation_space(self, params: Any = None) -> Box:
        """Return the space of observations."""
        del params
        return Box(-jnp.inf, jnp.inf, (self.environment.observation.numbers,), jnp.float32)
