"""State of all drones of one world, and its indices in MuJoCo's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np

from crazyflow_ros.scene.bodies import Bodies
from crazyflow_ros.scene.frames import wxyz_to_xyzw


@dataclass(frozen=True)
class MirrorState:
    """State of the M drones of one world at one instant, as NumPy arrays."""

    time_ns: int
    """Simulation time [ns]."""
    pos: np.ndarray
    """Centre of mass in the world [m], shape (M, 3)."""
    quat: np.ndarray
    """Attitude xyzw, shape (M, 4)."""
    vel: np.ndarray
    """Velocity in world axes [m/s], shape (M, 3)."""
    ang_vel: np.ndarray
    """Angular velocity in body axes [rad/s], shape (M, 3)."""
    acc: np.ndarray
    """Acceleration in world axes [m/s^2], shape (M, 3)."""
    ang_acc: np.ndarray
    """Time derivative of `ang_vel` [rad/s^2], shape (M, 3)."""
    rotor_angle: np.ndarray
    """Angles of the n rotor joints [rad], shape (M, n)."""
    rotor_vel: np.ndarray
    """Speeds of the rotor joints [rad/s], positive in flight, shape (M, n)."""
    rotor_command: np.ndarray | None = field(default=None, kw_only=True)
    """Commanded rotor speeds [rad/s], shape (M, n); None if unknown. When a simulation continues
    from a state, None leaves the commands as they are."""
    bodies: Bodies | None = field(default=None, kw_only=True)
    """State of the other bodies; None if none of them moves, or they stay as they are."""

    def valid(self) -> np.ndarray:
        """Return which drones have finite values and an attitude, shape (M,)."""
        arrays = [x for x in vars(self).values() if isinstance(x, np.ndarray)]
        return np.isfinite(np.hstack(arrays)).all(axis=1)


def _count(model: mujoco.MjModel, drone: str) -> int:
    """Return the number of rotors of a drone.

    Raises:
        KeyError: The model has no such drone.
    """
    body = model.body(f"drone:{drone}").id
    owners = model.body_parentid[model.jnt_bodyid]  # of the bodies that joints move
    names = {f"rotor{i}:{drone}" for i in range(model.njnt)}
    return sum(model.joint(int(i)).name in names for i in np.flatnonzero(owners == body))


class DroneIndex:
    """Indices of the drones' quantities in the arrays of a MuJoCo model, one row per drone.

    Args:
        model: Model from `build_spec(..., mocap=False)`.
        names: Names of the drones.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        try:
            rotors = range(_count(model, names[0]))
            free = [model.joint(f"free:{name}") for name in names]
            rotor = [[model.joint(f"rotor{i}:{name}") for i in rotors] for name in names]
            motor = [[model.actuator(f"rotor{i}:{name}").id for i in rotors] for name in names]
            body = [model.body(f"drone:{name}").id for name in names]
        except KeyError as error:
            raise ValueError(f"the model lacks a part of a drone: {error}") from None
        free_qpos = np.array([joint.qposadr[0] for joint in free])[:, None] + np.arange(7)
        free_dof = np.array([joint.dofadr[0] for joint in free])[:, None] + np.arange(6)
        rotor_qpos = np.array([[joint.qposadr[0] for joint in joints] for joints in rotor])
        rotor_dof = np.array([[joint.dofadr[0] for joint in joints] for joints in rotor])

        self.model, self.names, self.n_drones = model, tuple(names), len(names)
        self._rows = {name: i for i, name in enumerate(names)}
        self.body = np.array(body)
        """Ids of the drones' bodies, shape (M,)."""
        self.ctrl = np.array(motor)
        """Indices of the rotors' actuators in ctrl, shape (M, n)."""
        self.qpos = np.hstack([free_qpos[:, :3], wxyz_to_xyzw(free_qpos[:, 3:]), rotor_qpos])
        """Indices of position, attitude xyzw and rotor angles in qpos, shape (M, 7 + n)."""
        self.qvel = np.hstack([free_dof, rotor_dof])
        """Indices of velocity, angular velocity and rotor speeds in qvel, shape (M, 6 + n)."""

    def row(self, name: str) -> int:
        """Return the row of a drone."""
        return self._rows[name]

    def rows(self, names: Sequence[str] | None) -> slice | list[int]:
        """Return the rows of some drones, or of all."""
        return slice(None) if names is None else [self._rows[name] for name in names]

    def write(self, state: MirrorState, data: mujoco.MjData) -> None:
        """Write the state to qpos, qvel, qacc and time of `data`, without rotor accelerations."""
        if state.bodies is not None:
            state.bodies.write(self.model, data)
        data.time = state.time_ns / 1e9
        data.qpos[self.qpos] = np.concatenate((state.pos, state.quat, state.rotor_angle), axis=1)
        data.qvel[self.qvel] = np.concatenate((state.vel, state.ang_vel, state.rotor_vel), axis=1)
        data.qacc[self.qvel[:, :6]] = np.concatenate((state.acc, state.ang_acc), axis=1)

    def show(self, state: MirrorState, data: mujoco.MjData) -> None:
        """Write the state, and compute all frames."""
        self.write(state, data)
        compute_frames(self.model, data)

    def read(
        self, qpos: np.ndarray, qvel: np.ndarray, qacc: np.ndarray, time: float
    ) -> MirrorState:
        """Return the state in MuJoCo's arrays; `time` in s.

        A zero quaternion becomes NaN, see `valid`.
        """
        position, velocity = qpos[self.qpos], qvel[self.qvel]
        acceleration = qacc[self.qvel]
        quat = position[:, 3:7]
        norm = np.linalg.norm(quat, axis=1, keepdims=True)
        return MirrorState(
            time_ns=round(time * 1e9),
            pos=position[:, :3],
            quat=np.divide(quat, norm, where=norm > 0.0, out=np.full_like(quat, np.nan)),
            vel=velocity[:, :3],
            ang_vel=velocity[:, 3:6],
            acc=acceleration[:, :3],
            ang_acc=acceleration[:, 3:6],
            rotor_angle=position[:, 7:],
            rotor_vel=velocity[:, 6:],
        )

    def check_sizes(self, data: mujoco.MjData) -> None:
        """Check that data belong to this model.

        Raises:
            ValueError: A size differs.
        """
        given = (data.qpos.size, data.qvel.size, data.ctrl.size, len(data.xfrc_applied))
        model = self.model
        expected = (model.nq, model.nv, model.nu, model.nbody)
        if given != expected:
            raise ValueError(
                f"the data are of another model: nq, nv, nu, nbody must be {expected}, got {given}"
            )

    def checked(self, state: MirrorState) -> MirrorState:
        """Return the state if it is valid.

        Raises:
            ValueError: The state is invalid.
        """
        bad = ~state.valid()
        if bad.any():
            names = ", ".join(np.array(self.names)[bad])
            raise ValueError(f"{names}: states must be finite, and quaternions not zero")
        return state


def compute_frames(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Compute bodies, geoms, sites, cameras, lights, flexes and tendons from the positions."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)
    if model.nflex:
        mujoco.mj_flex(model, data)
    if model.ntendon:
        mujoco.mj_tendon(model, data)
