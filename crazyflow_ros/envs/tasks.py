"""What drones are asked to do. N worlds with one drone each; world frame, SI units."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, tau
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Flight(NamedTuple):
    """Where drones are."""

    pos: Array
    """(N, 3) m."""
    vel: Array
    """(N, 3) m/s."""
    error: Array
    """(N, 3) from the drone to its goal, m."""


class Verdict(NamedTuple):
    """What a step was worth."""

    reward: Array
    """(N,)"""
    terminated: Array
    """(N,) bool: the drone has done its task, or failed."""
    success: Array
    """(N,) bool: it has done it."""


@runtime_checkable
class Task(Protocol):
    """A task, as pure functions."""

    @property
    def seconds(self) -> float:
        """Length of an episode, after which it is truncated."""
        ...

    def begin(self, key: Array, n: int) -> tuple[Array, Array]:
        """Positions at rest to start from, and what `goal` refers to: both (n, 3) m."""
        ...

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """Position [m] and velocity [m/s] to have, both (N, 3), at a time (N, 1) s."""
        ...

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """The verdict on a step."""
        ...


def _check(task: object, *names: str, lowest: float = -inf) -> None:
    """Refuse fields with numbers that are not finite, or not above `lowest`.

    Raises:
        ValueError: There is one; the message names the field.
    """
    for name in names:
        value = getattr(task, name)
        if not all(isfinite(x) and x > lowest for x in np.ravel(value)):
            above = f" above {lowest:g}" if isfinite(lowest) else ""
            kind = f"{type(task).__name__}: {name}"
            raise ValueError(f"{kind} has to be finite{above}, got {value}")


def _within(key: Array, n: int, centre: tuple[float, ...], spread: tuple[float, ...]) -> Array:
    """(n, 3) points of a box."""
    return jnp.array(centre) + jax.random.uniform(key, (n, 3), minval=-1) * jnp.array(spread)


def _length(vector: Array) -> Array:
    return jnp.linalg.norm(vector, axis=-1)


@dataclass(frozen=True)
class Reach:
    """Fly from one point to another and slow down there. Rewards each metre of the way.

    Attributes:
        seconds: Length of an episode.
        centre: Of the box that holds both points, m.
        spread: Half the box's sides, m.
        tolerance: Distance from the goal that counts as there, m.
        speed: Below which the drone counts as slow, m/s.
        limit: Distance from the goal at which the drone is lost, m.
    """

    seconds: float = 5.0
    centre: tuple[float, float, float] = (0.0, 0.0, 1.0)
    spread: tuple[float, float, float] = (1.0, 1.0, 0.5)
    tolerance: float = 0.1
    speed: float = 0.3
    limit: float = 4.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no task.

        Raises:
            ValueError: A length, speed or time is not positive, or a number is not finite.
        """
        _check(self, "centre", "spread")
        _check(self, "seconds", "tolerance", "speed", "limit", lowest=0)

    def begin(self, key: Array, n: int) -> tuple[Array, Array]:
        """See `Task`."""
        start, goal = jax.random.split(key)
        return _within(start, n, self.centre, self.spread), _within(
            goal, n, self.centre, self.spread
        )

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """See `Task`."""
        del time
        return origin, jnp.zeros_like(origin)

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """See `Task`."""
        distance = _length(after.error)
        reached = (distance < self.tolerance) & (_length(after.vel) < self.speed)
        lost = (distance > self.limit) | (after.pos[:, 2] <= 0)
        reward = _length(before.error) - distance + reached - 1.0 * lost
        return Verdict(reward, reached | lost, reached)


@dataclass(frozen=True)
class FigureEight:
    """Follow a point along a lying eight (lemniscate of Gerono), from a place near its middle.

    Attributes:
        seconds: Length of an episode.
        centre: Of the eight, m.
        size: Half its length along x and half its width along y, m.
        period: Of one eight, s.
        spread: Half the sides of the box that drones start in, m.
        limit: Distance from the point at which the drone is lost, m.
    """

    seconds: float = 12.0
    centre: tuple[float, float, float] = (0.0, 0.0, 1.0)
    size: tuple[float, float] = (1.0, 0.5)
    period: float = 6.0
    spread: tuple[float, float, float] = (0.1, 0.1, 0.1)
    limit: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no task.

        Raises:
            ValueError: A length or time is not positive, or a number is not finite.
        """
        _check(self, "centre", "size", "spread")
        _check(self, "seconds", "period", "limit", lowest=0)

    def begin(self, key: Array, n: int) -> tuple[Array, Array]:
        """See `Task`."""
        return _within(key, n, self.centre, self.spread), jnp.tile(jnp.array(self.centre), (n, 1))

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """See `Task`."""
        rate = tau / self.period
        phase, (a, b), zero = rate * time, self.size, jnp.zeros_like(time)
        offset = jnp.concatenate([a * jnp.sin(phase), b * jnp.sin(2 * phase), zero], axis=-1)
        vel = jnp.concatenate([a * jnp.cos(phase), 2 * b * jnp.cos(2 * phase), zero], axis=-1)
        return origin + offset, rate * vel

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """See `Task`. A drone succeeds as long as it is not lost."""
        del before
        distance = _length(after.error)
        lost = (distance > self.limit) | (after.pos[:, 2] <= 0)
        return Verdict(jnp.exp(-5 * distance) - 1.0 * lost, lost, ~lost)


@dataclass(frozen=True)
class Landing:
    """Touch the floor slowly, on a pad at the origin. Rewards each metre of the way.

    Attributes:
        seconds: Length of an episode.
        height: Mean height to start from, m.
        spread: Half the sides of the box that drones start in, m.
        pad: Radius of the pad, m.
        speed: Fastest touchdown, m/s.
        limit: Distance from the pad at which the drone is lost, m.
    """

    seconds: float = 6.0
    height: float = 1.0
    spread: tuple[float, float, float] = (0.5, 0.5, 0.3)
    pad: float = 0.15
    speed: float = 0.5
    limit: float = 4.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no task.

        Raises:
            ValueError: A length, speed or time is not positive, or a number is not finite.
        """
        _check(self, "spread")
        _check(self, "seconds", "height", "pad", "speed", "limit", lowest=0)

    def begin(self, key: Array, n: int) -> tuple[Array, Array]:
        """See `Task`."""
        return _within(key, n, (0.0, 0.0, self.height), self.spread), jnp.zeros((n, 3))

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """See `Task`."""
        del time
        return origin, jnp.zeros_like(origin)

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """See `Task`."""
        distance, touched = _length(after.error), after.pos[:, 2] <= 0
        # On the floor the drone has stopped already.
        speed = jnp.maximum(_length(before.vel), _length(after.vel))
        landed = touched & (_length(after.error[:, :2]) < self.pad) & (speed < self.speed)
        failed = (touched & ~landed) | (distance > self.limit)
        reward = _length(before.error) - distance + landed - 1.0 * failed
        return Verdict(reward, landed | failed, landed)
