"""Races through the gates of a scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import sin_cos
from crazyflow_ros.envs.task import Flight, Start
from crazyflow_ros.envs.tasks import gained, lost_beyond, side_by_side, within
from crazyflow_ros.envs.terms import RewardTerm, TerminationTerm, Terms, TermTask, length
from crazyflow_ros.raytracing import Frames
from crazyflow_ros.scene import read_scene

_FRAME = 0.06  # m, width of the bars around an opening
_RADIUS = 0.05  # m, of a drone


class Gates(NamedTuple):
    """The gates of a scene, in the order of flight."""

    centre: np.ndarray
    """(k, 3) m."""
    axes: np.ndarray
    """(k, 3, 3): forward, left and up, in world axes."""
    opening: np.ndarray
    """(k, 2) half width and half height, m."""
    start: np.ndarray
    """(3,) m."""
    bodies: tuple[str, ...]
    """Name of the top-level body of each gate."""


@lru_cache
def gates_of(scene: str) -> Gates:
    """Return the gates of a scene: its box sites `gate0_centre`, `gate1_centre` and so on.

    Their x axes point along the flight. The site `start` is where drones start.

    Raises:
        ValueError: There is no such scene, or it has no gates or no start.
    """
    model = read_scene(scene).compiled()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    names = [model.site(i).name for i in range(model.nsite)]
    gates = [f"gate{i}_centre" for i in range(len(names))]
    order = [names.index(gate) for gate in gates if gate in names]
    if not order or "start" not in names:
        raise ValueError(f"scene {scene} needs the sites start and gate0_centre, has {names}")
    axes = data.site_xmat[order].reshape(-1, 3, 3).transpose(0, 2, 1)
    bodies = tuple(model.body(model.body_rootid[model.site_bodyid[i]]).name for i in order)
    opening, start = model.site_size[order][:, 1:], data.site_xpos[names.index("start")]
    return Gates(data.site_xpos[order], axes, opening, start, bodies)


_MOVES = 4
"""Numbers of a gate's move: along the axes of the world [m], and about the vertical through its
centre [rad]."""


@dataclass(frozen=True)
class Race(TermTask):
    """Fly through the gates of a scene in their order. Each metre towards the next is rewarded.

    A gate adds 1. Touching the floor or the frame of a gate, or being too far away, ends the
    episode and costs 1.

    With `shift` or `turn`, the gates are moved in each episode of each world, also in pictures.

    Attributes:
        seconds: Length of an episode.
        scene: Name or path of the MJCF scene, see `gates_of`.
        laps: Laps after which the task is completed.
        height: Height of the start, m.
        spread: Half the sides of the box in which drones start, m.
        limit: Distance from the next gate at which the drone is lost, m.
        speed: Velocity of the goals, along the flight through the gates, m/s.
        shift: Largest move of a gate along each axis, m.
        turn: Largest angle by which a gate is turned about the vertical, rad.
        anywhere: Whether drones start in flight towards any of the gates, instead of at rest at
            the start.
    """

    may_be_zero = ("shift", "turn")

    seconds: float = 30.0
    scene: str = "race_track"
    laps: int = 1
    height: float = 1.0
    spread: tuple[float, float, float] = (0.2, 0.2, 0.2)
    limit: float = 10.0
    speed: float = 2.0
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: float = 0.0
    anywhere: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.gates

    @cached_property
    def gates(self) -> Gates:
        """The gates."""
        return gates_of(self.scene)

    @property
    def _moves(self) -> bool:
        """Whether gates are moved."""
        return any((*self.shift, self.turn))

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        """Return the start; see `Task`.

        The `origin` is the number of gates passed, followed by the moves of all gates, if any.
        """
        if not (self._moves or self.anywhere):
            return Start(self._at_start(key, n), jnp.zeros((n, 1)))
        k = len(self.gates.centre)
        keys = jax.random.split(key, 3)
        moves = jax.random.uniform(keys[1], (1, k, _MOVES), minval=-1)
        moves *= jnp.array([*self.shift, self.turn])
        moved = jnp.tile(moves.reshape(1, -1), (n, 1)) if self._moves else jnp.zeros((n, 0))
        if not self.anywhere:
            return Start(self._at_start(keys[0], n), jnp.pad(moved, ((0, 0), (1, 0))))
        return self._in_flight(keys[2], n, moved)

    def _at_start(self, key: Array, n: int) -> Array:
        x, y, _ = self.gates.start.tolist()
        return side_by_side(within(key, n, (x, y, self.height), self.spread))

    def _in_flight(self, key: Array, n: int, moved: Array) -> Start:
        """Begin between two gates."""
        draw, k = jax.random.uniform(key, (n, 8)), len(self.gates.centre)
        behind = jnp.minimum(jnp.floor(draw[:, :1] * k), k - 1)
        origin = jnp.concatenate([behind, moved], axis=-1)
        before = jnp.concatenate([(behind + k - 1) % k, moved], axis=-1)
        last, goal = self._centre(before), self._centre(origin)
        way = goal - last
        aside = (2 * draw[:, 1:4] - 1) * jnp.array(self.spread)
        pos = last + (0.1 + 0.6 * draw[:, 4:5]) * way + aside
        pos = jnp.maximum(pos, jnp.array([-jnp.inf, -jnp.inf, 0.5]))
        ahead = goal - pos
        half = (jnp.arctan2(ahead[:, 1], ahead[:, 0]) + draw[:, 5] - 0.5) / 2
        zero = jnp.zeros_like(half)
        quat = jnp.stack([zero, zero, jnp.sin(half), jnp.cos(half)], axis=-1)
        vel = self.speed * draw[:, 6:7] * ahead / length(ahead)[:, None]
        return Start(pos, origin, quat, vel)

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """Return the centre of the next gate, and the velocity at which to pass it."""
        del time
        return self._centre(origin), self.speed * self._axes(origin)[:, 0]

    @property
    def terms(self) -> Terms:
        lost, total = lost_beyond(self.limit), self.laps * len(self.gates.centre)

        def through(now: Flight) -> Array:
            return self._crossing(now.before, now)[0]

        def hit(now: Flight) -> Array:
            return self._crossing(now.before, now)[1]

        def failed(now: Flight) -> Array:
            return hit(now) | lost(now)

        def done(now: Flight) -> Array:
            return through(now) & (now.origin[:, 0] + 1 >= total) & ~failed(now)

        return Terms(
            rewards={
                "progress": RewardTerm(gained),
                "gate": RewardTerm(through),
                "failure": RewardTerm(failed, -1.0),
            },
            terminations={
                "done": TerminationTerm(done, success=True),
                "hit": TerminationTerm(hit),
                "lost": TerminationTerm(lost),
            },
        )

    def advance(self, before: Flight, after: Flight) -> Array:
        through, _ = self._crossing(before, after)
        count = after.origin[:, :1] + through[:, None]
        return jnp.concatenate([count, after.origin[:, 1:]], axis=-1)

    def furnished(self, geoms: Frames, bodies: Sequence[str], origin: Array) -> Frames:
        """See `FurnishedTask`."""
        if not self._moves:
            return geoms
        names, moves = self.gates.bodies, origin[:, 1:].reshape(len(origin), -1, _MOVES)
        owners = np.array([names.index(x) if x in names else -1 for x in bodies])
        pivot = jnp.asarray(self.gates.centre[owners], origin.dtype)
        of_geoms = jnp.where((owners >= 0)[:, None], moves[:, owners], 0.0)
        turn = _about_vertical(of_geoms[..., 3])
        pos = pivot + of_geoms[..., :3] + (turn * (geoms.pos - pivot)[..., None, :]).sum(-1)
        return Frames(pos, (turn[..., None] * geoms.axes[..., None, :, :]).sum(-2))

    def _crossing(self, before: Flight, after: Flight) -> tuple[Array, Array]:
        """Return whether drones have flown through the next gate, and whether into its frame."""
        axes = self._axes(after.origin)
        # Position in the axes of the gate.
        then, now = (-(axes * flight.error[:, None]).sum(-1) for flight in (before, after))
        crosses = (then[:, 0] < 0) & (now[:, 0] >= 0)
        moved = now[:, 0] - then[:, 0]
        share = -then[:, 0] / jnp.where(moved == 0, 1.0, moved)
        aside = jnp.abs(then[:, 1:] + share[:, None] * (now[:, 1:] - then[:, 1:]))
        opening = self._of_next(after.origin, self.gates.opening)
        inside = (aside < opening - _RADIUS).all(-1)
        near = (aside < opening + _FRAME + _RADIUS).all(-1)
        return crosses & inside, crosses & near & ~inside

    def _centre(self, origin: Array) -> Array:
        """Return the centres (n, 3) of the next gates."""
        centre = self._of_next(origin, self.gates.centre)
        return centre + self._move(origin)[:, :3] if self._moves else centre

    def _axes(self, origin: Array) -> Array:
        """Return the axes (n, 3, 3) of the next gates, see `Gates`."""
        axes = self._of_next(origin, self.gates.axes.reshape(-1, 9)).reshape(-1, 3, 3)
        if not self._moves:
            return axes
        turn = _about_vertical(self._move(origin)[:, 3])
        return (turn[:, None] * axes[:, :, None, :]).sum(-1)

    def _move(self, origin: Array) -> Array:
        """Return the moves of the next gates, (n, 4)."""
        each = jnp.split(origin[:, 1:], len(self.gates.centre), axis=-1)
        return self._of_next(origin, each)

    def _of_next(self, origin: Array, values: Sequence[Array] | np.ndarray) -> Array:
        """Return the values (n, k) of the next gates, from those of all gates."""
        n = len(values)
        index = origin[:, 0] - n * jnp.floor(origin[:, 0] / n)
        # A sum, because a gather would not fit in a kernel.
        parts = [
            jnp.where((index == i)[:, None], jnp.asarray(value, origin.dtype), 0.0)
            for i, value in enumerate(values)
        ]
        return sum(parts[1:], parts[0])


def _about_vertical(angle: Array) -> Array:
    """Return rotations (..., 3, 3) by an angle (...) about the vertical."""
    sin, cos = sin_cos(angle)
    zero, one = jnp.zeros_like(sin), jnp.ones_like(sin)
    rows = ((cos, -sin, zero), (sin, cos, zero), (zero, zero, one))
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
