"""Range sensors: one time-of-flight sensor below each drone, which looks down along the body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import mujoco
import numpy as np

from crazyflow_ros.scene.groups import UNUSED_GROUP
from crazyflow_ros.scene.rays import ShortRays

MAX_RANGE = 4.0
"""Maximum range of a VL53L1x, the sensor of the Crazyflie's Flow and Z-ranger decks [m]."""
FIELD_OF_VIEW = 0.471
"""Field of view of a VL53L1x, full angle [rad]: 27 degrees. Readings are those of the central ray.

Source: datasheet DocID031281, revision 3, page 1."""

_AROUND = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1)], float)
"""Directions of a Multi-ranger deck in body axes: front, back, left, right, up."""
Rows: TypeAlias = slice | list[int]
ALL = slice(None)
_MANY = 128  # geoms, up to which each ray is cast at all of them
_DRAWINGS = 2  # geom group of visual geoms; rays hit collision geoms


class Rangefinder:
    """The range sensors of all drones, exact along a ray.

    A ray starts at the site "range" of a drone, points along its x axis, and hits everything except
    the drone itself and geoms of group 2, which by MuJoCo's convention are only visual.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`.
        names: Names of the drones.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self._model = model
        self._sites = np.array([model.site(f"range:{name}").id for name in names])
        self._bodies = np.array([model.body(f"drone:{name}").id for name in names])
        self._groups = np.ones(mujoco.mjNGROUP, np.uint8)
        self._groups[[_DRAWINGS, UNUSED_GROUP]] = 0
        rays = ShortRays(model, self._groups, MAX_RANGE)
        self._rays = rays if rays.n_geoms > _MANY and not model.nflex else None

    def read(self, data: mujoco.MjData, rows: Rows = ALL) -> np.ndarray:
        """Return distances [m], (M,), infinite beyond `MAX_RANGE`.

        Args:
            data: Data with current frames.
            rows: Drones of which to read the sensors.
        """
        # Copies, because MuJoCo's binding needs ten times as long for rows of a view as
        # for the ray.
        sites = self._sites[rows]
        origins = data.site_xpos[sites]
        axes = data.site_xmat.reshape(-1, 3, 3)[sites, :, 0]
        return self._cast(data, origins, axes, self._bodies[rows])

    def read_around(self, data: mujoco.MjData, rows: Rows = ALL) -> np.ndarray:
        """Return distances [m] to the front, back, left, right and top, (M, 5), as `read` does.

        These rays start at the centre of mass.
        """
        drones = self._bodies[rows]
        turns = data.xmat.reshape(-1, 3, 3)[drones]
        axes = np.ascontiguousarray(np.einsum("mij,kj->mki", turns, _AROUND).reshape(-1, 3))
        origins = np.repeat(data.xpos[drones], len(_AROUND), axis=0)
        bodies = np.repeat(drones, len(_AROUND))
        return self._cast(data, origins, axes, bodies).reshape(-1, len(_AROUND))

    def _cast(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray, bodies: np.ndarray
    ) -> np.ndarray:
        if self._rays is not None:
            distances = self._rays.cast(data, origins, axes, bodies)
        else:
            distances = np.array(
                [
                    mujoco.mj_ray(self._model, data, origin, axis, self._groups, 1, body, None)
                    for origin, axis, body in zip(origins, axes, bodies.tolist())
                ]
            )
        distances[(distances < 0) | (distances > MAX_RANGE)] = np.inf
        return distances
