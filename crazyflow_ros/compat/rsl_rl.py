"""Environments for rsl_rl, with torch's tensors; requires the extra `rsl_rl`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.envs.episodes import PRIVILEGED
from crazyflow_ros.extras import extra
from crazyflow_ros.policy.action import SIZE

with extra("rsl_rl"):
    import torch
    from rsl_rl.env import VecEnv
    from tensordict import TensorDict

__all__ = ["RslRlEnv"]


class RslRlEnv(VecEnv):  # type: ignore[misc]  # absent where this is checked
    """Worlds of one drone, whose arrays torch reads without copies, on the device of JAX.

    Groups of observations are `policy`, `privileged` if the task has such terms, and pictures by
    their kind. Tensors share memory with arrays of JAX: do not write into them.

    Attributes:
        environment: The environment, whose `autoreset` is `same_step`.
    """

    def __init__(self, environment: Environment, seed: int = 0) -> None:
        """Adapt an environment, and begin an episode in each world.

        Args:
            environment: Built with `autoreset="same_step"` and one drone per world.
            seed: Seed of the random numbers.

        Raises:
            ValueError: Its `autoreset` has another value, or a world has several drones.
        """
        config = environment.config
        if config.autoreset != "same_step" or config.n_drones != 1:
            given = f"autoreset={config.autoreset}, n_drones={config.n_drones}"
            raise ValueError(f"rsl_rl needs autoreset=same_step and n_drones=1, got {given}")
        self.environment, self.cfg = environment, config
        self.num_envs, self.num_actions = environment.num_envs, SIZE
        self.max_episode_length = environment.max_episode_steps
        self._step = jax.jit(environment.step)
        self._data, seen = environment.reset(jax.random.key(seed))
        private = self._data.plugins.get(PRIVILEGED)
        self._seen = self._groups(seen, None if private is None else private[:, 0])
        self.device = self._seen["policy"].device

    def _groups(self, seen: Any, privileged: Array | None) -> TensorDict:
        groups = {"motion": seen} if not isinstance(seen, dict) else dict(seen)
        groups["policy"] = groups.pop("motion")
        if privileged is not None:
            groups["privileged"] = privileged
        tensors = {name: torch.from_dlpack(x) for name, x in groups.items()}
        return TensorDict(tensors, batch_size=[self.num_envs])

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Steps since the beginning of each episode, (num_envs,). They can be set."""
        steps = torch.from_dlpack(self._data.core.steps)[:, 0]
        return steps // self.environment.config.ticks

    @episode_length_buf.setter
    def episode_length_buf(self, steps: torch.Tensor) -> None:
        core, ticks = self._data.core, self.environment.config.ticks
        given = jnp.asarray(steps.cpu().numpy(), core.steps.dtype)[:, None] * ticks
        self._data = self._data.replace(core=core.replace(steps=given))

    def get_observations(self) -> TensorDict:
        """Return the present observations."""
        return self._seen

    def step(
        self, actions: torch.Tensor
    ) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Apply actions (num_envs, 4) until the next ones are due.

        Returns:
            Observations, rewards, ends, 1 or 0, and a dictionary: `time_outs`, and in `log` the
            means of the task's terms.
        """
        given = jnp.from_dlpack(actions.detach().contiguous())
        self._data, step = self._step(self._data, given)
        self._seen = self._groups(step.observation, step.privileged)
        dones, time_outs = (
            torch.from_dlpack(x.astype(jnp.int32))
            for x in (step.terminated | step.truncated, step.truncated & ~step.terminated)
        )
        log = {name: torch.from_dlpack(x.mean()) for name, x in step.terms.items()}
        extras = {"time_outs": time_outs.float(), "log": log}
        return self._seen, torch.from_dlpack(step.reward), dones, extras
