"""Tasks of drones, world frame, SI units."""

from __future__ import annotations

from dataclasses import dataclass
from math import tau

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs.task import Flight, Start
from crazyflow_ros.envs.terms import (
    Func,
    RewardTerm,
    TerminationTerm,
    Terms,
    TermTask,
    length,
    on_floor,
)
from crazyflow_ros.scene.frames import grid_2d


def within(key: Array, n: int, centre: tuple[float, ...], spread: tuple[float, ...]) -> Array:
    """Return (n, 3) random points in a box."""
    return jnp.array(centre) + jax.random.uniform(key, (n, 3), minval=-1) * jnp.array(spread)


def side_by_side(points: Array) -> Array:
    """Return (n, 3) points, each shifted to its place on a grid of 1 m."""
    return points + jnp.asarray(np.pad(grid_2d(len(points)), ((0, 0), (0, 1))), points.dtype)


def lost_beyond(limit: float) -> Func:
    """Return a term: the drone is on the floor, or farther from its goal than the limit [m]."""
    return lambda now: (length(now.error) > limit) | on_floor(now)


def gained(now: Flight) -> Array:
    """Return by how much the distance from the goal has become shorter in the step, (N,) m."""
    return length(now.before.error) - length(now.error)


def progress_terms(name: str, done: Func, failed: Func, progress: Func = gained) -> Terms:
    """Return the terms of a task that rewards progress, its end with 1, and a failure with -1."""
    return Terms(
        rewards={
            "progress": RewardTerm(progress),
            "arrival": RewardTerm(done),
            "failure": RewardTerm(failed, -1.0),
        },
        terminations={name: TerminationTerm(done, success=True), "failed": TerminationTerm(failed)},
    )


@dataclass(frozen=True)
class Hover(TermTask):
    """Stay at a point. The reward is 1 there, and falls to 1/e half a metre away.

    Attributes:
        seconds: Length of an episode.
        point: The point, m.
        spread: Half the sides of the box around it in which drones start, m.
        tolerance: Distance within which the drone counts as there, m.
        limit: Distance beyond which the drone is lost, which costs 1, m.
    """

    seconds: float = 5.0
    point: tuple[float, float, float] = (0.0, 0.0, 1.0)
    spread: tuple[float, float, float] = (0.3, 0.3, 0.3)
    tolerance: float = 0.1
    limit: float = 2.0

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        point = jnp.tile(jnp.array(self.point), (n, 1))
        return side_by_side(within(key, n, self.point, self.spread)), side_by_side(point)

    @property
    def terms(self) -> Terms:
        """A drone succeeds while it is there."""
        lost = lost_beyond(self.limit)
        near = RewardTerm(lambda now: jnp.exp(-2 * length(now.error)))
        return Terms(
            rewards={"near": near, "loss": RewardTerm(lost, -1.0)},
            terminations={"lost": TerminationTerm(lost)},
            success=lambda now: length(now.error) < self.tolerance,
        )


@dataclass(frozen=True)
class Velocity(TermTask):
    """Fly at a velocity. The reward is 1 there, and falls to 1/e at a difference of 1 m/s.

    Attributes:
        seconds: Length of an episode.
        centre: Centre of the box in which drones start, m.
        spread: Half its sides, m.
        speed: Largest goal velocity along each axis, m/s.
        tolerance: Difference at which the velocity counts as reached, m/s.
    """

    seconds: float = 5.0
    centre: tuple[float, float, float] = (0.0, 0.0, 6.0)
    spread: tuple[float, float, float] = (1.0, 1.0, 0.5)
    speed: tuple[float, float, float] = (1.0, 1.0, 1.0)
    tolerance: float = 0.2

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        keys = jax.random.split(key)
        pos = side_by_side(within(keys[0], n, self.centre, self.spread))
        vel = within(keys[1], n, (0.0, 0.0, 0.0), self.speed)
        return pos, jnp.concatenate([pos, vel], axis=-1)

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """The position of the goal moves at its velocity."""
        pos, vel = origin[:, :3], origin[:, 3:]
        return pos + vel * time, vel

    @property
    def terms(self) -> Terms:
        """A drone succeeds while it has the velocity; the floor costs 1."""
        near = RewardTerm(lambda now: jnp.exp(-length(now.vel_error)))
        return Terms(
            rewards={"near": near, "crash": RewardTerm(on_floor, -1.0)},
            terminations={"crashed": TerminationTerm(on_floor)},
            success=lambda now: length(now.vel_error) < self.tolerance,
        )


@dataclass(frozen=True)
class Reach(TermTask):
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

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        keys = jax.random.split(key)
        pos, goal = (within(k, n, self.centre, self.spread) for k in keys)
        return side_by_side(pos), side_by_side(goal)

    @property
    def terms(self) -> Terms:
        def reached(now: Flight) -> Array:
            return (length(now.error) < self.tolerance) & (length(now.vel) < self.speed)

        return progress_terms("reached", reached, lost_beyond(self.limit))


@dataclass(frozen=True)
class FigureEight(TermTask):
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

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        centre = jnp.tile(jnp.array(self.centre), (n, 1))
        pos = within(key, n, self.centre, self.spread)
        return side_by_side(pos), side_by_side(centre)

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        rate = tau / self.period
        phase, (a, b), zero = rate * time, self.size, jnp.zeros_like(time)
        offset = jnp.concatenate([a * jnp.sin(phase), b * jnp.sin(2 * phase), zero], axis=-1)
        vel = jnp.concatenate([a * jnp.cos(phase), 2 * b * jnp.cos(2 * phase), zero], axis=-1)
        return origin + offset, rate * vel

    @property
    def terms(self) -> Terms:
        """A drone succeeds as long as it is not lost."""
        lost = lost_beyond(self.limit)
        near = RewardTerm(lambda now: jnp.exp(-5 * length(now.error)))
        return Terms(
            rewards={"near": near, "loss": RewardTerm(lost, -1.0)},
            terminations={"lost": TerminationTerm(lost)},
            success=lambda now: ~lost(now),
        )


@dataclass(frozen=True)
class Landing(TermTask):
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

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        pos = within(key, n, (0.0, 0.0, self.height), self.spread)
        return side_by_side(pos), side_by_side(jnp.zeros((n, 3)))

    @property
    def terms(self) -> Terms:
        def landed(now: Flight) -> Array:
            # On the floor, the drone has already stopped.
            speed = jnp.maximum(length(now.before.vel), length(now.vel))
            near = length(now.error[:, :2]) < self.pad
            return on_floor(now) & near & (speed < self.speed)

        def failed(now: Flight) -> Array:
            return (on_floor(now) & ~landed(now)) | (length(now.error) > self.limit)

        return progress_terms("landed", landed, failed)
