"""Sensors in worlds of C MuJoCo: exact, with one `MjData` per world."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from crazyflow_ros.scene.mirror_state import DroneIndex, MirrorState
from crazyflow_ros.scene.rays import FrameRays
from crazyflow_ros.sensors.backend import (
    Contacts,
    Limits,
    RayCaster,
    check_not_mocap,
    motions_of,
)
from crazyflow_ros.sensors.objects import ObjRef, subtree


class MujocoBackend:
    """One or more `MjData` of a model.

    The caller steps or fills the data; the back end computes nothing. Frames have to be up to date
    (`mj_kinematics`, `mj_camlight`), and built-in sensors need their stages of MuJoCo's pipeline.
    After `mj_step`, both are those from before the step: call `mj_forward` to update them.

    Args:
        model: The model.
        data: The data of each world; they may change under the back end.
    """

    xp = np
    contact_forces = True
    keys = None

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData | Sequence[mujoco.MjData]
    ) -> None:
        self.model = model
        self.data = [data] if isinstance(data, mujoco.MjData) else list(data)
        if not self.data:
            raise ValueError("give the data of at least one world")
        sizes = (model.nq, model.nbody, model.nsensordata)
        for world, one in enumerate(self.data):
            if (len(one.qpos), len(one.xpos), len(one.sensordata)) != sizes:
                raise ValueError(f"the data of world {world} belong to another model")

    @property
    def n_worlds(self) -> int:
        """Number of worlds, B."""
        return len(self.data)

    def sensordata(self) -> np.ndarray:
        """See `Backend`."""
        return np.stack([data.sensordata for data in self.data])

    def frame(self, ref: ObjRef) -> tuple[np.ndarray, np.ndarray]:
        """See `Backend`."""
        prefix, number = ref.frame_prefix, ref.id(self.model)
        positions = [getattr(data, f"{prefix}pos")[number] for data in self.data]
        axes = [getattr(data, f"{prefix}mat")[number].reshape(3, 3) for data in self.data]
        return np.stack(positions), np.stack(axes)

    def geoms(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Backend`."""
        axes = [data.geom_xmat.reshape(-1, 3, 3) for data in self.data]
        return np.stack([data.geom_xpos for data in self.data]), np.stack(axes)

    def motions(self, bodies: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `Backend`; they come from `mj_comVel`."""
        worlds = [motions_of(self.model, data, bodies) for data in self.data]
        centre, vel, ang_vel = (np.stack(parts) for parts in zip(*worlds))
        return centre, vel, ang_vel

    def contacts(self) -> Contacts:
        """Return the contacts of `mj_collision`, with the forces of the last solution."""
        return stack_contacts([contacts_of(self.model, data) for data in self.data])

    def check_sensor(self, sensor: int) -> None:
        """Refuse the motion of mocap bodies."""
        check_not_mocap(self.model, sensor)

    def poses(self, world: int) -> mujoco.MjData:
        """Return the data itself."""
        return self.data[world]

    def ray_caster(
        self,
        excluded: Sequence[Sequence[int]],
        groups: np.ndarray,
        limits: Limits,
        *,
        one_origin: bool,
    ) -> RayCaster:
        """See `Backend`."""
        rays = FrameRays(self.model, excluded, groups, *limits(self.model))
        frames = np.arange(len(excluded))

        def cast(origins: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            worlds = zip(self.data, np.broadcast_to(origins, directions.shape), directions)
            found = [rays.cast(*world, frames, one_origin=one_origin) for world in worlds]
            distances, normals, _ = (np.stack(parts) for parts in zip(*found))
            return distances, normals

        return RayCaster(cast)


class MirrorBackend(MujocoBackend):
    """One world that follows a `MirrorState`: frames, rays, pictures and contacts.

    MuJoCo finds the places of contacts. Their forces add up to the wrenches that the physics has
    computed for the drones, and deeper contacts bear more of them. A contact that the physics does
    not model has no force.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`, like the model of a `Mirror`.
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
        """Return all contacts, with the forces of the physics."""
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
        """Return the forces [N] of the first geoms on the second (C, 3), in the world.

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


def contacts_of(model: mujoco.MjModel, data: mujoco.MjData) -> Contacts:
    """Return the contacts of one world, without an axis for worlds."""
    found = data.contact
    wrench = np.zeros((data.ncon, 6))
    for number in range(data.ncon):
        mujoco.mj_contactForce(model, data, number, wrench[number])
    return Contacts(
        found.geom.reshape(-1, 2).copy(),
        found.dist.copy(),
        found.pos.reshape(-1, 3).copy(),
        found.frame.reshape(-1, 3, 3).swapaxes(1, 2).copy(),
        wrench[:, :3],
        wrench[:, 3:],
    )


def stack_contacts(worlds: Sequence[Contacts]) -> Contacts:
    """Join contacts of worlds, with as many slots as the world with most contacts needs."""
    most = max(len(contacts.dist) for contacts in worlds)

    def padded(parts: Sequence[np.ndarray], value: float) -> np.ndarray:
        shape = (len(parts), most, *parts[0].shape[1:])
        stacked = np.full(shape, value, parts[0].dtype)
        for whole, part in zip(stacked, parts):
            whole[: len(part)] = part
        return stacked

    geoms, *others = zip(*worlds)
    return Contacts(padded(geoms, -1), *(padded(parts, 0.0) for parts in others))
