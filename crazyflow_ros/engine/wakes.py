"""The air below drones, which pushes the bodies of a world.

The wake of a drone is that of `dynamics.forces.aerodynamics.downwash`: below a drone with the
thrust T, at the depth z and the distance r from the axis, air of density rho moves against the
thrust with

    v = sqrt(2 T / (pi rho b^2)) exp(-r^2 / b^2),    b^2 = w_drone + w_body + (0.113 z)^2

where w is twice the mean square of the distances from the axis, of the rotor discs, and of the body
from its broadest side. Momenta of several wakes add up. The drag is that of MuJoCo's fluid model
for boxes with a body's inertia (MuJoCo documentation, Computation, "Inertia model"): along each of
its axes rho / 2 times the area, times the square of the air's speed relative to the body. Where the
world has a density, MuJoCo has computed the drag without wakes, which is taken off.

Forces act at centres of mass: wakes turn nothing. They act on the drones in no way, pass through
bodies, and do not spread on the floor.
"""

from __future__ import annotations

import mujoco
import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.forces.jets import JET_SPREAD, REACH
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.scene.mirror_state import DroneIndex


class Wakes:
    """The wakes of the M drones of a world, and the B bodies there that move.

    Args:
        model: Model of drones and bodies.
        index: The drones in it.
        drone: Their kind.
    """

    def __init__(self, model: mujoco.MjModel, index: DroneIndex, drone: str) -> None:
        figures = load_drone(drone)
        self._curves = figures["rotors"].rpm2thrust
        self._spread = 4 * figures["L"] ** 2 + figures["geometry"]["rotor_radius"] ** 2
        self._drones, self._has_air = index.body, bool(model.opt.density)
        self._wind = model.opt.wind
        moving = (model.body_weldid > 0) & (model.body_mass > 0)
        moving &= ~np.isin(model.body_rootid, index.body)
        self._bodies = np.flatnonzero(moving)
        self._roots = model.body_rootid[self._bodies]
        inertia = model.body_inertia[self._bodies]
        left = inertia.sum(axis=1, keepdims=True) - 2 * inertia
        half = np.sqrt(1.5 * np.maximum(left, 0.0) / model.body_mass[self._bodies, None])
        self._areas = 4 * half[:, [1, 2, 0]] * half[:, [2, 0, 1]]
        self._width = 2 / 3 * (half**2).sum(axis=1) - 2 / 3 * half.min(axis=1) ** 2 + self._spread

    def forces(
        self, data: mujoco.MjData, turns: np.ndarray, conditions: Conditions
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the bodies in wakes, (k,), and the forces on them in the world [N], (k, 3).

        Args:
            data: State of drones and bodies, with frames and velocities.
            turns: (M, n) speeds of the rotors [RPM].
            conditions: The air.
        """
        if not np.count_nonzero(turns):
            return None
        up, there = data.xmat[self._drones, 2::3], data.xipos[self._bodies]
        away = data.xpos[self._drones, None] - there
        depth = (away @ up[:, :, None])[..., 0]
        square = depth * depth
        aside = np.einsum("mbi,mbi->mb", away, away) - square
        wide = self._width + JET_SPREAD**2 * square
        drone, body = np.nonzero((aside < REACH * wide) & (depth > 0))
        if not drone.size:
            return None
        curves, density = self._curves.T, conditions.density
        thrust = conditions.air * (curves[0] + turns * (curves[1] + turns * curves[2])).sum(axis=1)
        aside, wide = aside[drone, body], wide[drone, body]
        strength = 2 / np.pi * thrust[drone] / wide * np.exp(-2 * aside / wide)
        # The momentum flux of all wakes along each axis of the world, per area.
        within, which = np.unique(body, return_inverse=True)
        flux = np.zeros((within.size, 3))
        np.subtract.at(flux, which, strength[:, None] * up[drone])
        size = np.sqrt((flux * flux).sum(axis=1, keepdims=True))
        moves = flux / np.sqrt(density * np.maximum(size, np.finfo(float).tiny))
        bodies, roots = self._bodies[within], self._roots[within]
        turn, spin = data.ximat[bodies].reshape(-1, 3, 3), data.cvel[bodies]
        speed = spin[:, 3:] + np.cross(spin[:, :3], there[within] - data.subtree_com[roots])
        still = self._wind - speed
        drag = self._drag(turn, still + moves, within, density)
        if self._has_air:
            drag -= self._drag(turn, still, within, density)
        return bodies, drag

    def _drag(
        self, turn: np.ndarray, flow: np.ndarray, within: np.ndarray, density: float
    ) -> np.ndarray:
        own = np.einsum("kij,ki->kj", turn, flow)
        force = density / 2 * self._areas[within] * np.abs(own) * own
        return np.einsum("kij,kj->ki", turn, force)
