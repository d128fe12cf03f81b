"""Tasks that consist of named terms, in the form of mjlab and Isaac Lab, and common terms.

A term is a function of a `Flight`, which has the drones before the step as its field `before`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import reduce
from math import isfinite
from operator import add, or_
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs.task import Flight, Verdict
from crazyflow_ros.sim.randomize import ResetStage

Func = Callable[[Flight], Array]
"""Maps N drones to (N,), or in observations to (N, k)."""


@dataclass(frozen=True)
class RewardTerm:
    """A part of the reward: `weight` times `func`, for each step."""

    func: Func
    weight: float = 1.0


@dataclass(frozen=True)
class TerminationTerm:
    """A reason for which an episode ends: a failure, unless it is a success or a time-out."""

    func: Func
    """(N,) bool."""
    success: bool = False
    """Whether the drone has then completed its task."""
    time_out: bool = False
    """Whether the episode is then truncated: the state would have a value."""

    def __post_init__(self) -> None:
        if self.success and self.time_out:
            raise ValueError("a TerminationTerm is a success or a time_out, not both")


@dataclass(frozen=True)
class ObservationTerm:
    """Numbers that an environment tells its drones, after the parts of the observation."""

    func: Func
    """(N, k)."""
    scale: float = 1.0
    """Factor of the numbers."""
    noise: float = 0.0
    """Standard deviation of the Gaussian noise of the scaled numbers."""
    delay: int = 0
    """Steps by which the numbers are late; until then they are the first ones of the episode."""
    history: int = 1
    """Number of steps whose numbers are stacked, the newest first."""

    def __post_init__(self) -> None:
        if not (isfinite(self.noise) and self.noise >= 0 and isfinite(self.scale)):
            raise ValueError(f"noise must be at least 0, and scale finite, got {self}")
        if not (0 <= self.delay <= _LONGEST and 1 <= self.history <= _LONGEST):
            raise ValueError(f"delay and history must be from 0 and 1 to {_LONGEST}, got {self}")

    @property
    def kept(self) -> int:
        """Earlier values that have to be kept."""
        return self.delay + self.history - 1


_LONGEST = 1000  # steps


@dataclass(frozen=True)
class EventTerm:
    """Something that happens to the drones of a world at random times."""

    stage: ResetStage
    """As in `Sim.reset_pipeline`, such as `randomize_vel(0.5)` for a push, `gust` or `lose_rotor`.
    What it changes stays so until the next event or the end of the episode."""
    seconds: tuple[float, float] | None = None
    """Shortest and longest time until it happens, and between two events, s; each is drawn anew.
    None: at the beginning of each episode."""

    def __post_init__(self) -> None:
        low, high = self.seconds or (1.0, 1.0)
        if not 0 < low <= high < _LATEST:
            raise ValueError(f"seconds of an event must rise from above 0, got {self.seconds}")


_LATEST = 1e5  # s


@dataclass(frozen=True)
class CurriculumTerm:
    """A number of each world that rises or falls with the results of its episodes."""

    func: Callable[[Array, Array], Array]
    """Maps the levels (n,), and the share of each world's drones that were successful (n,), to the
    levels of the following episodes."""
    first: float = 0.0
    """Level of the first episode."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """All that a task consists of besides beginnings and goals, by name."""

    rewards: Mapping[str, RewardTerm]
    terminations: Mapping[str, TerminationTerm] = field(default_factory=dict)
    success: Func | None = None
    """(N,) bool: the drone does its task now. None: a termination says so."""
    observations: Mapping[str, ObservationTerm] = field(default_factory=dict)
    """What policies are told besides the option `observation`."""
    privileged: Mapping[str, ObservationTerm] = field(default_factory=dict)
    """What only critics are told."""
    events: Mapping[str, EventTerm] = field(default_factory=dict)
    curricula: Mapping[str, CurriculumTerm] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rewards:
            raise ValueError("a task needs at least one reward")
        if twice := set(self.rewards) & set(self.terminations):
            raise ValueError(f"rewards and terminations share the names {sorted(twice)}")

    def leveled(self, levels: Array | None) -> tuple[dict[str, Array], ...]:
        """Return the last arguments of `Task.begin`, from the levels of a world, (k,)."""
        if not self.curricula or levels is None:
            return ()
        return ({name: levels[i] for i, name in enumerate(self.curricula)},)

    def judge(self, now: Flight) -> Verdict:
        """Return the verdict on a step."""
        rewards = {name: term.weight * term.func(now) for name, term in self.rewards.items()}
        ends = {name: term.func(now) for name, term in self.terminations.items()}
        no = jnp.zeros(now.pos.shape[:1], bool)

        def any_of(kind: str) -> Array:
            chosen = [x for name, x in ends.items() if getattr(self.terminations[name], kind)]
            return reduce(or_, chosen, no)

        won, late = any_of("success"), any_of("time_out")
        terms = self.terminations.items()
        failures = [ends[name] for name, term in terms if not (term.success or term.time_out)]
        terminated = reduce(or_, failures, no) | won
        success = won if self.success is None else self.success(now)
        return Verdict(reduce(add, rewards.values()), terminated, success, late, rewards | ends)


@dataclass(frozen=True)
class TermTask:
    """Base of tasks that consist of terms: checks their fields; a goal stays at the origin.

    Attributes:
        may_be_zero: Names of the fields that must be at least 0. Other single numbers must be above
            0, and the numbers of tuples finite.

    Raises:
        ValueError: A number is out of range; the message names the field.
    """

    may_be_zero: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for item in fields(self):
            value, rule = getattr(self, item.name), ""
            if not any(kind in str(item.type) for kind in ("float", "int")):
                continue
            is_good = all(map(isfinite, np.ravel(value)))
            if item.name in self.may_be_zero:
                is_good, rule = is_good and np.min(value) >= 0, " and at least 0"
            elif np.ndim(value) == 0:
                is_good, rule = is_good and value > 0, " and above 0"
            if not is_good:
                kind = f"{type(self).__name__}: {item.name}"
                raise ValueError(f"{kind} must be finite{rule}, got {value}")

    @property
    def terms(self) -> Terms:
        """The terms."""
        raise NotImplementedError(f"{type(self).__name__} has no terms")

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """See `Task`."""
        del time
        return origin, jnp.zeros_like(origin)

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """See `Task`."""
        return self.terms.judge(after._replace(previous=before))


def length(vector: Array) -> Array:
    """Return the length of vectors, (..., 3), whose gradient is 0 where the length is."""
    square = (vector * vector).sum(axis=-1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def tilt(now: Flight) -> Array:
    """Return 1 minus the cosine of the angle between z axes and the vertical, (N,)."""
    return 2 * (now.quat[:, :2] ** 2).sum(axis=-1)


def spin(now: Flight) -> Array:
    """Return squared body rates, (N,) rad^2/s^2."""
    return (now.ang_vel**2).sum(axis=-1)


def effort(now: Flight) -> Array:
    """Return squared actions, (N,)."""
    return (now.action**2).sum(axis=-1)


def action_rate(now: Flight) -> Array:
    """Return squared differences between actions and those before, (N,)."""
    return ((now.action - now.last_action) ** 2).sum(axis=-1)


def on_floor(now: Flight) -> Array:
    """Return which drones touch the floor, (N,) bool."""
    return now.pos[:, 2] <= 0


def neighbours(now: Flight) -> Array:
    """Return relative positions [m] and velocities [m/s] of the other drones, (N, 6 (M - 1))."""
    place, motion = (now.others(x) - x[:, None] for x in (now.pos, now.vel))
    return jnp.concatenate([place, motion], axis=-1).reshape(len(now.pos), -1)


def nearest(now: Flight) -> Array:
    """Return the distance from the nearest other drone of the world, (N,) m; 1e6 if it is alone."""
    apart = now.others(now.pos) - now.pos[:, None]
    return jnp.sqrt((apart**2).sum(axis=-1).min(axis=1, initial=1e12))
