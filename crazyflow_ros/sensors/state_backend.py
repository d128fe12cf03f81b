"""Sensors that read from the state of drones: each drone of a scene is a world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import mujoco
import numpy as np

from crazyflow_ros.scene import MirrorState
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.rays import FrameRays
from crazyflow_ros.sensors.backend import Array, Limits, RayCaster
from crazyflow_ros.sensors.mujoco_backend import MujocoBackend
from crazyflow_ros.sensors.objects import ObjRef, subtree

_SENSOR = mujoco.mjtSensor
_INERTIAL = (_SENSOR.mjSENS_GYRO, _SENSOR.mjSENS_VELOCIMETER, _SENSOR.mjSENS_ACCELEROMETER)


class RigidMotion(NamedTuple):
    """Motion of B bodies; arrays of NumPy or of JAX."""

    axes: Array
    """Axes of the bodies in the world as columns, shape (B, 3, 3)."""
    vel: Array
    """Velocity of the origin in the world [m/s], shape (B, 3)."""
    ang_vel: Array
    """Angular velocity in body axes [rad/s], shape (B, 3)."""
    acc: Array
    """Acceleration of the origin in the world [m/s^2], shape (B, 3)."""
    ang_acc: Array
    """Time derivative of `ang_vel` [rad/s^2], shape (B, 3)."""
    gravity: Array
    """Gravity in world axes [m/s^2], shape (3,) or (B, 3)."""


class InertialSensor:
    """MuJoCo's gyroscope, velocimeter or accelerometer on a rigid body, in closed form.

    Args:
        model: A model with the sensor.
        sensor: Its id; see `of`.
    """

    def __init__(self, model: mujoco.MjModel, sensor: int) -> None:
        site = model.sensor_objid[sensor]
        self._kind = _SENSOR(model.sensor_type[sensor])
        self._place, self._cutoff = model.site_pos[site].copy(), float(model.sensor_cutoff[sensor])
        mujoco.mju_quat2Mat(axes := np.zeros(9), model.site_quat[site])
        self._axes = axes.reshape(3, 3)
        x, y, z = self._place
        self._arm = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])  # v @ arm: v x place

    @classmethod
    def of(cls, model: mujoco.MjModel, sensor: int, body: int) -> InertialSensor | None:
        """Return a sensor of a model, None if it is of another type or not on this body."""
        is_inertial = _SENSOR(model.sensor_type[sensor]) in _INERTIAL
        on_body = is_inertial and model.site_bodyid[model.sensor_objid[sensor]] == body
        return cls(model, sensor) if on_body else None

    def read(self, motion: RigidMotion) -> Array:
        """Return the readings, shape (B, 3)."""
        turn, place = motion.ang_vel, self._place
        if self._kind == _SENSOR.mjSENS_GYRO:
            reading = turn
        elif self._kind == _SENSOR.mjSENS_VELOCIMETER:
            reading = (motion.vel[:, None] @ motion.axes)[:, 0] + turn @ self._arm
        else:
            spin = turn * (turn @ place)[:, None] - place * (turn * turn).sum(axis=1)[:, None]
            force = ((motion.acc - motion.gravity)[:, None] @ motion.axes)[:, 0]
            reading = force + motion.ang_acc @ self._arm + spin
        reading = reading @ self._axes
        return reading.clip(-self._cutoff, self._cutoff) if self._cutoff else reading


class StateBackend:
    """M drones of one kind that carry the same sensors.

    Readings at sites are computed from the drones' state in closed form, with the values of
    MuJoCo's own sensors: for all drones at once, and for several moments in a row. Arrays then have
    T * M rows, those of a moment side by side. Rays hit the scene of their moment.

    Args:
        model: One such drone alone, called `drone`, with the elements that its sensors add.
        drones: Names of the drones in the scene.
        scene: All drones and what is around them. Only needed for rays.
        drone: Name of the drone in `model`.
        put: Moves all frames of the scene to a state; by default, the owner of the scene's data
            does this beforehand.
    """

    xp = np
    contact_forces = False

    def __init__(
        self,
        model: mujoco.MjModel,
        drones: Sequence[str],
        scene: MujocoBackend,
        drone: str = "drone",
        put: Callable[[MirrorState], None] = lambda _: None,
    ) -> None:
        self.model, self._scene, self._drones = model, scene, tuple(drones)
        self._put = put
        self._root = model.body(f"drone:{drone}").id
        self._gravity = scene.model.opt.gravity
        data = mujoco.MjData(model)
        start = model.joint(f"free:{drone}").qposadr[0]
        data.qpos[start : start + 7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)
        self._at_origin = MujocoBackend(model, data)
        self._frames: dict[ObjRef, tuple[np.ndarray, np.ndarray]] = {}  # there
        self._inertial: dict[int, InertialSensor] = {}
        self.casting = np.ones(len(self._drones), bool)
        """Which drones cast rays, shape (M,); rays of the others miss, and cost nothing."""

    @property
    def n_worlds(self) -> int:
        """Number of drones, M."""
        return len(self._drones)

    @property
    def keys(self) -> list[tuple[int, ...]]:
        """Names of the drones."""
        return [tuple(name.encode()) for name in self._drones]

    def show(self, states: Sequence[MirrorState], rows: Sequence[int]) -> None:
        """Switch to the states of T moments; `rows` are the indices of the drones."""
        in_order = len(rows) == len(states[0].pos) and list(rows) == list(range(len(rows)))
        self._states, self._rows = states, None if in_order else rows
        self._pos, self._axes = self._all_of("pos"), rotation_matrix(self._all_of("quat"))
        self._has_battery = getattr(states[0], "battery", None) is not None
        self._readings: np.ndarray | None = None

    def _all_of(self, field: str) -> np.ndarray:
        """Return a field of all moments, shape (T * M, n), not to be written to."""
        arrays: list[np.ndarray] = [getattr(state, field) for state in self._states]
        values = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        if self._rows is None:
            return values
        values = values.reshape(len(arrays), -1, values.shape[1])[:, self._rows]
        return values.reshape(-1, values.shape[2])

    def sensordata(self) -> np.ndarray:
        """Return readings (T * M, nsensordata) of checked sensors; those of others are zero."""
        if self._readings is None:
            self._readings = np.zeros((len(self._pos), self.model.nsensordata))
            vel, ang_vel, acc, ang_acc = map(self._all_of, ("vel", "ang_vel", "acc", "ang_acc"))
            motion = RigidMotion(self._axes, vel, ang_vel, acc, ang_acc, self._gravity)
            for start, sensor in self._inertial.items():
                self._readings[:, start : start + 3] = sensor.read(motion)
        return self._readings.copy()

    def frame(self, ref: ObjRef) -> tuple[np.ndarray, np.ndarray]:
        """Return position (T * M, 3) and axes (T * M, 3, 3); rotors are taken to stand still."""
        if ref not in self._frames:
            self._frames[ref] = self._at_origin.frame(ref)
        pos, axes = self._frames[ref]
        return self._pos + self._axes @ pos[0], self._axes @ axes[0]

    def batteries(self) -> np.ndarray:
        """Return voltage [V], current [A] and drawn charge [A h] of batteries, (T * M, 3).

        Raises:
            ValueError: The drones have no batteries.
        """
        if self._has_battery:
            return self._all_of("battery").copy()
        raise ValueError("the drones have no batteries: see SimulationConfig.battery")

    def _refuse(self, *_: Any) -> NoReturn:
        """Refuse pictures and contacts: they depend on the scene, not only on the drones' state.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("the state of drones does not contain what is around them")

    geoms = motions = contacts = _refuse

    def ray_caster(
        self,
        excluded: Sequence[Sequence[int]],
        groups: np.ndarray,
        limits: Limits,
        *,
        one_origin: bool,
    ) -> RayCaster:
        """Prepare to cast rays of one frame on each drone, see `Backend`.

        Raises:
            ValueError: The rays are of several frames.
        """
        if len(excluded) != 1:
            raise ValueError(f"the rays must have one frame on the drone, got {len(excluded)}")
        model, (data,) = self._scene.model, self._scene.data
        bodies = [model.body(f"drone:{name}").id for name in self._drones]
        passed = [subtree(model, body) if excluded[0] else [] for body in bodies]
        rays = FrameRays(model, passed, groups, *limits(model))

        def cast(origins: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            distances, normals = np.full(directions.shape[:-1], -1.0), np.zeros(directions.shape)
            origins, casting = np.broadcast_to(origins, directions.shape), self.casting
            drones = np.flatnonzero(casting)
            for moment, state in enumerate(self._states if drones.size else ()):
                rows = drones + moment * len(casting)
                self._put(state)
                distances[rows, 0], normals[rows, 0], _ = rays.cast(
                    data, origins[rows, 0], directions[rows, 0], drones, one_origin=one_origin
                )
            return distances, normals

        return RayCaster(cast)

    def check_sensor(self, sensor: int) -> None:
        """Refuse all but gyroscope, accelerometer and velocimeter at a site of the drone."""
        model = self.model
        found = InertialSensor.of(model, sensor, self._root)
        if found is None:
            raise ValueError(
                f"sensor {model.sensor(sensor).name!r}: the state of a drone gives gyroscope, "
                "accelerometer and velocimeter at its sites, not "
                f"{_SENSOR(model.sensor_type[sensor]).name}"
            )
        self._inertial[int(model.sensor_adr[sensor])] = found

    def poses(self, world: int) -> mujoco.MjData:
        """Return the scene with all drones."""
        del world
        return self._scene.data[0]
