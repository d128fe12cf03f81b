"""The model of a mirror, with the indices, sensors and readers that are built from it once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.bodies import Bodies, needs_mujoco
from crazyflow_ros.scene.controls import ControlReader
from crazyflow_ros.scene.drone_bodies import DRONE
from crazyflow_ros.scene.frames import wxyz_to_xyzw
from crazyflow_ros.scene.mirror_state import DroneIndex, MirrorState
from crazyflow_ros.scene.rays import Rangefinder


class BodyMotion(NamedTuple):
    """Motion of a body of the world, in axes of the world."""

    name: str
    pos: np.ndarray
    """Position of its frame [m], (3,)."""
    quat: np.ndarray
    """Attitude xyzw, (4,)."""
    vel: np.ndarray
    """Velocity of the frame's origin [m/s], (3,)."""
    ang_vel: np.ndarray
    """Angular velocity [rad/s], (3,)."""
    is_free: bool
    """Whether the body has a free joint."""


class MirroredModel:
    """A model for `Mirror.use`. Building it takes long, and may be done in any thread.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`; not modified.
        names: Names of the drones; they give the order of all arrays.

    Raises:
        ValueError: The model lacks a part of a drone, or another body has the name of one.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self.index = DroneIndex(model, names)
        _check_bodies(model, names)
        self._moves = needs_mujoco(model)
        self.rangefinder = Rangefinder(model, names)
        self.data = data = mujoco.MjData(model)
        """Scratch data of the physics thread."""
        self._entities = [
            i
            for i in np.flatnonzero(model.body_parentid == 0)[1:].tolist()
            if (name := model.body(i).name) and not name.startswith(DRONE)
        ]
        self._shown, self._lock = mujoco.MjData(model), threading.Lock()
        mujoco.mj_kinematics(model, self._shown)
        drones = self.index.read(data.qpos, data.qvel, data.qacc, data.time)
        self.initial = replace(drones, bodies=self.bodies(data))

    def bodies(self, data: mujoco.MjData) -> Bodies | None:
        """Return the state of all bodies in `data`, if any of them moves besides the drones."""
        return Bodies.of(self.index.model, data) if self._moves else None

    @cached_property
    def controls(self) -> ControlReader:
        """Reader of control inputs."""
        return ControlReader(self.index)

    def kinematics(self, state: MirrorState) -> mujoco.MjData:
        """Return data with the frames of bodies, geoms and sites in a state. Physics thread only.

        They are valid until the next call.
        """
        self.index.write(state, self.data)
        mujoco.mj_kinematics(self.index.model, self.data)
        return self.data

    def motions(self, state: MirrorState) -> list[BodyMotion]:
        """Return the motion of each body directly below the world that is not a drone. Any thread.

        Args:
            state: A state of this model.
        """
        model, data = self.index.model, self._shown
        with self._lock:
            if self._moves:
                self.index.show(state, data)
                mujoco.mj_comVel(model, data)
            return [self._motion(body) for body in self._entities]

    def _motion(self, body: int) -> BodyMotion:
        model, data, velocity = self.index.model, self._shown, np.zeros(6)
        if self._moves:
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
        joint = int(model.body_jntadr[body])
        return BodyMotion(
            model.body(body).name,
            data.xpos[body].copy(),
            wxyz_to_xyzw(data.xquat[body]),
            velocity[3:],
            velocity[:3],
            joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE,
        )


def _check_bodies(model: mujoco.MjModel, names: Sequence[str]) -> None:
    """Refuse bodies that would be neither drones nor scenery."""
    drones = {f"{DRONE}{name}" for name in names}
    for i in np.flatnonzero(model.body_parentid == 0).tolist():
        name = model.body(i).name
        if name.startswith(DRONE) and name not in drones:
            rule = f"only drones may have names that begin with {DRONE!r}"
            raise ValueError(f"{rule}, the scene has a body {name!r}")
