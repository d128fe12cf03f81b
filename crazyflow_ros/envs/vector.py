"""The vector environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jax import Array

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.envs.environment_options import Autoreset
from crazyflow_ros.envs.episodes import (
    FINAL,
    OBSERVATION,
    OVER,
    REWARD,
    SUCCESS,
    TERMINATED,
    TERMS,
    TRUNCATED,
)
from crazyflow_ros.envs.task import Task
from crazyflow_ros.policy.action import SIZE
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.arguments import mask_of
from crazyflow_ros.sim.compile.stepping import count

RENDER_MODES = ["human", "rgb_array"]
_MASK = "reset_mask"
"""The option of Gymnasium's `VectorEnv.reset`."""
_MODES = {
    Autoreset.next_step: AutoresetMode.NEXT_STEP,
    Autoreset.same_step: AutoresetMode.SAME_STEP,
    Autoreset.disabled: AutoresetMode.DISABLED,
}


Observations = Any
"""An array of numbers; with an eye a dictionary of it, "motion", and of pictures by their kind."""


def observation_space(environment: Environment, lead: tuple[int, ...]) -> gymnasium.Space[Any]:
    """Return the space of observations, whose arrays have the leading axes `lead`."""
    seen, eye = environment.observation, environment.observation.eye
    motion = gymnasium.spaces.Box(-np.inf, np.inf, (*lead, seen.numbers), np.float32)
    if eye is None:
        return motion
    most, kind = (eye.far, np.float32) if eye.kind == "depth" else (255, np.uint8)
    picture = gymnasium.spaces.Box(0, most, (*lead, *eye.shape), kind)
    return gymnasium.spaces.Dict({"motion": motion, eye.kind: picture})


