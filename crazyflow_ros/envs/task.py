"""What a task is: beginnings, goals and verdicts of drones, world frame, SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.raytracing import Frames
from crazyflow_ros.sim import SimData


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
    """N drones at an instant, world by world: what a task sees of a step."""

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
    quat: Array
    """(N, 4) body to world, xyzw."""
    ang_vel: Array
    """(N, 3) body frame, rad/s."""
    rotor_vel: Array
    """(N, 4) RPM."""
    action: Array
    """(N, 4) action of the step, -1 to 1; zeros at the beginning."""
    last_action: Array
    """(N, 4) action of the step before; zeros before the first."""
    time: Array
    """(N, 1) since the beginning of the episode, s."""
    data: SimData
    """State and parameters of the worlds, for what is not among these fields."""
    load: Array | None = None
    """(N, 3) position of the load that the drones of a world carry, m; None without one."""
    load_vel: Array | None = None
    """(N, 3) its velocity, m/s."""
    level: Mapping[str, Array] = {}
    """(N,) level of each `CurriculumTerm`."""
    over: Array | None = None
    """(N,) bool: the drone has ended before this step, with `ending="alone"`; otherwise None."""
    previous: Flight | None = None
    """The drones before the step; None in observations."""

    @property
    def before(self) -> Flight:
        """The drones before the step, whose last action is the one before this step's.

        Raises:
            ValueError: This is an observation, which may be that of the beginning.
        """
        if self.previous is None:
            raise ValueError("an observation has no step before it")
        return self.previous

    def others(self, x: Array) -> Array:
        """Return `x` (N, k) of the other M - 1 drones of each world: (N, M - 1, k).

        Those of the drone i are the drones i + 1, i + 2 and so on, then 0 to i - 1.
        """
        m = self.data.core.n_drones
        worlds = x.reshape(-1, m, 1, x.shape[-1])
        turned = [jnp.roll(worlds, -i, axis=1) for i in range(1, m)]
        return jnp.concatenate(turned or [worlds[:, :, :0]], axis=2).reshape(len(x), m - 1, -1)

    def parameter(self, name: str) -> Array:
        """Return a parameter of the dynamics of each drone, (N, ...); see `SimData.params`."""
        x, lead = getattr(self.data.params, name), self.data.states.pos.shape[:2]
        own = x.shape[2:] if x.ndim > 2 else x.shape  # worlds and drones share the others
        return jnp.broadcast_to(x, (*lead, *own)).reshape(-1, *own)


class Verdict(NamedTuple):
    """Result of a step."""

    reward: Array
    """(N,)"""
    terminated: Array
    """(N,) bool: the drone has completed its task, or failed."""
    success: Array
    """(N,) bool: the drone has completed its task."""
    truncated: Array | None = None
    """(N,) bool: the time for the task is over; None for `Task.seconds` alone."""
    terms: Mapping[str, Array] = {}
    """(N,) values of the terms by name: weighted rewards, and ends, which are 1 or 0."""


@runtime_checkable
class Task(Protocol):
    """A task, as pure functions."""

    @property
    def seconds(self) -> float:
        """Length of an episode [s], after which it is truncated."""
        ...

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        """Return a `Start`, or its first two fields, for the n drones of a world.

        A task with curricula has a third argument, `level`: the level () of each by name.
        """
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
