"""Tasks of drones, world frame, SI units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite, tau
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.raytracing import Frames
from crazyflow_ros.scene.frames import grid_2d


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
    rotor_vel: Array | None = None
    """(n, 4) RPM; at rest by default."""
    load_vel: Array | None = None
    """(3,) velocity of the load, which hangs below the drones, m/s; by default that of the drones.
    """

    @property
    def motion(self) -> dict[str, Array]:
        """The fields of `SimState` that are given."""
        given, others = self._asdict().items(), ("origin", "load_vel")
        return {name: x for name, x in given if x is not None and name not in others}


class Flight(NamedTuple):
    """Motion of N drones."""

    pos: Array
    """(N, 3) m."""
    vel: Array
    """(N, 3) m/s."""
    error: Array
    """(N, 3) vector from the drone to its goal, m."""
    vel_error: Array
    """(N, 3) velocity of the goal relative to the drone, m/s."""
    origin: Array
    """(N, k) as in `Start`, after the changes of `CourseTask.advance`."""
    load: Array | None = None
    """(N, 3) position of the load that the drones of a world carry, m; None without one."""
    load_vel: Array | None = None
    """(N, 3) its velocity, m/s."""


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

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        """Return a `Start`, or its first two fields, for the n drones of a world."""
        ...

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """Return position [m] and velocity [m/s] of the goals, (N, 3), at a time (N, 1) s.

        Args:
            origin: (N, k) as in `Start`.
            time: (N, 1) since the beginning of the episode, s.
        """
        ...

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """Return the result of a step."""
        ...


@runtime_checkable
class CourseTask(Task, Protocol):
    """A task with a sequence of goals."""

    def advance(self, before: Flight, after: Flight) -> Array:
        """Return the `origin` for the next step, (N, k)."""
        ...


@runtime_checkable
class FurnishedTask(Task, Protocol):
    """A task that moves objects of the scene, in each world differently."""

    def furnished(self, geoms: Frames, bodies: Sequence[str], origin: Array) -> Frames:
        """Return the poses of the geoms in N worlds, for pictures.

        Args:
            geoms: Their poses in the scene's file, (1, ngeom, ...).
            bodies: Name of the top-level body that carries each geom.
            origin: (N, k) of the first drone of each world.
        """
        ...


def within(key: Array, n: int, centre: tuple[float, ...], spread: tuple[float, ...]) -> Array:
    """Return (n, 3) random points in a box."""
    return jnp.array(centre) + jax.random.uniform(key, (n, 3), minval=-1) * jnp.array(spread)


def side_by_side(points: Array) -> Array:
    """Return (n, 3) points, each shifted to its place on a grid of 1 m."""
    return points + jnp.asarray(np.pad(grid_2d(len(points)), ((0, 0), (0, 1))), points.dtype)


def length(vector: Array) -> Array:
    """Return the length of vectors, (..., 3)."""
    return jnp.linalg.norm(vector, axis=-1)


@dataclass(frozen=True)
class PlainTask:
    """Base of the tasks: checks their fields, and has a goal that stays at the origin.

    Attributes:
        may_be_zero: Names of the fields that must be at least 0. Other single numbers must be above
            0, and the numbers of tuples finite.

    Raises:
        ValueError: A number is out of range; the message names the field.
    """

    may_be_zero: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value, rule = getattr(self, field.name), ""
            if not any(kind in str(field.type) for kind in ("float", "int")):
                continue
            is_good = all(map(isfinite, np.ravel(value)))
            if field.name in self.may_be_zero:
                is_good, rule = is_good and np.min(value) >= 0, " and at least 0"
            elif np.ndim(value) == 0:
                is_good, rule = is_good and value > 0, " and above 0"
            if not is_good:
                kind = f"{type(self).__name__}: {field.name}"
                raise ValueError(f"{kind} must be finite{rule}, got {value}")

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        del time
        return origin, jnp.zeros_like(origin)


@dataclass(frozen=True)
class Hover(PlainTask):
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

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """A drone succeeds while it is there."""
        del before
        distance = length(after.error)
        lost = (distance > self.limit) | (after.pos[:, 2] <= 0)
        return Verdict(jnp.exp(-2 * distance) - 1.0 * lost, lost, distance < self.tolerance)


@dataclass(frozen=True)
class Velocity(PlainTask):
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

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """A drone succeeds while it has the velocity; the floor costs 1."""
        del before
        difference, crashed = length(after.vel_error), after.pos[:, 2] <= 0
        reward = jnp.exp(-difference) - 1.0 * crashed
        return Verdict(reward, crashed, difference < self.tolerance)


@dataclass(frozen=True)
class Reach(PlainTask):
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

    def judge(self, before: Flight, after: Flight) -> Verdict:
        distance = length(after.error)
        reached = (distance < self.tolerance) & (length(after.vel) < self.speed)
        lost = (distance > self.limit) | (after.pos[:, 2] <= 0)
        reward = length(before.error) - distance + reached - 1.0 * lost
        return Verdict(reward, reached | lost, reached)


@dataclass(frozen=True)
class FigureEight(PlainTask):
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

    def judge(self, before: Flight, after: Flight) -> Verdict:
        """A drone succeeds as long as it is not lost."""
        del before
        distance = length(after.error)
        lost = (distance > self.limit) | (after.pos[:, 2] <= 0)
        return Verdict(jnp.exp(-5 * distance) - 1.0 * lost, lost, ~lost)


@dataclass(frozen=True)
class Landing(PlainTask):
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

    def judge(self, before: Flight, after: Flight) -> Verdict:
        distance, touched = length(after.error), after.pos[:, 2] <= 0
        # On the floor, the drone has already stopped.
        speed = jnp.maximum(length(before.vel), length(after.vel))
        landed = touched & (length(after.error[:, :2]) < self.pad) & (speed < self.speed)
        failed = (touched & ~landed) | (distance > self.limit)
        reward = length(before.error) - distance + landed - 1.0 * failed
        return Verdict(reward, landed | failed, landed)
