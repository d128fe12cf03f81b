"""The slung load of each world, as part of a simulation's data.

Shapes: N worlds, M drones per world. Arrays of a world have the size 1 in place of its drones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import stack, vector
from crazyflow_ros.dynamics.slung_load import Pull, SlungLoad, Suspension, moved
from crazyflow_ros.xla.on_device import on_device
from crazyflow_ros.xla.struct import Struct, static_field


class Payload(Struct):
    """Loads and cables; see `SlungLoad` for the figures, which may differ between worlds."""

    pos: Array
    """(N, 1, 3) of the load, world frame, m."""
    vel: Array
    """(N, 1, 3) of the load, world frame, m/s."""
    tension: Array
    """(N, M, 1) of the cables in the last tick, N."""
    mass: Array
    """(N, 1, 1) kg."""
    drag_area: Array
    """(N, 1, 1) m^2."""
    length: Array
    """(N, M, 1) m."""
    stiffness: Array
    """(N, M, 1) N/m."""
    damping: Array
    """(N, M, 1) N s/m."""
    attachment: Array | None
    """(N, M, 3) body frame, m; None for the centre of mass."""
    has_floor: bool = static_field()
    """Whether the floor z = 0 stops the loads."""

    @staticmethod
    def create(load: SlungLoad, n_worlds: int, n_drones: int, has_floor: bool) -> Payload:
        """Return loads at the origin."""

        def array(world: np.ndarray) -> Array:
            return on_device(np.tile(world, (n_worlds, 1, 1)))

        state = {"pos": (1, 3), "vel": (1, 3), "tension": (n_drones, 1)}
        arrays = {name: np.zeros(shape) for name, shape in state.items()} | load.figures(n_drones)
        leaves: dict[str, Any] = {"attachment": None} | {k: array(v) for k, v in arrays.items()}
        return Payload(**leaves, has_floor=has_floor)

    @property
    def load(self) -> Suspension:
        """The loads as component arrays, (N, 1), and their cables, (N, M)."""
        point = None if self.attachment is None else vector(self.attachment)
        names = ("mass", "drag_area", "length", "stiffness", "damping")
        figures = {name: getattr(self, name)[..., 0] for name in names}
        return Suspension(vector(self.pos), vector(self.vel), **figures, attachment=point)

    def after_tick(self, load: Suspension, cables: Pull, dt: float) -> Payload:
        """Return the loads after a tick of `dt` seconds in which the cables pulled them."""
        pos, vel = moved(load, cables.vel, dt, has_floor=self.has_floor)
        return self.replace(pos=stack(pos), vel=stack(vel), tension=cables.tension[..., None])
