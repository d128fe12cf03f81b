"""Control inputs staged for the physics: rotor speeds and external wrenches."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.state import DroneIndex


class Controls(NamedTuple):
    """Control inputs of the M drones."""

    rotor_speed: np.ndarray
    """Rotor speed commands [rad/s], within the actuators' range, shape (M, 4)."""
    wrench: np.ndarray
    """External force [N] and torque [N m] at the centre of mass, world axes, shape (M, 6)."""


class ControlStage:
    """The latest control inputs in MuJoCo's form, until the physics takes them. Not thread-safe."""

    def __init__(self, model: mujoco.MjModel, index: DroneIndex) -> None:
        self._model = model
        self._index = index
        self._bodies = np.array([np.flatnonzero(model.body_rootid == root) for root in index.body])
        self._driven = index.qvel[:, :6]
        self._staged: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def put(self, source: mujoco.MjData) -> None:
        """Stage ctrl, qfrc_applied and xfrc_applied, in place of what was staged.

        Raises:
            ValueError: Some entry isn't finite, or acts where the physics has no freedom.
        """
        model = self._model
        ctrl, qfrc, xfrc = (
            source.ctrl.copy(),
            source.qfrc_applied.copy(),
            source.xfrc_applied.copy(),
        )
        bad = [f"ctrl of {model.actuator(i).name}" for i in np.flatnonzero(~np.isfinite(ctrl))]
        bad += [
            f"qfrc_applied of {model.joint(j).name}"
            for j in np.unique(model.dof_jntid[~np.isfinite(qfrc)])
        ]
        bad += [
            f"xfrc_applied of {model.body(b).name}"
            for b in np.flatnonzero(~np.isfinite(xfrc).all(axis=1))
        ]
        if bad:
            raise ValueError(f"not finite: {', '.join(bad)}")
        beyond = qfrc != 0.0
        beyond[self._driven] = False
        if beyond.any():
            names = {model.joint(j).name for j in model.dof_jntid[beyond]}
            raise ValueError(
                f"qfrc_applied of {', '.join(sorted(names))}: forces act on the drones' free "
                "joints only, rotors follow ctrl"
            )
        self._staged = (ctrl, qfrc, xfrc)

    def take(self, data: mujoco.MjData) -> Controls | None:
        """The staged inputs, once; `data` gives the present attitude."""
        if self._staged is None:
            return None
        ctrl, qfrc, xfrc = self._staged
        self._staged = None
        index = self._index
        low, high = np.moveaxis(self._model.actuator_ctrlrange[index.ctrl], -1, 0)
        # A free joint's generalised force: force in world axes and torque in body axes at the
        # body's origin, which is the drone's centre of mass.
        wrench = qfrc[self._driven]
        rotation = data.xmat[index.body].reshape(-1, 3, 3)
        wrench[:, 3:] = np.einsum("mij,mj->mi", rotation, wrench[:, 3:])
        # xfrc_applied acts at the centre of mass of each body, in world axes.
        forces = xfrc[self._bodies]
        arms = data.xipos[self._bodies] - data.xpos[index.body][:, None]
        wrench += forces.sum(axis=1)
        wrench[:, 3:] += np.cross(arms, forces[..., :3]).sum(axis=1)
        return Controls(np.clip(ctrl[index.ctrl], low, high), wrench)

    def clear(self) -> None:
        """Forget what is staged."""
        self._staged = None
