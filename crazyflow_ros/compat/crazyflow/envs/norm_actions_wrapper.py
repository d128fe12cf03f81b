"""`NormalizeActions`: actions from -1 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

__all__ = ["NormalizeActions"]


class NormalizeActions(VectorWrapper[Any, Any, Any, Any]):
    """A wrapper whose actions range from -1 to 1, and are clipped."""

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Wrap an environment whose actions have limits.

        Raises:
            ValueError: The actions have no limits.
        """
        super().__init__(env)
        space = env.single_action_space
        if not isinstance(space, Box) or not space.is_bounded():
            raise ValueError(f"NormalizeActions needs actions with limits, got {space}")
        self._scale = (space.high - space.low) / 2
        self._mean = (space.high + space.low) / 2
        self.single_action_space = Box(-1, 1, space.shape, np.float32)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Apply actions from -1 to 1."""
        return self.env.step(np.clip(actions, -1, 1) * self._scale + self._mean)
