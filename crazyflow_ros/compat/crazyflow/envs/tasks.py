"""Crazyflow's four tasks."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.compat.crazyflow.envs.drone_env import DroneEnv, within
from crazyflow_ros.compat.crazyflow.sim.visualize import draw_line, draw_points

__all__ = ["FigureEightEnv", "LandingEnv", "ReachPosEnv", "ReachVelEnv"]

_RED = np.array([1.0, 0.0, 0.0, 0.5])


class _GoalEnv(DroneEnv):
    """A goal (N, 3) in each world, drawn between limits that the options of a reset may change."""

    _limits: ClassVar[dict[str, tuple[float, float, float]]]
    """The limits, by the names of the options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.jax_key = jax.random.key(int(self.np_random.random() * 2**32))
        self._goal = jnp.zeros((self.num_envs, 3), device=self.device)

    def _reset(self, mask: Array | None = None, options: dict[str, Any] | None = None) -> None:
        self.jax_key, key = jax.random.split(self.jax_key)
        given = self._limits | {k: v for k, v in (options or {}).items() if k in self._limits}
        low, high = map(jnp.asarray, given.values())
        goal = jax.random.uniform(key, self._goal.shape, minval=low, maxval=high)
        self._goal = goal if mask is None else jnp.where(mask[:, None], goal, self._goal)
        self.sim.reset(mask=mask)

    def _or_failed(self, reward: Array) -> Array:
        return jnp.where(self.terminated(), -1.0, reward)


class ReachPosEnv(_GoalEnv, pure=True):
    """Be at a point: exp(-2 * distance), and -1 below the floor."""

    _limits: ClassVar = {"goal_pos_min": (-1.0, -1.0, 0.5), "goal_pos_max": (1.0, 1.0, 1.5)}

    def __init__(
        self,
        pos_min: Any = (-1.0, -1.0, 1.0),
        pos_max: Any = (1.0, 1.0, 2.0),
        vel_min: float = -1.0,
        vel_max: float = 1.0,
        **options: Any,
    ) -> None:
        """Build worlds whose episodes begin between these limits; see `DroneEnv`."""
        stage = within(pmin=pos_min, pmax=pos_max, vmin=vel_min, vmax=vel_max)
        super().__init__(reset_randomization=stage, **options)
        self._observe(difference_to_goal=3)

    def obs(self) -> dict[str, Array]:
        """Return the motion, and the way to the goal."""
        return super().obs() | {"difference_to_goal": self._goal - self.sim.data.states.pos[:, 0]}

    def reward(self) -> Array:
        """See the class."""
        away = jnp.linalg.norm(self.sim.data.states.pos[:, 0] - self._goal, axis=-1)
        return self._or_failed(jnp.exp(-2.0 * away))

    def render(self) -> Any:
        """Show the first world and its goal."""
        draw_points(self.sim, np.asarray(self._goal[:1]), _RED, 0.02)
        return super().render()


class ReachVelEnv(_GoalEnv, pure=True):
    """Fly at a velocity: exp(-difference), and -1 below the floor."""

    _limits: ClassVar = {"vel_min": (-1.0, -1.0, -1.0), "vel_max": (1.0, 1.0, 1.0)}

    def __init__(self, **options: Any) -> None:
        """Build worlds; see `DroneEnv`."""
        super().__init__(**options)
        self._observe(difference_to_target_vel=3)

    def obs(self) -> dict[str, Array]:
        """Return the motion, and the change of velocity to the goal."""
        change = self._goal - self.sim.data.states.vel[:, 0]
        return super().obs() | {"difference_to_target_vel": change}

    def reward(self) -> Array:
        """See the class."""
        away = jnp.linalg.norm(self.sim.data.states.vel[:, 0] - self._goal, axis=-1)
        return self._or_failed(jnp.exp(-away))


class LandingEnv(ReachPosEnv, pure=True):
    """Be slow, 10 cm above the origin: exp(-2 * distance - 2 * speed), and -1 below the floor."""

    _limits: ClassVar = {"goal_pos_min": (0.0, 0.0, 0.1), "goal_pos_max": (0.0, 0.0, 0.1)}

    def reward(self) -> Array:
        """See the class."""
        states = self.sim.data.states
        away = jnp.linalg.norm(states.pos[:, 0] - self._goal, axis=-1)
        speed = jnp.linalg.norm(states.vel[:, 0], axis=-1)
        return self._or_failed(jnp.exp(-2.0 * (away + speed)))


class FigureEightEnv(DroneEnv, pure=True):
    """Follow a vertical figure eight: exp(-2 * distance), and -1 where an episode fails.

    That is below the floor, and more than 2 m from the origin along an axis.
    """

    _reset_randomization = within(pmin=(-0.1, -0.1, 1.1), pmax=(0.1, 0.1, 1.3), vmin=-0.5, vmax=0.5)

    def __init__(
        self,
        n_samples: int = 10,
        samples_dt: float = 0.1,
        trajectory_time: float = 10.0,
        **options: Any,
    ) -> None:
        """Build worlds; see `DroneEnv`.

        Args:
            n_samples: Number of points in an observation.
            samples_dt: Time between them, s.
            trajectory_time: Time for the eight, s; at least `max_episode_time`.
            **options: See `DroneEnv`.

        Raises:
            ValueError: An episode is longer than the eight.
        """
        super().__init__(**options)
        if trajectory_time < self.max_episode_time:
            raise ValueError("Trajectory time must be greater than max episode time")
        t = np.linspace(0, 2 * np.pi, int(np.ceil(trajectory_time * self.freq)))
        self.trajectory = np.stack([np.sin(t), np.zeros_like(t), np.sin(2 * t) / 2 + 1], axis=-1)
        self.n_samples, self.samples_dt = n_samples, samples_dt
        self.sample_offsets = np.array(np.arange(n_samples) * self.freq * samples_dt, int)
        self._observe(local_samples=3 * n_samples)

    @property
    def steps(self) -> Array:
        """The point of the trajectory at which each world is, (N, 1)."""
        return self.sim.data.core.steps // self.n_substeps - 1

    def _next_points(self) -> Array:
        index = (self.steps + self.sample_offsets[None]) % len(self.trajectory)
        return jnp.asarray(self.trajectory)[index]

    def obs(self) -> dict[str, Array]:
        """Return the motion, and the way to the next points."""
        away = self._next_points() - self.sim.data.states.pos
        return super().obs() | {"local_samples": away.reshape(self.num_envs, -1)}

    def reward(self) -> Array:
        """See the class."""
        goal = jnp.asarray(self.trajectory)[self.steps[:, 0]]
        away = jnp.linalg.norm(self.sim.data.states.pos[:, 0] - goal, axis=-1)
        return jnp.where(self.terminated(), -1.0, jnp.exp(-2.0 * away))

    @staticmethod
    @jax.jit
    def _terminated(pos: Array) -> Array:
        return (pos[:, 0, 2] < 0) | (jnp.abs(pos[:, 0]) > 2).any(axis=-1)

    def render(self) -> Any:
        """Show the first world and its next points."""
        points = np.asarray(self._next_points()[0])
        draw_line(self.sim, points)
        draw_points(self.sim, points)
        return super().render()
