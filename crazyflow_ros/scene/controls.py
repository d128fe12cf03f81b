"""Control inputs for the physics: rotor speeds and external wrenches."""

from __future__ import annotations

from collections.abc import Iterator
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


class ControlReader:
    """Reads control inputs for the drones from MuJoCo's data."""

    def __init__(self, index: DroneIndex) -> None:
        self._index, self._model = index, index.model
        self._bodies = np.array(
            [np.flatnonzero(index.model.body_rootid == root) for root in index.body]
        )
        self._free = index.qvel[:, :6]  # in qfrc_applied
        self._low, self._high = np.moveaxis(index.model.actuator_ctrlrange[index.ctrl], -1, 0)
        self._fixed = np.ones(index.model.nv, dtype=bool)
        self._fixed[self._free] = False

    def read(self, source: mujoco.MjData, frames: mujoco.MjData) -> Controls:
        """Read ctrl, qfrc_applied and xfrc_applied of `source`.

        Args:
            source: Contains the inputs.
            frames: Contains the present poses of all bodies.

        Raises:
            ValueError: An entry is not finite, or acts on a degree of freedom that the physics
                lacks.
        """
        ctrl = source.ctrl.copy()
        qfrc = source.qfrc_applied.copy()
        xfrc = source.xfrc_applied.copy()
        if not all(np.isfinite(values).all() for values in (ctrl, qfrc, xfrc)):
            bad = ", ".join(self._not_finite(ctrl, qfrc, xfrc))
            raise ValueError(f"{bad} must be finite")
        if qfrc[self._fixed].any():
            joints = np.unique(self._model.dof_jntid[self._fixed & (qfrc != 0.0)])
            raise ValueError(
                f"qfrc_applied of {', '.join(self._model.joint(j).name for j in joints)} must be "
                "zero: only the free joints of drones take forces (rotors follow ctrl)"
            )
        body = self._index.body
        # The generalised force of a free joint: force in world axes, and torque in body
        # axes at the body's origin, which is the drone's centre of mass.
        wrench = qfrc[self._free]
        rotation = frames.xmat[body].reshape(-1, 3, 3)
        wrench[:, 3:] = (rotation @ wrench[:, 3:, None])[..., 0]
        # xfrc_applied acts at the centre of mass of each body, in world axes.
        if xfrc.any():
            arms = frames.xipos[self._bodies] - frames.xpos[body][:, None]
            loads = xfrc[self._bodies]
            wrench += loads.sum(axis=1)
            wrench[:, 3:] += np.cross(arms, loads[..., :3]).sum(axis=1)
        return Controls(ctrl[self._index.ctrl].clip(self._low, self._high), wrench)

    def _not_finite(self, ctrl: np.ndarray, qfrc: np.ndarray, xfrc: np.ndarray) -> Iterator[str]:
        model = self._model
        for i in np.flatnonzero(~np.isfinite(ctrl)):
            yield f"ctrl of {model.actuator(i).name}"
        for i in np.unique(model.dof_jntid[~np.isfinite(qfrc)]):
            yield f"qfrc_applied of {model.joint(i).name}"
        for i in np.flatnonzero(~np.isfinite(xfrc).all(axis=1)):
            yield f"xfrc_applied of {model.body(i).name}"
