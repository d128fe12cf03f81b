"""The environments of Crazyflow 0.4, with the same names, spaces, rewards and ends of episodes.

`register` makes them known under Crazyflow's own ids; with the prefix `crazyflow_ros/`, importing
`crazyflow_ros.envs` does. Arrays are NumPy's. In the step that begins an episode the reward is 0,
as Gymnasium documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, pi, tau
from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from jax import Array

from crazyflow_ros.control import Control, PowerDistribution
from crazyflow_ros.drones import AnyDrone, load_drone
from crazyflow_ros.dynamics.components import sin_cos
from crazyflow_ros.envs.task import Flight, Start, Verdict
from crazyflow_ros.envs.tasks import within
from crazyflow_ros.envs.terms import length
from crazyflow_ros.envs.vector import QuadrotorVectorEnv
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.observation import PARTS
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.randomize import ResetStage

Bounds = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Lowest and highest values."""

_MOTION = {"pos": "position", "quat": "attitude", "vel": "velocity", "ang_vel": "body_rates"}
_AT_REST: Bounds = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def _drawn(key: Array, n: int, bounds: Bounds) -> Array:
    low, high = np.asarray(bounds, float)
    return within(key, n, tuple((low + high) / 2), tuple((high - low) / 2))


@dataclass(frozen=True)
class _ReachPos:
    """Be at a point: exp(-2 * distance), and -1 on the floor."""

    seconds: float
    pos: Bounds = ((-1.0, -1.0, 1.0), (1.0, 1.0, 2.0))
    vel: Bounds = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    goals: Bounds = ((-1.0, -1.0, 0.5), (1.0, 1.0, 1.5))

    def begin(self, key: Array, n: int) -> Start:
        keys = jax.random.split(key, 3)
        pos, vel, goal = map(_drawn, keys, (n, n, n), (self.pos, self.vel, self.goals))
        return Start(pos, goal, vel=vel)

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        del time
        return origin, jnp.zeros_like(origin)

    def reward(self, flight: Flight) -> Array:
        """Return the reward off the floor."""
        return jnp.exp(-2 * length(flight.error))

    def ends(self, flight: Flight) -> Array:
        """Return whether the drone has failed."""
        return flight.pos[:, 2] < 0

    def judge(self, before: Flight, after: Flight) -> Verdict:
        del before
        failed = self.ends(after)
        return Verdict(jnp.where(failed, -1.0, self.reward(after)), failed, ~failed)


@dataclass(frozen=True)
class _ReachVel(_ReachPos):
    """Fly at a velocity: exp(-difference), and -1 on the floor."""

    goals: Bounds = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        del time
        return jnp.zeros_like(origin), origin

    def reward(self, flight: Flight) -> Array:
        return jnp.exp(-length(flight.vel_error))


@dataclass(frozen=True)
class _Landing(_ReachPos):
    """Be slow, 10 cm above the origin: exp(-2 * distance - 2 * speed), and -1 on the floor."""

    goals: Bounds = ((0.0, 0.0, 0.1), (0.0, 0.0, 0.1))

    def reward(self, flight: Flight) -> Array:
        return jnp.exp(-2 * length(flight.error) - 2 * length(flight.vel))


@dataclass(frozen=True)
class _FigureEight(_ReachPos):
    """Follow a vertical figure eight; more than 2 m from the origin along an axis is a failure."""

    pos: Bounds = ((-0.1, -0.1, 1.1), (0.1, 0.1, 1.3))
    vel: Bounds = ((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))
    goals: Bounds = _AT_REST
    rate: int = 500
    points: int = 5000

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """The first point is that of the first step."""
        phase = (time[:, 0] * self.rate - 1) * (tau / (self.points - 1))
        (sin, _), (sin2, _) = sin_cos(phase), sin_cos(2 * phase)
        return jnp.stack([sin, 0 * sin, 1 + sin2 / 2], axis=-1), jnp.zeros_like(origin)

    def ends(self, flight: Flight) -> Array:
        return (flight.pos[:, 2] < 0) | (jnp.abs(flight.pos) > 2).any(axis=-1)


