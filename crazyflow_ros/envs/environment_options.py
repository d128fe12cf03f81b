"""The options of an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite

import numpy as np

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.control import PowerDistribution
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.drones import DEFAULT_DRONE, AnyDrone
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.envs.eyes import EyeErrors
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.eye import Eye
from crazyflow_ros.policy.observation import DEFAULT_PARTS, PARTS, Observation
from crazyflow_ros.sim.arguments import whole
from crazyflow_ros.sim.randomization import RandomDelay
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.stages import Stage


class Autoreset(StrEnum):
    """When a world begins the next episode after one has ended."""

    next_step = "next_step"
    """In the next step, which ignores its action and returns the first observation."""
    same_step = "same_step"
    """In the same step, which returns the first observation together with the final one."""
    disabled = "disabled"
    """Never: after the end of an episode, a world flies on until it is reset."""


class Ending(StrEnum):
    """When the episode of a world with several drones ends."""

    together = "together"
    """When one drone has failed, or all have completed the task at the same time."""
    alone = "alone"
    """When all drones have ended, each by itself. One that has ended has no more reward, and its
    action is 0."""


_EXACT = EyeErrors()


@dataclass(frozen=True)
class Configuration:
    """Drones, rates, actions, observations and episodes of an environment.

    Raises:
        ValueError: An option is out of range.
    """

    drone: AnyDrone = DEFAULT_DRONE
    """A `Drone`, or the path of a drone's folder."""
    dynamics: str = "first_principles"
    """A `Dynamics`."""
    n_drones: int = 1
    """Drones in each world."""
    freq: int = 500
    """Physics ticks per second."""
    action_freq: int = 50
    """Actions per second; must divide `freq`. An action is repeated for `freq / action_freq` ticks.
    """
    action: str | Action = "attitude"
    """Meaning of actions: a control mode except `state`, or an `Action`."""
    max_tilt: float = 0.5
    """Roll and pitch for an action of 1 in the mode attitude, rad; below pi / 2."""
    max_rate: float = 10.0
    """Body rate for an action of 1 in the mode body_rate, rad/s."""
    thrust_range: float = 0.6
    """Largest deviation from the hover thrust, as a fraction of it; not for rotor_vel."""
    action_delay: float = 0.0
    """Time until an action takes effect, s; a multiple of the tick. Until the first one does, the
    action is 0. With `randomize_delay` among the `randomizers`, it is drawn instead."""
    observation: Sequence[str] = DEFAULT_PARTS
    """Parts of an observation, names in `PARTS`."""
    history: int = 1
    """Number of steps whose observations are stacked, the newest first; zeros before the first."""
    eye: Eye | None = None
    """Camera of each drone, whose pictures the observations contain; None for no pictures."""
    eye_errors: EyeErrors = _EXACT
    """Errors of the cameras, and of their depths; colors have no noise."""
    observation_noise: float | Mapping[str, float] = field(default=0.0, hash=False)
    """Standard deviation of the Gaussian noise of all numbers of an observation except pictures, or
    by part."""
    stages: tuple[Stage, ...] = ()
    """Stages of a tick, inserted before the integration."""
    forces: tuple[External, ...] | None = None
    """External forces, see `Sim`."""
    power_distribution: str = PowerDistribution.capped
    """A `PowerDistribution`; by default the firmware's."""
    scene: str | None = None
    """Name or path of the MJCF scene in pictures; None for that of the task, or `floor`."""
    randomizers: tuple[ResetStage, ...] = ()
    """Stages that draw differences between episodes, such as `randomize_mass(0.3)`, or what
    `sim.randomizers` returns for a declaration."""
    max_episode_steps: int | None = None
    """Steps after which an episode is truncated; None for the task's `seconds`."""
    autoreset: str = Autoreset.next_step
    """An `Autoreset`."""
    ending: str = Ending.together
    """An `Ending`."""

    def __post_init__(self) -> None:
        whole("n_drones", self.n_drones)
        whole("freq", self.freq)
        _ = self.ticks, self.delay, self.frame_noise, self.actions
        if self.max_episode_steps is not None:
            whole("max_episode_steps", self.max_episode_steps)
        for name in ("stages", "randomizers"):
            stages = getattr(self, name)
            if not isinstance(stages, Sequence) or not all(map(callable, stages)):
                raise ValueError(f"{name} must be a tuple of functions, got {stages!r}")
        member(Autoreset, self.autoreset)
        member(Ending, self.ending)
        if self.eye is not None and self.eye.kind != "depth" and self.eye_errors.noise:
            noise = f"eye_errors.noise={self.eye_errors.noise:g}"
            raise ValueError(f"{noise} is that of depths, but the eye sees {self.eye.kind}")

    @property
    def ticks(self) -> int:
        """Ticks of a step."""
        return ticks_per_period(self.freq, self.action_freq, "action_freq")

    @property
    def draws_delays(self) -> bool:
        """Whether the delays of actions are drawn."""
        return bool(self._drawn_delays)

    @property
    def _drawn_delays(self) -> list[RandomDelay]:
        return [stage for stage in self.randomizers if isinstance(stage, RandomDelay)]

    @property
    def delay(self) -> int:
        """Delay of an action in ticks, the longest one that may be drawn."""
        drawn = self._drawn_delays
        if drawn and self.action_delay:
            raise ValueError("action_delay is drawn by a randomizer, so it cannot be given, too")
        if drawn:
            return max(stage.ticks(self.freq)[1] for stage in drawn)
        ticks = self.action_delay * self.freq
        if not 0 <= ticks <= _LONGEST_DELAY * self.freq or abs(ticks - round(ticks)) > 1e-6:
            raise ValueError(
                f"action_delay must be a multiple of 1/{self.freq} s, from 0 to "
                f"{_LONGEST_DELAY} s, got {self.action_delay}"
            )
        return round(ticks)

    @property
    def actions(self) -> Action:
        """The meaning of actions."""
        if isinstance(self.action, Action):
            return self.action
        return Action.of(
            self.drone,
            self.action,
            dynamics=self.dynamics,
            max_tilt=self.max_tilt,
            max_rate=self.max_rate,
            thrust_range=self.thrust_range,
        )

    @property
    def observations(self) -> Observation:
        """The composition of observations."""
        return Observation.of(
            self.drone, self.observation, whole("history", self.history), self.eye
        )

    @property
    def frame_noise(self) -> np.ndarray:
        """Standard deviation of the noise of each number in the newest frame of an observation."""
        noise, parts = self.observation_noise, self.observations.parts
        by_part = noise if isinstance(noise, Mapping) else dict.fromkeys(parts, noise)
        for part, deviation in by_part.items():
            if part not in parts:
                raise ValueError(f"observation_noise has {part!r}, observation has {parts}")
            if not (isfinite(deviation) and deviation >= 0):
                raise ValueError(f"observation_noise must be finite and not negative, got {noise}")
        return np.concatenate([np.full(PARTS[p].size, by_part.get(p, 0.0)) for p in parts])


_LONGEST_DELAY = 10  # s
