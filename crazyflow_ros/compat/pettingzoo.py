"""Swarms for PettingZoo; requires the extra `swarm`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from crazyflow_ros.envs.task import Task
from crazyflow_ros.envs.vector import Observations, QuadrotorVectorEnv, observation_space
from crazyflow_ros.extras import extra
from crazyflow_ros.policy.action import SIZE

with extra("swarm"):
    from pettingzoo import ParallelEnv

__all__ = ["QuadrotorSwarm"]


class QuadrotorSwarm(ParallelEnv):  # type: ignore[misc]  # has no type information
    """The drones of one world as agents cf0, cf1 and so on, each with its own task.

    An episode ends for all of them: when one fails, or when all do their task. With the option
    `ending="alone"`, each agent ends by itself.

    Attributes:
        worlds: The vector environment with that world.
    """

    def __init__(
        self, task: Task, n_drones: int = 2, render_mode: str | None = None, **options: Any
    ) -> None:
        """Build the world.

        Args:
            task: Task of the drones.
            n_drones: Number of drones, at least 2.
            render_mode: `rgb_array`, `human` or None, see `QuadrotorVectorEnv`.
            **options: See `Configuration`; not `autoreset`, because users reset this environment.

        Raises:
            ValueError: An argument is out of range; the message names it.
            TypeError: There is no such option.
        """
        if n_drones == 1:
            raise ValueError("n_drones must be at least 2 for a swarm, got 1")
        self.worlds = QuadrotorVectorEnv(
            1, task, render_mode=render_mode, n_drones=n_drones, autoreset="disabled", **options
        )
        self.metadata = {**self.worlds.metadata, "name": "crazyflow_ros_swarm_v0"}
        self.render_mode = render_mode
        self.possible_agents = [f"cf{i}" for i in range(n_drones)]
        self.agents: list[str] = []
        seen = observation_space(self.worlds.environment, ())
        actions = gymnasium.spaces.Box(-1, 1, (SIZE,), np.float32)
        self._spaces = dict.fromkeys(self.possible_agents, (actions, seen))

    def action_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the space of an agent's actions."""
        return self._spaces[agent][0]

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return the space of an agent's observations."""
        return self._spaces[agent][1]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observations], dict[str, dict[str, Any]]]:
        """Begin an episode; see `QuadrotorVectorEnv.reset`.

        `options` have no effect: PettingZoo's test of environments gives some that none knows.
        """
        del options
        obs, _ = self.worlds.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return _of_agents(self.agents, obs), {name: {} for name in self.agents}

    def step(
        self, actions: dict[str, np.ndarray]
    ) -> tuple[
        dict[str, Observations],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Apply the actions of all agents until the next ones are due.

        Raises:
            ValueError: An agent has no action, or one of a wrong shape, NaN or infinity.
        """
        if missing := [name for name in self.agents if name not in actions]:
            raise ValueError(f"actions are missing for {', '.join(missing)}")
        agents = self.agents
        if not agents:
            return {}, {}, {}, {}, {}
        rest = np.zeros(SIZE, np.float32)  # of those that have ended
        given = [np.asarray(actions.get(name, rest), np.float32) for name in self.possible_agents]
        obs, _, terminated, truncated, info = self.worlds.step(np.stack(given)[None])
        over, n = self.worlds.over, len(given)
        ends = np.full(n, terminated[0]) if over is None else over[0] > 0
        success = np.full(n, info["is_success"][0]) if over is None else over[0] == 2
        late = bool(truncated[0])
        each = dict(zip(self.possible_agents, zip(self.worlds.rewards_of_drones[0], ends, success)))
        self.agents = [] if late else [name for name in agents if not each[name][1]]
        seen = _of_agents(self.possible_agents, obs)
        return (
            {name: seen[name] for name in agents},
            {name: float(each[name][0]) for name in agents},
            {name: bool(each[name][1]) for name in agents},
            dict.fromkeys(agents, late),
            {name: {"is_success": bool(each[name][2])} for name in agents},
        )

    def render(self) -> np.ndarray | None:
        """Return an image, (480, 640, 3) uint8, or None in other modes."""
        pictures = self.worlds.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Free the renderers."""
        self.worlds.close()


def _of_agents(agents: list[str], seen: Observations) -> dict[str, Observations]:
    """Return the observations of the drones of the first world by agent."""
    if not isinstance(seen, dict):
        return dict(zip(agents, seen[0]))
    return {name: {k: x[0, i] for k, x in seen.items()} for i, name in enumerate(agents)}
