"""Sensors over the state of drones: each drone of one scene is a world, all are read at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from crazyflow_ros.scene import MirrorState
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.sensors.backend import Contacts, RayCaster
from crazyflow_ros.sensors.motion import INERTIAL, RigidMotion
from crazyflow_ros.sensors.mujoco_backend import MujocoBackend
from crazyflow_ros.sensors.objects import ObjRef, subtree

_SENSOR = mujoco.mjtSensor


class StateBackend:
    """M drones of one kind that carry the same sensors.

    Readings of sites are computed from the drones' state in closed form, as MuJoCo's own sensors
    would have them, for all drones at once: tens of drones at hundreds of hertz are no load. Rays
    meet what is in the scene.

    Args:
        model: One such drone alone, called `drone`, with what the sensors have added to it.
        drones: Their names in the scene.
        scene: All drones and what is around them; whoever owns its data keeps the frames up to
            date. Only needed for rays.
        drone: Name of the drone in `model`.
    """

    xp = np
    contact_forces = False

    def __init__(
        self,
        model: mujoco.MjModel,
        drones: Sequence[str],
        scene: MujocoBackend,
        drone: str = "drone",
    ) -> None:
        self.model, self._scene, self._drones = model, scene, tuple(drones)
        self._root = model.body(f"drone:{drone}").id
        self._gravity = scene.model.opt.gravity
        data = mujoco.MjData(model)
        start = model.joint(f"free:{drone}").qposadr[0]
        data.qpos[start : start + 7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)
        self._at_origin = MujocoBackend(model, data)
        self._read: dict[int, Callable[[], np.ndarray]] = {}
        self.casting = np.ones(len(self._drones), bool)
        """Which drones cast rays, shape (M,); those of others meet nothing, and cost nothing."""

    @property
    def n_worlds(self) -> int:
        """M."""
        return len(self._drones)

    def show(self, state: MirrorState, rows: Sequence[int]) -> None:
        """Read from this state from now on; `rows` are those of the drones."""
        self._pos, self._axes = state.pos[rows], rotation_matrix(state.quat[rows])
        self._motion = RigidMotion(
            self._axes,
            vel=state.vel[rows],
            ang_vel=state.ang_vel[rows],
            acc=state.acc[rows],
            ang_acc=state.ang_acc[rows],
            gravity=self._gravity,
        )
        self._readings: np.ndarray | None = None

    def sensordata(self) -> np.ndarray:
        """Readings (M, nsensordata) of the sensors that were checked, the others are zero."""
        if self._readings is None:
            self._readings = np.zeros((self.n_worlds, self.model.nsensordata))
            for start, read in self._read.items():
                self._readings[:, start : start + 3] = read()
        return self._readings.copy()

    def frame(self, ref: ObjRef) -> tuple[np.ndarray, np.ndarray]:
        """Position (M, 3) and axes (M, 3, 3); of a rotor as if it stood still."""
        pos, axes = self._at_origin.frame(ref)
        return self._pos + self._axes @ pos[0], self._axes @ axes[0]

    def contacts(self) -> Contacts:
        """The state does not tell them.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("the state of drones does not tell their contacts")

    def ray_caster(
        self,
        excluded: Sequence[Sequence[int]],
        groups: np.ndarray,
        max_distance: float,
        *,
        one_origin: bool,
    ) -> RayCaster:
        """Rays of one frame on the drone.

        Raises:
            ValueError: There are several frames.
        """
        if len(excluded) != 1:
            raise ValueError(f"expected rays of one frame on the drone, got {len(excluded)}")
        scene = self._scene
        bodies = [scene.model.body(f"drone:{name}").id for name in self._drones]
        casters = [
            scene.ray_caster(
                [subtree(scene.model, body) if excluded[0] else []],
                groups,
                max_distance,
                one_origin=one_origin,
            )
            for body in bodies
        ]

        def cast(origins: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            distances, normals = np.full(directions.shape[:-1], -1.0), np.zeros(directions.shape)
            for i in np.flatnonzero(self.casting):
                one = slice(i, i + 1)
                distances[one], normals[one] = casters[i].cast(origins[one], directions[one])
            return distances, normals

        return RayCaster(cast)

    def check_sensor(self, sensor: int) -> None:
        """Refuse all but gyroscope, accelerometer and velocimeter at a site of the drone."""
        model, kind = self.model, _SENSOR(self.model.sensor_type[sensor])
        site = model.sensor_objid[sensor]
        if kind not in INERTIAL or model.site_bodyid[site] != self._root:
            raise ValueError(
                f"sensor {model.sensor(sensor).name!r}: the state of a drone gives gyroscope, "
                f"accelerometer and velocimeter at its sites, not {kind.name}"
            )
        place, axes = model.site_pos[site], self._at_origin.data[0].site_xmat[site].reshape(3, 3)
        self._read[int(model.sensor_adr[sensor])] = lambda: self._motion.read(kind, place, axes)

    def poses(self, world: int) -> mujoco.MjData:
        """The scene, in which all drones are."""
        del world
        return self._scene.data[0]
