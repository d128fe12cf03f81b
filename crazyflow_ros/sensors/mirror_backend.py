"""The drones of the runtime and their contacts, for contact sensors."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from crazyflow_ros.scene.state import DroneIndex, MirrorState
from crazyflow_ros.sensors.backend import Contacts
from crazyflow_ros.sensors.mujoco_backend import MujocoBackend
from crazyflow_ros.sensors.objects import subtree


class MirrorBackend(MujocoBackend):
    """One world that follows a `MirrorState`: frames, rays, pictures and contacts.

    MuJoCo finds the places of contacts, and the physics their forces: these add up to the wrenches
    of its contacts on the drones, of which deeper contacts bear more. A contact that the physics
    does not model has no force.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`, as that of a `Mirror`.
        names: Names of the drones, in the order of the rows of the states.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        super().__init__(model, mujoco.MjData(model))
        self._index = DroneIndex(model, names)
        self._drone_of = np.full(model.ngeom, -1)
        for row, body in enumerate(self._index.body):
            self._drone_of[np.isin(model.geom_bodyid, subtree(model, body))] = row
        self._wrenches = np.zeros((len(names), 6))
        self._contacts: Contacts | None = None

    def update(self, state: MirrorState, wrenches: np.ndarray) -> None:
        """Follow a state; call it before the sensors' `update`.

        Args:
            state: State of the drones.
            wrenches: Wrenches of the contacts on them, as in a `Snapshot`, (M, 6).
        """
        model, (data,) = self.model, self.data
        self._index.show(state, data)
        mujoco.mj_collision(model, data)
        self._wrenches, self._contacts = np.asarray(wrenches, float), None

    def contacts(self) -> Contacts:
        """All contacts, with the forces of the physics."""
        if self._contacts is None:
            contacts = super().contacts()
            geoms, axes = contacts.geoms[0], contacts.axes[0]
            force = self._shared(self._drone_of[geoms], contacts.pos[0], -contacts.dist[0])
            local = (axes.swapaxes(1, 2) @ force[..., None])[..., 0]
            self._contacts = contacts._replace(force=local[None], torque=np.zeros_like(local)[None])
        return self._contacts

    def check_sensor(self, sensor: int) -> None:
        """Refuse MuJoCo's own sensors, which are not computed here.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            f"sensor {self.model.sensor(sensor).name!r}: a MirrorBackend has frames and contacts "
            "only, read it from the mirror"
        )

    def _shared(self, drones: np.ndarray, places: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Forces [N] of the first geoms on the second (C, 3), in the world.

        Args:
            drones: Rows of the drones that the geoms belong to, (C, 2), -1 for none.
            places: (C, 3) m.
            depth: (C,) m.
        """
        acts = np.zeros((*self._wrenches.shape, len(places), 3))  # what each force does to drones
        centres = self.data[0].xpos[self._index.body]
        for side, sign in ((0, -1.0), (1, 1.0)):
            for number in np.flatnonzero(drones[:, side] >= 0):
                drone = drones[number, side]
                acts[drone, :3, number] += sign * np.eye(3)
                arm = places[number] - centres[drone]
                acts[drone, 3:, number] += sign * np.cross(arm, np.eye(3)).T
        matrix = acts.reshape(self._wrenches.size, -1)
        bears = np.repeat(np.sqrt(np.maximum(depth, 0.0)), 3)
        shares = np.linalg.lstsq(matrix * bears, self._wrenches.ravel())[0] * bears
        return shares.reshape(-1, 3)
