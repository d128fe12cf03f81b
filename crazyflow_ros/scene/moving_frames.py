"""Where the bodies, joints and cables of a world are that move, for those who show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.bodies import Bodies, needs_mujoco
from crazyflow_ros.scene.drone_bodies import drones_in
from crazyflow_ros.scene.frames import world_to_body, wxyz_to_xyzw
from crazyflow_ros.scene.mirror_state import compute_frames

_TAKEN = "map"  # the frame of the world
_PULLEY = -2  # in `MjData.wrap_obj`, between the branches of a tendon
_ONE_DOF = (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)


class Poses(NamedTuple):
    """Frames of K bodies in the world."""

    names: tuple[str, ...]
    """Names of the frames."""
    pos: np.ndarray
    """[m], shape (K, 3)."""
    quat: np.ndarray
    """Attitudes xyzw, shape (K, 4)."""


class BodyTwists(NamedTuple):
    """Velocities of K bodies, each in its own axes."""

    vel: np.ndarray
    """Of the origin of the frame [m/s], shape (K, 3)."""
    ang_vel: np.ndarray
    """[rad/s], shape (K, 3)."""


class Joints(NamedTuple):
    """State of K hinges [rad, rad/s, N m] and slides [m, m/s, N]."""

    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    """Of the actuators."""


class MovingFrames:
    """The bodies of a world that move, besides the drones. For one thread.

    The frame of a body has the body's name, without what a name of a frame cannot have. A body
    without a name is counted among the bodies that its parent carries.

    Args:
        model: Model of the mirror.

    Attributes:
        names: Names of the frames, (K,).
        of_bodies: These names by the number of the body.
        joint_names: Names of the hinges and slides that have names.
        cable_rgba: Colours of the cables from 0 to 1, one for each segment, (S, 4).
        cable_width: Diameter of the thickest cable [m]; 0 without cables.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._drones = drones_in(model)
        self._is_drone = np.isin(model.body_rootid, [*self._drones])  # (nbody,), with their rotors
        rotors = self._is_drone[model.jnt_bodyid] & (model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)
        self._is_driven = model.nu > rotors.sum()
        self.of_bodies: dict[int, str] = {}
        joints: list[int] = []
        tendons: list[int] = []
        if needs_mujoco(model):
            self._data = mujoco.MjData(model)
            self.of_bodies = self._named(self._moving())
            joints = [
                joint
                for joint in np.flatnonzero(np.isin(model.jnt_type, _ONE_DOF)).tolist()
                if model.jnt_bodyid[joint] in self.of_bodies and model.joint(joint).name
            ]
            tendons = np.flatnonzero(model.tendon_rgba[:, 3] > 0).tolist()
        self.names = tuple(self.of_bodies.values())
        self.joint_names = tuple(model.joint(joint).name for joint in joints)
        self._bodies, self._joints = np.array([*self.of_bodies], int), np.array(joints, int)
        self._roots = model.body_rootid[self._bodies]
        self._tendons = [t for t in tendons if self._is_spatial(t)]
        self._sizes = [2 * int(model.tendon_num[tendon]) - 1 for tendon in self._tendons]
        self.cable_rgba = np.repeat(model.tendon_rgba[self._tendons], self._sizes, axis=0)
        self.cable_width = 2 * float(model.tendon_width[self._tendons].max(initial=0.0))
        self._shown: Bodies | None = None

    def are_of(self, bodies: Bodies) -> bool:
        """Return whether a state is of this model."""
        return bodies.is_of(self._model)

    def poses(self, bodies: Bodies) -> Poses:
        """Return the frames of the bodies in a state of this model."""
        data = self._at(bodies)
        return Poses(self.names, data.xpos[self._bodies], wxyz_to_xyzw(data.xquat[self._bodies]))

    def twists(self, bodies: Bodies) -> BodyTwists:
        """Return the velocities of the bodies in a state of this model."""
        data = self._at(bodies)
        mujoco.mj_comVel(self._model, data)
        ang_vel, vel = np.split(data.cvel[self._bodies], 2, axis=1)
        vel = vel + np.cross(ang_vel, data.xpos[self._bodies] - data.subtree_com[self._roots])
        quat = wxyz_to_xyzw(data.xquat[self._bodies])
        return BodyTwists(world_to_body(quat, vel), world_to_body(quat, ang_vel))

    def joints(self, bodies: Bodies) -> Joints:
        """Return the state of the named hinges and slides."""
        model, data = self._model, self._at(bodies)
        dofs = model.jnt_dofadr[self._joints]
        if self._is_driven:
            mujoco.mj_transmission(model, data)
            mujoco.mj_fwdVelocity(model, data)
            mujoco.mj_fwdActuation(model, data)
        return Joints(
            data.qpos[model.jnt_qposadr[self._joints]],
            data.qvel[dofs],
            data.qfrc_actuator[dofs],
        )

    def cables(self, bodies: Bodies) -> np.ndarray:
        """Return the spatial tendons as segments in the world [m], (S, 2, 3).

        There are always as many, those that are not needed have no length.
        """
        data = self._at(bodies)
        segments = np.zeros((sum(self._sizes), 2, 3))
        places, kinds, start = data.wrap_xpos.reshape(-1, 3), data.wrap_obj.ravel(), 0
        for tendon, size in zip(self._tendons, self._sizes):
            first, n = int(data.ten_wrapadr[tendon]), int(data.ten_wrapnum[tendon])
            numbers = np.arange(first, first + max(n - 1, 0))
            numbers = numbers[(kinds[numbers] != _PULLEY) & (kinds[numbers + 1] != _PULLEY)]
            own = segments[start : start + size]
            own[:] = places[first]
            own[: len(numbers)] = np.stack([places[numbers], places[numbers + 1]], axis=1)
            start += size
        return segments

    def _at(self, bodies: Bodies) -> mujoco.MjData:
        """Return data with all frames and tendons of a state."""
        if bodies is not self._shown:
            bodies.write(self._model, self._data)
            compute_frames(self._model, self._data)
            self._shown = bodies
        return self._data

    def _moving(self) -> Sequence[int]:
        """Return the bodies that are neither drones nor fixed to the world."""
        model = self._model
        moves = (model.body_weldid > 0) | (model.body_mocapid[model.body_rootid] >= 0)
        numbers: list[int] = np.flatnonzero(moves & ~self._is_drone).tolist()
        return numbers

    def _named(self, bodies: Sequence[int]) -> dict[int, str]:
        """Return the names of frames, all different and none that of a frame of a drone."""
        model, counts = self._model, dict[int, int]()
        frames: dict[int, str] = {}
        of_drones = tuple(f"{drone}/" for drone in self._drones.values())
        taken = {_TAKEN, *self._drones.values()}
        for body in bodies:
            name = _valid(model.body(body).name)
            parent = int(model.body_parentid[body])
            number = counts[parent] = counts.get(parent, -1) + 1
            if not name:
                above = frames.get(parent) or _valid(model.body(parent).name if parent else "")
                name = f"{above}/body{number}".lstrip("/")
            if name.startswith(of_drones):
                name = name.replace("/", "_")
            while name in taken:
                name += "_"
            taken.add(name)
            frames[body] = name
        return frames

    def _is_spatial(self, tendon: int) -> bool:
        """Return whether a tendon has a path in space."""
        return bool(
            self._model.wrap_type[self._model.tendon_adr[tendon]] != mujoco.mjtWrap.mjWRAP_JOINT
        )


def _valid(name: str) -> str:
    return re.sub(r"[^\w/.:-]+", "_", name, flags=re.ASCII).strip("/")
