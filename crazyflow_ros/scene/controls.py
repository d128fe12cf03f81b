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


class ControlStage:
    """Holds the latest control inputs in MuJoCo's form for the physics. Not thread-safe."""

    def __init__(self, model: mujoco.MjModel, index: DroneIndex) -> None:
        self._model = model
        self._index = index
        self._bodies = np.array([np.flatnonzero(model.body_rootid == root) for root in index.body])
        self._free = index.qvel[:, :6]  # in qfrc_applied
        self._low, self._high = np.moveaxis(model.actuator_ctrlrange[index.ctrl], -1, 0)
        self._fixed = np.ones(model.nv, dtype=bool)
        self._fixed[self._free] = False
        self._staged: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @property
    def is_filled(self) -> bool:
        """Whether there are inputs to take."""
        return self._staged is not None

    def put(self, source: mujoco.MjData) -> None:
        """Stage ctrl, qfrc_applied and xfrc_applied; they replace earlier inputs.

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
        self._staged = (ctrl, qfrc, xfrc)

    def take(self, data: mujoco.MjData) -> Controls | None:
        """Return the staged inputs once; `data` gives the present attitude."""
        if self._staged is None:
            return None
        ctrl, qfrc, xfrc = self._staged
        self._staged = None
        body = self._index.body
        # The generalised force of a free joint: force in world axes, and torque in body
        # axes at the body's origin, which is the drone's centre of mass.
        wrench = qfrc[self._free]
        rotation = data.xmat[body].reshape(-1, 3, 3)
        wrench[:, 3:] = (rotation @ wrench[:, 3:, None])[..., 0]
        # xfrc_applied acts at the centre of mass of each body, in world axes.
        if xfrc.any():
            arms = data.xipos[self._bodies] - data.xpos[body][:, None]
            loads = xfrc[self._bodies]
            wrench += loads.sum(axis=1)
            wrench[:, 3:] += np.cross(arms, loads[..., :3]).sum(axis=1)
        return Controls(ctrl[self._index.ctrl].clip(self._low, self._high), wrench)

    def clear(self) -> None:
        """Discard the staged inputs."""
        self._staged = None

    def _not_finite(self, ctrl: np.ndarray, qfrc: np.ndarray, xfrc: np.ndarray) -> Iterator[str]:
        model = self._model
        for i in np.flatnonzero(~np.isfinite(ctrl)):
            yield f"ctrl of {model.actuator(i).name}"
        for i in np.unique(model.dof_jntid[~np.isfinite(qfrc)]):
            yield f"qfrc_applied of {model.joint(i).name}"
        for i in np.flatnonzero(~np.isfinite(xfrc).all(axis=1)):
            yield f"xfrc_applied of {model.body(i).name}"
