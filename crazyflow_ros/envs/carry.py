"""Carrying a load on a cable."""

from __future__ import annotations

from dataclasses import dataclass
from math import tau

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics import SlungLoad
from crazyflow_ros.envs.task import Flight, Start
from crazyflow_ros.envs.tasks import progress_terms, within
from crazyflow_ros.envs.terms import Terms, TermTask, length, on_floor


@dataclass(frozen=True)
class Carry(TermTask):
    """Carry a slung load from one point to another, and let it hang still there.

    At the start, the load hangs below the drone, or below the middle of several drones on a circle,
    and swings. Each metre of the load towards its goal is rewarded.

    Attributes:
        seconds: Length of an episode.
        payload: The load and its cables.
        centre: Centre of the box that contains both points of the load, m.
        spread: Half the box's sides, m.
        swing: Largest initial velocity of the load along x and y, m/s.
        radius: Radius of the circle of several drones, m; below the length of the cables.
        tolerance: Distance of the load from its goal at which it counts as there, m.
        speed: Speed below which the load counts as still, m/s.
        limit: Distance of the load from its goal at which it is lost, m.
    """

    seconds: float = 8.0
    payload: SlungLoad = SlungLoad()  # noqa: RUF009  frozen
    centre: tuple[float, float, float] = (0.0, 0.0, 1.5)
    spread: tuple[float, float, float] = (1.0, 1.0, 0.5)
    swing: float = 0.5
    radius: float = 0.3
    tolerance: float = 0.1
    speed: float = 0.2
    limit: float = 4.0

    def begin(self, key: Array, n: int) -> Start:
        """The drones are above the load, its cables taut."""
        keys = jax.random.split(key, 3)
        load, goal = (within(k, 1, self.centre, self.spread) for k in keys[:2])
        radius = self.radius if n > 1 else 0.0
        cables = self.payload.figures(n)["length"]
        angles = tau * np.arange(n)[:, None] / n
        height = np.sqrt(np.maximum(cables**2 - radius**2, 0))
        above = np.hstack([radius * np.cos(angles), radius * np.sin(angles), height])
        push = self.swing * jax.random.uniform(keys[2], (2,), minval=-1)
        pos = load + jnp.asarray(above, load.dtype)
        return Start(pos, jnp.tile(goal, (n, 1)), load_vel=jnp.pad(push, (0, 1)))

    @property
    def terms(self) -> Terms:
        """The load may touch the floor, the drones must not."""

        def away(now: Flight) -> Array:
            assert now.load is not None
            return length(now.pos + now.error - now.load)

        def arrived(now: Flight) -> Array:
            assert now.load_vel is not None
            return (away(now) < self.tolerance) & (length(now.load_vel) < self.speed)

        def lost(now: Flight) -> Array:
            return (away(now) > self.limit) | on_floor(now)

        return progress_terms("arrived", arrived, lost, lambda now: away(now.before) - away(now))
