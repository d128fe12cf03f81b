"""Racing through the gates of a scene."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.envs.tasks import Flight, Start, Verdict, check, length, side_by_side, within
from crazyflow_ros.scene import read_scene

_FRAME = 0.06  # m, width of the bars around an opening
_RADIUS = 0.05  # m, of a drone


class Gates(NamedTuple):
    """The gates of a scene, in the order of flight."""

    centre: np.ndarray
    """(k, 3) m."""
    axes: np.ndarray
    """(k, 3, 3): along the flight, to the left, and up, in world axes."""
    opening: np.ndarray
    """(k, 2) half width and half height, m."""
    start: np.ndarray
    """(3,) m."""


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
    place = names.index("start")
    return Gates(data.site_xpos[order], axes, model.site_size[order][:, 1:], data.site_xpos[place])


@dataclass(frozen=True)
class Race:
    """Fly through the gates of a scene in their order. Each metre towards the next is rewarded.

    A gate adds 1. Touching the floor or the frame of a gate, or being too far away, ends the
    episode and costs 1.

    Attributes:
        seconds: Length of an episode.
        scene: Name or path of the MJCF scene, see `gates_of`.
        laps: Laps after which the task is completed.
        height: Height of the start, m.
        spread: Half the sides of the box in which drones start, m.
        limit: Distance from the next gate at which the drone is lost, m.
        speed: Velocity of the goals, along the flight through the gates, m/s.
    """

    seconds: float = 30.0
    scene: str = "race_track"
    laps: int = 1
    height: float = 1.0
    spread: tuple[float, float, float] = (0.2, 0.2, 0.2)
    limit: float = 10.0
    speed: float = 2.0

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: A length or time is not positive, or the scene has no gates.
        """
        check(self, "spread")
        check(self, "seconds", "laps", "height", "limit", "speed", lowest=0)
        _ = self.gates

    @cached_property
    def gates(self) -> Gates:
        """The gates."""
        return gates_of(self.scene)

    def begin(self, key: Array, n: int) -> Start:
        """See `Task`. The `origin` is the number of gates behind the drone."""
        x, y, _ = self.gates.start.tolist()
        pos = side_by_side(within(key, n, (x, y, self.height), self.spread))
        return Start(pos, jnp.zeros((n, 1)))

    def goal(self, origin: Array, time: Array) -> tuple[Array, Array]:
        """See `Task`. The centre of the next gate, and the velocity with which to pass it."""
        del time
        ahead = self._of_next(origin, self.gates.axes[:, 0])
        return self._of_next(origin, self.gates.centre), self.speed * ahead

    def judge(self, before: Flight, after: Flight) -> Verdict:
        through, hit = self._crossing(before, after)
        distance = length(after.error)
        failed = hit | (distance > self.limit) | (after.pos[:, 2] <= 0)
        total = self.laps * len(self.gates.centre)
        done = through & (after.origin[:, 0] + 1 >= total)
        reward = length(before.error) - distance + through - 1.0 * failed
        return Verdict(reward, failed | done, done & ~failed)

    def advance(self, before: Flight, after: Flight) -> Array:
        through, _ = self._crossing(before, after)
        return after.origin + through[:, None]

    def _crossing(self, before: Flight, after: Flight) -> tuple[Array, Array]:
        """Return whether drones have flown through the next gate, and into its frame."""
        axes = self._of_next(after.origin, self.gates.axes.reshape(-1, 9)).reshape(-1, 3, 3)
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

    def _of_next(self, origin: Array, values: np.ndarray) -> Array:
        """Return the values (n, k) of the next gates, from those of all gates."""
        n = len(values)
        index = origin[:, 0] - n * jnp.floor(origin[:, 0] / n)
        # A sum, because a gather would not fit in a kernel.
        parts = [
            jnp.where((index == i)[:, None], jnp.asarray(value, origin.dtype), 0.0)
            for i, value in enumerate(values)
        ]
        return sum(parts[1:], parts[0])
