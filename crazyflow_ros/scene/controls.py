"""Control inputs for the physics: rotor speeds and external forces, in MuJoCo's arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.mirror_state import DroneIndex

_FORCE, _TORQUE, _FIRST_BODY = 0, 1, 2  # parts of a drone, see `Load`


class Load(NamedTuple):
    """A force and a torque on a part of a drone."""

    drone: str
    part: int
    """Where MuJoCo stores the load: 0 and 1 are force and torque on the free joint, 2 and above are
    the bodies of the drone."""
    force: np.ndarray
    """(3,) N."""
    torque: np.ndarray
    """(3,) N m, in addition to the torque of the force."""
    in_body: bool
    """Whether force and torque are in the drone's axes and turn with it, or in the world's."""
    point: np.ndarray
    """(3,) where the force acts [m], from the centre of mass in the axes of the drone."""

    def wrench(self, rotation: np.ndarray) -> np.ndarray:
        """Return force and torque at the centre of mass, world axes, (6,).

        Args:
            rotation: (3, 3) attitude of the drone.
        """
        loads = np.stack((self.force, self.torque))
        force, torque = loads @ rotation.T if self.in_body else loads
        return np.concatenate((force, torque + np.cross(rotation @ self.point, force)))


class Controls(NamedTuple):
    """Control inputs of the M drones."""

    rotor_speed: np.ndarray
    """Rotor speed commands [rad/s], within the actuators' range, shape (M, n)."""
    loads: Sequence[Load]
    """The external forces and torques."""


class ControlReader:
    """Reads control inputs for the drones from MuJoCo's data, and writes them there."""

    def __init__(self, index: DroneIndex) -> None:
        self._index, self._model = index, index.model
        self._bodies = np.array(
            [np.flatnonzero(index.model.body_rootid == root) for root in index.body]
        )
        self._free = index.qvel[:, :6]  # in qfrc_applied
        self._low, self._high = np.moveaxis(index.model.actuator_ctrlrange[index.ctrl], -1, 0)
        self._fixed = np.ones(index.model.nv, dtype=bool)
        self._fixed[self._free] = False
        self._others = np.ones(index.model.nu, dtype=bool)
        self._others[index.ctrl] = False
        self._scenery = index.model.body_weldid > 0
        self._scenery[self._bodies] = False  # the rest has joints, which the physics lacks
        frames = mujoco.MjData(index.model)
        mujoco.mj_kinematics(index.model, frames)
        # What acts on a drone's own body acts on the drone: its rotors are bodies of their own.
        arms = frames.xipos[self._bodies] - frames.xpos[index.body][:, None]
        self._arms = arms @ frames.xmat[index.body].reshape(-1, 3, 3)
        self._arms[self._bodies == index.body[:, None]] = 0.0

    def read(self, source: mujoco.MjData) -> Controls:
        """Read ctrl, qfrc_applied and xfrc_applied.

        Raises:
            ValueError: An entry is not finite, or acts on a part of the world that nothing moves.
        """
        ctrl, qfrc, xfrc = source.ctrl, source.qfrc_applied, source.xfrc_applied
        not_finite = (~np.isfinite(ctrl), ~np.isfinite(qfrc), ~np.isfinite(xfrc).all(axis=1))
        if bad := ", ".join(self._named(*not_finite)):
            raise ValueError(f"{bad} must be finite")
        idle = (self._others & (ctrl != 0), self._fixed & (qfrc != 0))
        if bad := ", ".join(self._named(*idle, self._scenery & xfrc.any(axis=1))):
            raise ValueError(
                f"{bad} must be zero: only rotors follow ctrl, and only free joints and bodies of "
                "drones take forces"
            )
        speeds = ctrl[self._index.ctrl].clip(self._low, self._high)
        return Controls(speeds, list(self.loads(source)))

    def write(self, controls: Controls, destination: mujoco.MjData) -> None:
        """Write ctrl, qfrc_applied and xfrc_applied, which have to be zero before."""
        destination.ctrl[self._index.ctrl] = controls.rotor_speed
        for load in controls.loads:
            row, body = self._index.row(load.drone), load.part - _FIRST_BODY
            if body >= 0:
                both = np.concatenate((load.force, load.torque))
                destination.xfrc_applied[self._bodies[row, body]] = both
            elif load.part == _FORCE:
                destination.qfrc_applied[self._free[row, :3]] = load.force
            else:
                destination.qfrc_applied[self._free[row, 3:]] = load.torque

    def loads(self, source: mujoco.MjData) -> Iterator[Load]:
        """Yield the loads on drones that are not zero.

        The generalised force of a free joint has its force in axes of the world, and its torque in
        those of the body, at the body's origin, which is the drone's centre of mass. xfrc_applied
        acts at the centre of mass of each body, in axes of the world; that of a drone's own body
        acts at the centre of mass of the whole drone.
        """
        names, none = self._index.names, np.zeros(3)
        qfrc, xfrc = source.qfrc_applied[self._free], source.xfrc_applied[self._bodies]
        for row in np.flatnonzero(qfrc[:, :3].any(axis=1)).tolist():
            yield Load(names[row], _FORCE, qfrc[row, :3], none, False, none)
        for row in np.flatnonzero(qfrc[:, 3:].any(axis=1)).tolist():
            yield Load(names[row], _TORQUE, none, qfrc[row, 3:], True, none)
        for row, body in np.argwhere(xfrc.any(axis=2)).tolist():
            force, torque = np.split(xfrc[row, body], 2)
            arm = self._arms[row, body]
            yield Load(names[row], _FIRST_BODY + body, force, torque, False, arm)

    def _named(self, ctrl: np.ndarray, qfrc: np.ndarray, xfrc: np.ndarray) -> Iterator[str]:
        """Yield names of the entries for which the masks are true."""
        model = self._model
        for i in np.flatnonzero(ctrl):
            yield f"ctrl of {model.actuator(i).name}"
        for i in np.unique(model.dof_jntid[qfrc]):
            yield f"qfrc_applied of {model.joint(i).name}"
        for i in np.flatnonzero(xfrc):
            yield f"xfrc_applied of {model.body(i).name}"
