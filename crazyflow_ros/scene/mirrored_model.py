"""The model of the mirror, with the indices of drones and sensors."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from crazyflow_ros.scene.controls import ControlStage
from crazyflow_ros.scene.frames import wxyz_to_xyzw
from crazyflow_ros.scene.rangefinder import Rangefinder
from crazyflow_ros.scene.state import DroneIndex, MirrorState

_DRONE = "drone:"  # prefix of the bodies of drones


class MirroredModel:
    """Indices of drones and sensors in a model. Built before the mirror switches to the model.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`.
        names: Names of the drones; they give the order of all arrays.

    Attributes:
        model: The model.
        names: The names.
        index: Indices of the drones' state.
        stage: Stage of control inputs.
        sensors: Slice of sensordata of each sensor.
        orientation: Indices in sensordata of the drones' orientations, (M, 4), xyzw.
        gyro: The same of the gyros, (M, 3).
        accelerometer: The same of the accelerometers, (M, 3).
        rangefinder: Range sensors of all drones.

    Raises:
        ValueError: The model lacks a part of a drone, or another body has the name of one.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self.model, self.names = model, tuple(names)
        self.index = DroneIndex(model, names)
        self._check_bodies()
        self.stage = ControlStage(model, self.index)
        self.sensors = {
            model.sensor(i).name: slice(adr, adr + dim)
            for i, (adr, dim) in enumerate(zip(model.sensor_adr, model.sensor_dim, strict=True))
        }
        self.orientation = wxyz_to_xyzw(self._of_drones("orientation"))
        self.gyro = self._of_drones("gyro")
        self.accelerometer = self._of_drones("accelerometer")
        self.rangefinder = Rangefinder(model, names)

    def _check_bodies(self) -> None:
        """Refuse bodies that would be neither drones nor scenery."""
        drones = {f"{_DRONE}{name}" for name in self.names}
        for i in np.flatnonzero(self.model.body_parentid == 0).tolist():
            name = self.model.body(i).name
            if name.startswith(_DRONE) and name not in drones:
                rule = f"only drones may have names that begin with {_DRONE!r}"
                raise ValueError(f"{rule}, the scene has a body {name!r}")

    def _of_drones(self, kind: str) -> np.ndarray:
        """Return the indices in sensordata of a sensor of each drone, shape (M, dim)."""
        missing = [name for name in self.names if f"{kind}:{name}" not in self.sensors]
        if missing:
            raise ValueError(f"the model has no sensor {kind!r} of {', '.join(missing)}")
        slices = [self.sensors[f"{kind}:{name}"] for name in self.names]
        return np.array([np.arange(s.start, s.stop) for s in slices])

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
