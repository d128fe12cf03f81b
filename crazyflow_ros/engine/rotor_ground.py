"""What is below the rotors of drones among bodies, for their ground effect.

There MuJoCo knows every shape: bodies that move, height fields, meshes.
"""

from __future__ import annotations

import mujoco
import numpy as np

from crazyflow_ros.dynamics.forces.aerodynamics import GROUND_REACH
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.groups import DRAWINGS, UNUSED_GROUP
from crazyflow_ros.scene.rays import FrameRays

_FURTHER = 0.5  # m, by which drones may sink until rays are cast again


class RotorGround:
    """Casts rays down from the rotors of M drones; they pass through drones.

    Args:
        model: Model of drones and bodies.
        drones: (M,) bodies of the drones in it.
        position: (n, 3) places of their rotors, body frame, m.
        radius: Of a rotor, m.
    """

    def __init__(
        self, model: mujoco.MjModel, drones: np.ndarray, position: np.ndarray, radius: float
    ) -> None:
        groups = np.ones(mujoco.mjNGROUP, np.uint8)
        groups[[DRAWINGS, UNUSED_GROUP]] = 0
        own = np.flatnonzero(np.isin(model.body_rootid, drones)).tolist()
        longest = GROUND_REACH * radius + _FURTHER
        self._rays = FrameRays(model, [own] * len(drones), groups, longest)
        self._model, self._position, self._every = model, position, np.arange(len(drones))

    def heights(self, data: mujoco.MjData, pose: np.ndarray, floor: float) -> np.ndarray:
        """Return the heights of what is below rotors, (M, n) [m].

        Args:
            data: State of drones and bodies; their frames are updated.
            pose: (M, 7) position [m] and attitude (xyzw) of the drones.
            floor: Height where rays hit nothing, m.
        """
        mujoco.mj_kinematics(self._model, data)
        points = pose[:, None, :3] + self._position @ rotation_matrix(pose[:, 3:]).swapaxes(1, 2)
        down = np.broadcast_to([0.0, 0.0, -1.0], points.shape)
        away, *_ = self._rays.cast(data, points, down, self._every, one_origin=False)
        found: np.ndarray = np.where(away < 0, floor, np.maximum(points[..., 2] - away, floor))
        return found