class QuadrotorVectorEnv(VectorEnv[Observations, np.ndarray, np.ndarray]):
    """An `Environment` with Gymnasium's interface, whose worlds one compiled function steps.

    With an eye, observations are a dictionary: "motion", and "depth" [m] or "rgb". With several
    drones per world, actions and observations have an axis of drones, and the reward is the mean
    over the drones. `info["is_success"]` tells which worlds have completed their task, and
    `info["terms"]` what each term of the task gave.

    Attributes:
        environment: The environment.
        rewards_of_drones: Rewards of the last step, (num_envs, n_drones).
        over: Which drones have ended, see `Timestep`; None before a step, and if they end together.
    """

    def __init__(
        self, num_envs: int, task: Task, render_mode: str | None = None, **options: Any
    ) -> None:
        """Build the worlds.

        Args:
            num_envs: Number of worlds.
            task: Task of the drones.
            render_mode: `rgb_array`; `human`, which shows the first world in a window after each
                reset and step; or None.
            **options: See `Configuration`.

        Raises:
            ValueError: An argument is out of range; the message names it.
            TypeError: There is no such option.
        """
        if render_mode not in (None, *RENDER_MODES):
            raise ValueError(f"render_mode must be None or of {RENDER_MODES}, got {render_mode!r}")
        self.environment = Environment(num_envs, task, **options)
        self.num_envs, self.render_mode = num_envs, render_mode
        config = self.environment.config
        self.metadata = {
            "render_modes": RENDER_MODES,
            "render_fps": config.action_freq,
            "autoreset_mode": _MODES[Autoreset(config.autoreset)],
        }
        self._drones = () if config.n_drones == 1 else (config.n_drones,)
        self.single_action_space = gymnasium.spaces.Box(-1, 1, (*self._drones, SIZE), np.float32)
        self.single_observation_space = observation_space(self.environment, self._drones)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._ended: np.ndarray | None = None
        self._eye = config.eye
        self.over: np.ndarray | None = None
        self.rewards_of_drones = np.zeros((num_envs, config.n_drones), np.float32)

    @property
    def sim(self) -> Sim:
        """The simulation. Stages added to its pipelines act from the next step or reset on."""
        return self.environment.sim

    @property
    def task(self) -> Task:
        """The task."""
        return self.environment.task

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin an episode in all worlds, or in some.

        Args:
            seed: Seed of the random numbers, for reproducible episodes; None continues the current
                ones.
            options: `{"reset_mask": mask}`, (num_envs,) bool, resets only the worlds of the mask.
                Their episodes are the same as after a reset of all worlds.

        Returns:
            Observations of all worlds, and an empty dictionary.

        Raises:
            ValueError: There is no such option, or the mask has another shape or dtype, or holds no
                world.
            ResetNeeded: There is a mask, but not all worlds have begun an episode.
        """
        mask = self._mask(options or {})
        super().reset(seed=seed)
        key = jax.random.key(int(self.np_random.integers(2**31)))
        if self._ended is None or mask is None:
            self.sim.data = self.environment.compiled.reset(key)
            seen = self.sim.data.plugins[OBSERVATION]
            self._ended = np.zeros(self.num_envs, bool)
        else:
            seen = self.sim.run(self.environment.compiled.restarting, mask, key)
            self._ended = self._ended & ~mask
        self._show()
        return self._with_pictures(np.array(seen), self.environment.eyes), {}

    def _show(self) -> None:
        if self.render_mode == "human":
            self.sim.render("human")

    def _mask(self, options: dict[str, Any]) -> np.ndarray | None:
        """Return which worlds `reset` concerns, (num_envs,) bool; None for all."""
        for name in options:
            if name != _MASK:
                raise ValueError(unknown("option of a reset", name, [_MASK]))
        if _MASK not in options:
            return None
        mask = mask_of(options[_MASK], self.num_envs, _MASK)
        if not mask.any():
            raise ValueError(f"{_MASK} must hold True for at least one world")
        if self._ended is None:
            raise ResetNeeded(f"call reset() without {_MASK} first, for all worlds")
        return mask

    def step(
        self, actions: np.ndarray
    ) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply actions until the next ones are due.

        Args:
            actions: In `action_space`; clipped to -1 to 1.

        Returns:
            Observations, rewards, terminations, truncations, and `is_success` with its mask. They
            are read-only views of the results of the compiled function.

        Raises:
            ValueError: Wrong shape, NaN or infinity.
            ResetNeeded: `reset` has not been called yet.
        """
        if self._ended is None:
            raise ResetNeeded("call reset() before the first step()")
        given = self._checked(actions).reshape(self.num_envs, -1, SIZE)
        environment = self.environment
        program, ticks = environment.compiled.program, count(environment.config.ticks)
        found = dict(zip(environment.compiled.outputs, self.sim.run(program, given, ticks)))
        reward, flags = found[REWARD], (TERMINATED, TRUNCATED, SUCCESS)
        terminated, truncated, success = (found[name][0, :, 0] for name in flags)
        flies = ~self._ended
        info: dict[str, Any] = {"is_success": success, "_is_success": flies}
        if TERMS in found:
            info["_terms"], info["terms"] = (
                flies,
                {
                    name: x.mean(axis=-1) if self._drones else x[:, 0]
                    for name, x in zip(environment.episodes.names, found[TERMS])
                },
            )
        ended = terminated | truncated
        match environment.config.autoreset:
            case Autoreset.next_step:
                self._ended = ended
            case Autoreset.same_step if ended.any():
                final, last = np.full(self.num_envs, None, object), self._motion(found[FINAL])
                eyes = environment.eyes
                take = None if eyes is None else eyes.final
                before = self._with_pictures(last, take)
                for i in np.flatnonzero(ended):
                    final[i] = of_world(before, int(i))
                final_info = {"is_success": success & ended, "_is_success": ended}
                info |= {"final_obs": final, "_final_obs": ended}
                info |= {"final_info": final_info, "_final_info": ended}
        self.rewards_of_drones = reward[0]
        self.over = found[OVER][0] if OVER in found else None
        rewards = reward[0].mean(axis=-1) if self._drones else reward[0, :, 0]
        seen = self._with_pictures(self._motion(found[OBSERVATION]), environment.eyes)
        self._show()
        return seen, rewards, terminated, truncated, info

    def _motion(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (size, worlds, drones) as observations without pictures."""
        return rows.transpose(1, 2, 0).reshape(self.num_envs, *self._drones, -1)

    def _with_pictures(
        self, motion: np.ndarray, take: Callable[[SimData], Array] | None
    ) -> Observations:
        """Return observations of all worlds, with the pictures that `take` gives, if any."""
        motion, eye = motion.reshape(self.num_envs, *self._drones, -1), self._eye
        if take is None or eye is None:
            return motion
        picture = np.asarray(take(self.sim.data))
        return {"motion": motion, eye.kind: picture.reshape(*motion.shape[:-1], *eye.shape)}

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """Return actions as an array of the right shape.

        Raises:
            ValueError: They have another shape, or one is not finite.
        """
        actions = np.asarray(actions, np.float32)
        if actions.shape != self.action_space.shape:
            raise ValueError(
                f"actions must have shape {self.action_space.shape}, got {actions.shape}"
            )
        numbers = actions.ravel()
        if not np.isfinite(np.vdot(numbers, numbers)) and not np.isfinite(actions).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(actions))[0])
            raise ValueError(f"actions hold {actions[where]} at index {where}")
        return actions

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return an image of each world, (480, 640, 3) uint8, or None in other modes."""
        if self.render_mode != "rgb_array":
            return None
        pictures = (self.sim.render("rgb_array", world=i) for i in range(self.num_envs))
        return tuple(np.asarray(picture) for picture in pictures)

    def close_extras(self, **_: Any) -> None:
        """Free the renderers."""
        self.sim.close()


def of_world(seen: Observations, i: int) -> Observations:
    """Return the observation of a world."""
    return {name: x[i] for name, x in seen.items()} if isinstance(seen, dict) else seen[i]