class DroneEnv(VectorEnv[dict[str, np.ndarray], np.ndarray, np.ndarray]):
    """Worlds of one drone. Actions are roll, pitch, yaw [rad] and thrust [N].

    Observations are a dictionary of the motion.

    Attributes:
        worlds: The environment that this one wraps.
        device: The JAX device that computes it.
    """

    _task: ClassVar[type[_ReachPos]] = _ReachPos
    _goal: ClassVar[tuple[str, str] | None] = ("difference_to_goal", "position_error")

    def __init__(
        self,
        *,
        num_envs: int = 1,
        max_episode_time: float = 10.0,
        dynamics: str = "so_rpy",
        drone: AnyDrone = "cf2x_L250",
        freq: int = 500,
        device: str = "cpu",
        reset_randomization: ResetStage | None = None,
        **fields: Any,
    ) -> None:
        """Build the worlds.

        Args:
            num_envs: Number of worlds.
            max_episode_time: Length of an episode, s.
            dynamics: A `Dynamics`.
            drone: A `Drone`, or the path of a drone's folder.
            freq: Actions per second; must divide 500.
            device: Kind of the JAX device.
            reset_randomization: Stage of the reset that replaces random positions and velocities.
            **fields: Fields of the task.

        Raises:
            ValueError: An argument is out of range; the message names it.
        """
        self.device = jax.devices(device)[0]
        if reset_randomization is not None:
            fields |= {"pos": _AT_REST, "vel": _AT_REST}
        figures = load_drone(drone)
        least, most = 4 * figures["thrust_min"], 4 * figures["thrust_max"]
        offset = (0.0, 0.0, 0.0, (most + least) / 2)
        scale = (pi / 2, pi / 2, pi / 2, (most - least) / 2)
        self._offset, self._scale = (np.array(x, np.float32) for x in (offset, scale))
        parts = _MOTION | (dict([self._goal]) if self._goal else {})
        with jax.default_device(self.device):
            self.worlds = QuadrotorVectorEnv(
                num_envs,
                self._task(max_episode_time, **fields),
                drone=drone,
                dynamics=dynamics,
                action_freq=freq,
                action=Action(Control.attitude, offset, scale),
                observation=tuple(parts.values()),
                randomizers=() if reset_randomization is None else (reset_randomization,),
                max_episode_steps=ceil(max_episode_time * freq - 1e-6),
                power_distribution=PowerDistribution.clipped,
            )
        self.num_envs, self.freq, self.max_episode_time = num_envs, freq, max_episode_time
        self.metadata = self.worlds.metadata
        self._sizes = {name: PARTS[part].size for name, part in parts.items()}
        low, high = self._offset - self._scale, self._offset + self._scale
        self.single_action_space = Box(low, high, dtype=np.float32)
        self.single_observation_space = Dict(
            {name: Box(-np.inf, np.inf, (n,)) for name, n in self._observed.items()}
        )
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    @property
    def _observed(self) -> dict[str, int]:
        """The sizes of observations by name."""
        return self._sizes

    @property
    def sim(self) -> Sim:
        """The simulation."""
        return self.worlds.sim

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """See `QuadrotorVectorEnv.reset`."""
        obs, info = self.worlds.reset(seed=seed, options=options)
        return self._divided(obs), info

    def step(
        self, action: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply actions until the next ones are due; see `QuadrotorVectorEnv.step`."""
        obs, *results = self.worlds.step((np.asarray(action) - self._offset) / self._scale)
        return self._divided(obs), *results  # type: ignore[return-value]  # of known length

    def _divided(self, obs: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parts of an observation by name."""
        ends = np.cumsum(list(self._sizes.values()))[:-1]
        return dict(zip(self._sizes, np.split(obs, ends, axis=-1)))

    def render(self) -> Any:
        """Show the first world, see `Sim.render`."""
        return self.sim.render()

    def close_extras(self, **_: Any) -> None:
        """Free the renderers."""
        self.worlds.close()


class ReachPosEnv(DroneEnv):
    """Reach a point that differs between episodes."""


class ReachVelEnv(DroneEnv):
    """Reach a velocity that differs between episodes."""

    _task = _ReachVel
    _goal = ("difference_to_target_vel", "velocity_error")


class LandingEnv(DroneEnv):
    """Land at the origin."""

    _task = _Landing


class FigureEightEnv(DroneEnv):
    """Follow a vertical figure eight, whose next points are observed."""

    _task = _FigureEight
    _goal = None

    def __init__(
        self,
        n_samples: int = 10,
        samples_dt: float = 0.1,
        trajectory_time: float = 10.0,
        *,
        max_episode_time: float = 10.0,
        freq: int = 500,
        **options: Any,
    ) -> None:
        """Build the worlds.

        Args:
            n_samples: Number of points in an observation.
            samples_dt: Time between them, s.
            trajectory_time: Time for the eight, s; at least `max_episode_time`.
            max_episode_time: Length of an episode, s.
            freq: Actions per second; must divide 500.
            **options: See `DroneEnv`.

        Raises:
            ValueError: An argument is out of range; the message names it.
        """
        if trajectory_time < max_episode_time:
            raise ValueError(
                f"trajectory_time must be at least {max_episode_time} s, got {trajectory_time}"
            )
        points = ceil(trajectory_time * freq)
        self._offsets = np.array(np.arange(n_samples) * freq * samples_dt, int)
        t = np.linspace(0, tau, points)
        self.trajectory = np.stack([np.sin(t), 0 * t, np.sin(2 * t) / 2 + 1], -1, dtype=np.float32)
        options |= {"rate": freq, "points": points}
        super().__init__(max_episode_time=max_episode_time, freq=freq, **options)

    @property
    def _observed(self) -> dict[str, int]:
        return self._sizes | {"local_samples": 3 * len(self._offsets)}

    def _divided(self, obs: np.ndarray) -> dict[str, np.ndarray]:
        divided = super()._divided(obs)
        ticks = np.asarray(self.sim.data.core.steps)
        index = ticks // self.worlds.environment.config.ticks - 1 + self._offsets
        samples = self.trajectory[index % len(self.trajectory)] - divided["pos"][:, None]
        return divided | {"local_samples": samples.reshape(self.num_envs, -1)}


_IDS: dict[str, type[DroneEnv]] = {
    "DroneReachPos-v0": ReachPosEnv,
    "DroneReachVel-v0": ReachVelEnv,
    "DroneLanding-v0": LandingEnv,
    "DroneFigureEightTrajectory-v0": FigureEightEnv,
}


def register(prefix: str = "") -> None:
    """Register the environments with Gymnasium, so that scripts for Crazyflow find them.

    Args:
        prefix: Prefix of Crazyflow's ids.

    Raises:
        ValueError: An id belongs to something else, as after an import of Crazyflow itself; then
            none is registered.
    """
    for name, env in _IDS.items():
        known = gymnasium.registry.get(f"{prefix}{name}")
        if known is not None and known.vector_entry_point is not env:
            raise ValueError(f"{prefix}{name} is registered already, by {known.vector_entry_point}")
    for name, env in _IDS.items():
        if f"{prefix}{name}" not in gymnasium.registry:
            gymnasium.register(id=f"{prefix}{name}", vector_entry_point=env)


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
