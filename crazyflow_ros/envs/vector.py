"""The vector environment."""

from __future__ import annotations

from functools import partial
from math import pi
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jax import Array

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.drones import DEFAULT_DRONE, AnyDrone
from crazyflow_ros.envs.tasks import Flight, Task, Verdict
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.arguments import whole
from crazyflow_ros.sim.compile.blocks import each_world
from crazyflow_ros.sim.compile.stepping import Composed, StepFn
from crazyflow_ros.sim.compile.ticks import replaced
from crazyflow_ros.sim.functional import attitude_control
from crazyflow_ros.sim.leaves import changed_leaves, traced
from crazyflow_ros.sim.reset import ResetFn
from crazyflow_ros.sim.stages import Stage

_GOAL = "goal"


class _Built(NamedTuple):
    """A step of the environment, and the pipelines from which it was built."""

    pipelines: tuple[tuple[Any, ...], ...]
    step: Composed


class _Motion(NamedTuple):
    """What observations and tasks read of the data, world by world."""

    pos: Array
    quat: Array
    vel: Array
    ang_vel: Array
    origin: Array
    """(N, 3) of the goal, see `Task`."""
    steps: Array
    """(N, 1) ticks since the beginning of the episode."""

    @classmethod
    def of(cls, data: SimData) -> _Motion:
        """Return the motion of the only drone of each world."""
        fields = (data.states.pos, data.states.quat, data.states.vel, data.states.ang_vel)
        pos, quat, vel, ang_vel, origin = (x[:, 0] for x in (*fields, data.plugins[_GOAL]))
        return cls(pos, quat, vel, ang_vel, origin, data.core.steps)


class QuadrotorVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Worlds of one drone each, all stepped by one compiled function.

    An action is four numbers from -1 to 1: roll and pitch as shares of `max_tilt`, yaw as a share
    of half a turn, and thrust, which is 1 + `thrust_range` * action times the hover thrust. An
    observation is 13 numbers: vector from the drone to the goal [m], the goal's velocity relative
    to the drone [m/s], both in world axes, attitude (xyzw), and body rates [rad/s].

    A world that has ended is reset by the next step, which ignores its action
    (`AutoresetMode.NEXT_STEP`). `info["is_success"]` says which worlds have completed their task.

    Attributes:
        sim: The simulation. Stages that are added to its pipelines take part in the next step and
            in the next reset, by `reset` or of a world that has ended.
        task: The task.
    """

    def __init__(
        self,
        num_envs: int,
        task: Task,
        drone: AnyDrone = DEFAULT_DRONE,
        dynamics: str = "first_principles",
        freq: int = 500,
        action_freq: int = 50,
        max_tilt: float = 0.5,
        thrust_range: float = 0.6,
        render_mode: str | None = None,
    ) -> None:
        """Build the worlds.

        Args:
            num_envs: Number of worlds.
            task: Task of the drones.
            drone: A `Drone`, or the path of a drone's folder.
            dynamics: A `Dynamics`.
            freq: Physics ticks per second.
            action_freq: Actions per second; must divide `freq`.
            max_tilt: Maximum roll and pitch, rad.
            thrust_range: Maximum deviation from the hover thrust, as a share of it.
            render_mode: `rgb_array`, or None.

        Raises:
            ValueError: An argument is out of range; the message names it.
        """
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        whole("num_envs", num_envs)
        if not isinstance(task, Task):
            raise ValueError(f"task must be a Task, such as Reach(), got {task!r}")
        if not 0 < max_tilt < pi / 2:
            raise ValueError(f"max_tilt must be between 0 and pi / 2, got {max_tilt}")
        if not 0 < thrust_range <= 1:
            raise ValueError(f"thrust_range must be from 0 to 1, got {thrust_range}")
        self._ticks = ticks_per_period(freq, action_freq, "action_freq")
        self.num_envs, self.task, self.render_mode = num_envs, task, render_mode
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": action_freq,
            "autoreset_mode": AutoresetMode.NEXT_STEP,
        }
        self.single_action_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (13,), np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

        self.sim = Sim(
            num_envs,
            drone=drone,
            dynamics=dynamics,
            control="attitude",
            freq=freq,
            attitude_freq=freq,
            force_torque_freq=freq,
        )
        data = self.sim.data
        self.sim.data = data.replace(plugins={_GOAL: jnp.zeros((num_envs, 1, 3))})
        self.sim.build_default_data()
        self.sim.reset_pipeline = (self._begin,)
        hover = float(data.params.hover_thrust[0])
        self._scale = np.array([max_tilt, max_tilt, pi, thrust_range * hover], np.float32)
        self._offset = np.array([0, 0, 0, hover], np.float32)
        self._built: _Built | None = None
        self._observed = jax.jit(lambda data: self._observation(_Motion.of(data)))
        self._ended: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset all worlds.

        Args:
            seed: Seed of the random numbers, which make episodes reproducible. None continues them.
            options: Not used.

        Returns:
            Observations (num_envs, 13), and an empty dictionary.
        """
        del options
        first = self._np_random is None
        super().reset(seed=seed)
        if seed is not None or first:
            self.sim.seed(int(self.np_random.integers(2**31)))
        self.sim.reset()
        self._ended = np.zeros(self.num_envs, bool)
        return np.array(self._observed(self.sim.data)), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply actions until the next ones are due.

        Args:
            actions: (num_envs, 4), clipped to -1 to 1.

        Returns:
            Observations (num_envs, 13), rewards, terminations, truncations (num_envs,), and
            `is_success` with its mask.

        Raises:
            ValueError: Wrong shape, NaN or infinity.
            ResetNeeded: `reset` has not been called yet.
        """
        if self._ended is None:
            raise ResetNeeded("call reset() before the first step()")
        actions = np.asarray(actions, np.float32)
        if actions.shape != self.action_space.shape:
            raise ValueError(
                f"actions must have shape {self.action_space.shape}, got {actions.shape}"
            )
        if not np.isfinite(actions).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(actions))[0])
            raise ValueError(f"actions hold {actions[where]} at index {where}")
        ended = self._ended
        results = self.sim.run(
            self._step_of_present_pipelines(), self.sim.default_data, actions, ended
        )
        obs, reward, terminated, truncated, success = map(np.asarray, results)
        self._ended = terminated | truncated
        return obs, reward, terminated, truncated, {"is_success": success, "_is_success": ~ended}

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return an image of each world, (480, 640, 3) uint8."""
        if self.render_mode is None:
            return None
        pictures = (self.sim.render("rgb_array", world=i) for i in range(self.num_envs))
        return tuple(np.asarray(picture) for picture in pictures)

    def close_extras(self, **_: Any) -> None:
        """Free the renderers."""
        self.sim.close()

    def _begin(self, data: SimData, _: SimData, mask: Array | None) -> SimData:
        """Reset stage: place drones and goals."""
        key, subkey = jax.random.split(data.core.rng_key)
        pos, goal = (x[:, None] for x in self.task.begin(subkey, self.num_envs))
        if mask is not None:
            worlds = mask[:, None, None]
            pos = jnp.where(worlds, pos, data.states.pos)
            goal = jnp.where(worlds, goal, data.plugins[_GOAL])
        return data.replace(
            states=data.states.replace(pos=pos),
            plugins=data.plugins | {_GOAL: goal},
            core=data.core.replace(rng_key=key),
        )

    def _flight(self, motion: _Motion) -> tuple[Flight, Array]:
        """Return the flight for the task, and the velocities of the goals."""
        goal, vel = self.task.goal(motion.origin, motion.steps / self.sim.freq)
        return Flight(motion.pos, motion.vel, goal - motion.pos), vel

    def _observation(self, motion: _Motion) -> Array:
        flight, vel = self._flight(motion)
        errors = (flight.error, vel - flight.vel)
        return jnp.concatenate([*errors, motion.quat, motion.ang_vel], axis=-1)

    def _step_of_present_pipelines(self) -> Composed:
        """Return `_advance`, built again if a pipeline of the simulation has changed."""
        pipelines = (self.sim.step_pipeline, self.sim.reset_pipeline)
        built = self._built
        if built is None or any(now is not then for now, then in zip(pipelines, built.pipelines)):
            # A reset of no world gives parameters the shape that stages of the reset give them.
            self.sim.reset(np.zeros(self.num_envs, bool))
            fly, reset = self.sim.build_step_fn(False), self.sim.build_reset_fn(False)
            step = Composed(partial(self._advance, fly, reset))
            built = self._built = _Built(pipelines, step)
        return built.step

    def _advance(
        self,
        fly: StepFn,
        reset: ResetFn,
        data: SimData,
        default: SimData,
        actions: Array,
        ended: Array,
    ) -> tuple[SimData, tuple[Array, ...]]:
        before = _Motion.of(data)
        command = jnp.clip(actions, -1, 1) * self._scale + self._offset
        flown = fly(attitude_control(data, command[:, None]), self._ticks)
        after = _if(ended.any(), lambda data: reset(data, default, ended), flown)
        motions = (before, _Motion.of(flown), _Motion.of(after))
        return after, each_world(self._results, motions, ended)

    def _results(
        self, motions: tuple[_Motion, _Motion, _Motion], ended: Array
    ) -> tuple[Array, ...]:
        """Return the results of a step.

        Args:
            motions: Before the step, after it, and after the reset of worlds that had ended.
            ended: (num_envs,) bool, these worlds.
        """
        before, flown, after = motions
        verdict = Verdict(*self.task.judge(self._flight(before)[0], self._flight(flown)[0]))
        late = flown.steps[:, 0] >= round(self.task.seconds * self.sim.freq)
        return (
            self._observation(after),
            jnp.where(ended, 0.0, verdict.reward),
            verdict.terminated & ~ended,
            late & ~ended,
            verdict.success & ~ended,
        )


def _if(needed: Array, stage: Stage, data: SimData) -> SimData:
    """Return the data after a stage, or where it is not needed, before it.

    In most steps of few worlds, none has ended.
    """
    before, treedef = jax.tree.flatten(data)
    changed = [i for i, flag in enumerate(changed_leaves(traced(stage, data))) if flag]

    def after() -> list[Array]:
        leaves = jax.tree.leaves(stage(data))
        return [leaves[i] for i in changed]

    values = jax.lax.cond(needed, after, lambda: [before[i] for i in changed])
    new: SimData = jax.tree.unflatten(treedef, replaced(before, changed, values))
    return new
