"""Tasks of drones. N worlds with one drone each; world frame, SI units."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, tau
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Start(NamedTuple):
    """Beginning of an episode of n drones."""

    pos: Array
    """(n, 3) m."""
    origin: Array
    """(n, k) for `Task.goal`."""
    quat: Array | None = None
    """(n, 4) xyzw; level by default."""
    vel: Array | None = None
    """(n, 3) m/s; at rest by default."""
    ang_vel: Array | None = None
    """(n, 3) body frame, rad/s; at rest by default."""

    @property
    def motion(self) -> dict[str, Array]:
        """The fields of `SimState` that are given."""
        given = self._asdict().items()
        return {name: x for name, x in given if x is not None and name != "origin"}


class Flight(NamedTuple):
    """Motion of the drones."""

    pos: Array
    """(N, 3) m."""
    vel: Array
    """(N, 3) m/s."""
    error: Array
    """(N, 3) from the drone to its goal, m."""


class Verdict(NamedTuple):
    """Result of a step."""

    reward: Array
    """(N,)"""
    terminated: Array
    """(N,) bool: the drone has completed its task, or failed."""
    success: Array
    """(N,) bool: the drone has completed its task."""


@runtime_checkable
class Task(Protocol):
    """A task, as pure functions."""

    @property
    def seconds(self) -> float:
        """Length of an episode [s], after which it is truncated."""
        ...

    def begin(self, key: Array, n: int) -> tuple[Array, Array]:
        """Return initial positions at rest, and the `origin` for `goal`: both (n, 3) m."""
        ...

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """Return the desired position [m] and velocity [m/s], both (N, 3), at a time (N, 1) s."""
        ...

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """Return the result of a step."""
        ...


def _check(task: object, *names: str, lowest: float = -inf) -> None:
    """Check that fields hold finite numbers above `lowest`.

    Raises:
        ValueError: One does not; the message names the field.
    """
    for name in names:
        value = getattr(task, name)
        if not all(isfinite(x) and x > lowest for x in np.ravel(value)):
            above = f" above {lowest:g}" if isfinite(lowest) else ""
            kind = f"{type(task).__name__}: {name}"
            raise ValueError(f"{kind} must be finite{above}, got {value}")


def _within(key: Array, n: int, centre: tuple[float, ...], spread: tuple[float, ...]) -> Array:
    """Return (n, 3) random points in a box."""
    return jnp.array(centre) + jax.random.uniform(key, (n, 3), minval=-1) * jnp.array(spread)


def _length(vector: Array) -> Array:
    return jnp.linalg.norm(vector, axis=-1)


@dataclass(frozen=True)
class Reach:
    """Fly from one point to another and slow down there. Each metre towards the goal is rewarded.

    Attributes:
        seconds: Length of an episode.
        centre: Centre of the box that contains both points, m.
        spread: Half the box's sides, m.
        tolerance: Distance from the goal at which it counts as reached, m.
        speed: Speed below which the drone counts as slow, m/s.
        limit: Distance from the goal at which the drone is lost, m.
    """

    seconds: float = 5.0
    centre: tuple[float, float, float] = (0.0, 0.0, 1.0)
    spread: tuple[float, float, float] = (1.0, 1.0, 0.5)
    tolerance: float = 0.1
    speed: float = 0.3
    limit: float = 4.0

    def __post_init__(self) -> None:
        """Check the fields.

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
    """Follow a point along a horizontal figure eight (lemniscate of Gerono), from near its middle.

    Attributes:
        seconds: Length of an episode.
        centre: Centre of the eight, m.
        size: Half its length along x and half its width along y, m.
        period: Duration of one eight, s.
        spread: Half the sides of the box in which drones start, m.
        limit: Distance from the point at which the drone is lost, m.
    """

    seconds: float = 12.0
    centre: tuple[float, float, float] = (0.0, 0.0, 1.0)
    size: tuple[float, float] = (1.0, 0.5)
    period: float = 6.0
    spread: tuple[float, float, float] = (0.1, 0.1, 0.1)
    limit: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields.

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
    """Touch the floor slowly, on a pad at the origin. Each metre towards the pad is rewarded.

    Attributes:
        seconds: Length of an episode.
        height: Mean initial height, m.
        spread: Half the sides of the box in which drones start, m.
        pad: Radius of the pad, m.
        speed: Maximum touchdown speed, m/s.
        limit: Distance from the pad at which the drone is lost, m.
    """

    seconds: float = 6.0
    height: float = 1.0
    spread: tuple[float, float, float] = (0.5, 0.5, 0.3)
    pad: float = 0.15
    speed: float = 0.5
    limit: float = 4.0

    def __post_init__(self) -> None:
        """Check the fields.

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
        # On the floor, the drone has already stopped.
        speed = jnp.maximum(_length(before.vel), _length(after.vel))
        landed = touched & (_length(after.error[:, :2]) < self.pad) & (speed < self.speed)
        failed = (touched & ~landed) | (distance > self.limit)
        reward = _length(before.error) - distance + landed - 1.0 * failed
        return Verdict(reward, landed | failed, landed)
