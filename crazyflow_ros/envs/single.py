"""The environment of one world."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.envs.task import Task
from crazyflow_ros.envs.vector import RENDER_MODES, Observations, QuadrotorVectorEnv, of_world
from crazyflow_ros.sim import Sim


class QuadrotorEnv(gymnasium.Env[Observations, np.ndarray]):
    """An `Environment` of one world, with Gymnasium's interface; see `QuadrotorVectorEnv`.

    Attributes:
        worlds: The vector environment with that world.
    """

    def __init__(self, task: Task, render_mode: str | None = None, **options: Any) -> None:
        """Build the world.

        Args:
            task: Task of the drones.
            render_mode: `rgb_array`, `human` or None, see `QuadrotorVectorEnv`.
            **options: See `Configuration`; not `autoreset`, because users reset this environment.

        Raises:
            ValueError: An argument is out of range; the message names it.
            TypeError: There is no such option.
        """
        self.worlds = QuadrotorVectorEnv(
            1, task, render_mode=render_mode, autoreset="disabled", **options
        )
        fps = self.worlds.metadata["render_fps"]
        self.metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": fps}
        self.render_mode = render_mode
        self.action_space = self.worlds.single_action_space
        self.observation_space = self.worlds.single_observation_space

    @property
    def sim(self) -> Sim:
        """The simulation. Stages added to its pipelines act from the next step or reset on."""
        return self.worlds.sim

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin an episode; see `QuadrotorVectorEnv.reset`.

        Raises:
            ValueError: There are options.
        """
        if options:
            raise ValueError(f"a reset takes no options, got {shown(list(options))}")
        super().reset(seed=seed)
        obs, _ = self.worlds.reset(seed=int(self.np_random.integers(2**31)))
        return of_world(obs, 0), {}

    def step(self, action: np.ndarray) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Apply an action until the next one is due; see `QuadrotorVectorEnv.step`."""
        obs, reward, terminated, truncated, info = self.worlds.step(np.asarray(action)[None])
        found: dict[str, Any] = {"is_success": bool(info["is_success"][0])}
        if "terms" in info:
            found["terms"] = {name: float(x[0]) for name, x in info["terms"].items()}
        ended = bool(terminated[0]), bool(truncated[0])
        return of_world(obs, 0), float(reward[0]), *ended, found

    def render(self) -> np.ndarray | None:
        """Return an image, (480, 640, 3) uint8, or None in other modes."""
        pictures = self.worlds.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Free the renderers."""
        self.worlds.close()
