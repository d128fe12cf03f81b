"""The model of a mirror, with the indices, sensors and readers that are built from it once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import mujoco
import numpy as np

from crazyflow_ros.scene.bodies import Bodies, are_moving
from crazyflow_ros.scene.controls import ControlReader
from crazyflow_ros.scene.mirror_state import DroneIndex, MirrorState
from crazyflow_ros.scene.rays import Rangefinder

_DRONE = "drone:"  # prefix of the bodies of drones


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
        self._moves = are_moving(model, len(names))
        self.rangefinder = Rangefinder(model, names)
        self.data = data = mujoco.MjData(model)
        """Scratch data of the physics thread."""
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


def _check_bodies(model: mujoco.MjModel, names: Sequence[str]) -> None:
    """Refuse bodies that would be neither drones nor scenery."""
    drones = {f"{_DRONE}{name}" for name in names}
    for i in np.flatnonzero(model.body_parentid == 0).tolist():
        name = model.body(i).name
        if name.startswith(_DRONE) and name not in drones:
            rule = f"only drones may have names that begin with {_DRONE!r}"
            raise ValueError(f"{rule}, the scene has a body {name!r}")
