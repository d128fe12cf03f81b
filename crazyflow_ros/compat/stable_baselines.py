"""Environments for stable-baselines3; requires the extra `sb3`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.envs.vector import Observations, QuadrotorVectorEnv
from crazyflow_ros.extras import extra

with extra("sb3"):
    from stable_baselines3.common.vec_env import VecEnv

__all__ = ["StableBaselinesEnv"]


class StableBaselinesEnv(VecEnv):  # type: ignore[misc]  # absent where this is checked
    """A vector environment as stable-baselines3 expects it.

    With pictures, observations are dictionaries, for a policy such as `MultiInputPolicy`.

    Attributes:
        worlds: The vector environment, whose `autoreset` is `same_step`.
    """

    def __init__(self, worlds: QuadrotorVectorEnv) -> None:
        """Adapt an environment.

        Args:
            worlds: Built with `autoreset="same_step"`.

        Raises:
            ValueError: Its `autoreset` has another value.
        """
        mode = worlds.environment.config.autoreset
        if mode != "same_step":
            raise ValueError(f"autoreset must be same_step for stable-baselines3, got {mode}")
        self.worlds = worlds
        self._actions: np.ndarray | None = None
        self._seed: int | None = None
        self.render_mode = worlds.render_mode
        super().__init__(
            worlds.num_envs, worlds.single_observation_space, worlds.single_action_space
        )

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Set the seed of the next reset."""
        self._seed = seed
        return [seed] * self.num_envs

    def set_options(self, options: Any = None) -> None:
        """Set the options of the next reset, of which there are none.

        Raises:
            ValueError: There are some.
        """
        given = [options] if isinstance(options, dict) else options or []
        if any(given):
            raise ValueError(f"a reset takes no options, got {shown(options)}")

    def reset(self) -> Observations:
        """Begin an episode in each world, and return the observations."""
        obs, _ = self.worlds.reset(seed=self._seed)
        self._seed = None
        return _copied(obs)

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Observations, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Apply the actions, and return observations, rewards, ends and information by world."""
        assert self._actions is not None
        obs, reward, terminated, truncated, info = self.worlds.step(self._actions)
        done = terminated | truncated
        infos: list[dict[str, Any]] = [
            {"is_success": bool(success)} for success in info["is_success"]
        ]
        for i in np.flatnonzero(done):
            infos[i]["terminal_observation"] = info["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return _copied(obs), np.array(reward), done, infos

    def close(self) -> None:
        """Free the renderers."""
        self.worlds.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return an image of each world."""
        return self.worlds.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the environment, once for each world in `indices`."""
        return [getattr(self.worlds, attr_name)] * self._count(indices)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment.

        Raises:
            ValueError: `indices` leaves out some worlds.
        """
        self._all(attr_name, indices)
        setattr(self.worlds, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the environment, which acts on all worlds.

        Raises:
            ValueError: `indices` leaves out some worlds.
        """
        self._all(method_name, indices)
        result = getattr(self.worlds, method_name)(*method_args, **method_kwargs)
        return [result] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return False: there are no wrappers of single worlds."""
        del wrapper_class
        return [False] * self._count(indices)

    def _count(self, indices: int | Iterable[int] | None) -> int:
        return len(list(self._get_indices(indices)))

    def _all(self, name: str, indices: int | Iterable[int] | None) -> None:
        if self._count(indices) != self.num_envs:
            raise ValueError(f"{name} is common to all worlds, got indices {indices}")


def _copied(seen: Observations) -> Observations:
    """Return observations that the next step does not overwrite."""
    if isinstance(seen, dict):
        return {name: np.array(x) for name, x in seen.items()}
    return np.array(seen)
