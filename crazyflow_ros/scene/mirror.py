"""The mirror: a C MuJoCo model and data of one world that follow the physics.

The physics thread leaves the state of the drones here; sensors, viewers and the hardware interface
read it. What follows from the state, frames and MuJoCo's sensors, is worked out when somebody
reads, for in most ticks nobody does: by the reader, in a second `MjData`, which is exchanged with
the first under the lock. So the lock is held only to copy, and never keeps the physics waiting.
Velocities and accelerations of the physics are written too, hence MuJoCo's own sensors are exact
without MuJoCo's dynamics.

The interface is that of `MujocoSimulation` of mujoco_ros2_control, with two differences: changes of
the state are handed to the physics thread, which owns it, and simulation time never jumps back.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import mujoco
import numpy as np

from crazyflow_ros.scene.controls import Controls
from crazyflow_ros.scene.frames import wxyz_to_xyzw
from crazyflow_ros.scene.lock import TimedLock
from crazyflow_ros.scene.mirrored_model import MirroredModel
from crazyflow_ros.scene.state import MirrorState

_TIMEOUT = 10.0  # s for a request to the physics thread

ResetCallback = Callable[[bool], None]
"""Called after a reset with `fill_initial_state`: False if a keyframe has set the state."""


class PhysicsRequests(Protocol):
    """Requests of the mirror to the physics thread; each future is done when the request is."""

    def set_state(self, state: MirrorState) -> Future[Any]:
        """Set the state of all drones between two ticks; time goes on, accelerations are unused."""

    def capture_initial_state(self) -> Future[Any]:
        """Make the current state the one that `reset` restores."""

    def reset(self) -> Future[Any]:
        """Reset all drones to the initial state, then call `Mirror.notify_reset(True)`."""

    def notify_reset(self) -> Future[Any]:
        """Call `Mirror.notify_reset(False)` between two ticks."""


class Imu(NamedTuple):
    """Readings of all IMUs at one instant."""

    orientation: np.ndarray
    """Attitude xyzw in the world, shape (M, 4)."""
    angular_velocity: np.ndarray
    """Angular velocity in sensor axes [rad/s], shape (M, 3)."""
    linear_acceleration: np.ndarray
    """Specific force in sensor axes [m/s^2], +g upwards at rest, shape (M, 3)."""


class MadeModel(NamedTuple):
    """A model with where in it is what, and data for readers and for what is being worked out."""

    mirrored: MirroredModel
    front: mujoco.MjData
    back: mujoco.MjData


class Mirror:
    """Copy of one world of the physics in MuJoCo, to be read from any thread.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`, kept as it is.
        names: Names of the drones; they give the order of all arrays.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self._mutex = TimedLock(prepare=self._work_out)  # guards the data in front
        self._working = threading.Lock()  # guards the data in the back, and is taken first
        self._latest: MirrorState | None = None
        self._shown: MirrorState | None = None
        self._reset_callback: ResetCallback | None = None
        self.requests: PhysicsRequests | None = None
        """The physics thread, set by whoever runs it."""
        self._mirrored, self._front, self._back = made_model(model, names)
        initial = self._front
        self.write(
            self._mirrored.index.read(initial.qpos, initial.qvel, initial.qacc, initial.time)
        )

    def use(self, made: MadeModel) -> MadeModel:
        """Mirror another model from the next `write` on. Physics thread only.

        Data of the model before are refused from now on; whoever has some sees by `model` that
        there is another one. What was staged is dropped.

        Args:
            made: By `made_model`, which takes long, for this mirror alone.

        Returns:
            What was used before. To free it takes long, too.
        """
        with self._working, self._mutex.unprepared():
            before = MadeModel(self._mirrored, self._front, self._back)
            self._mirrored, self._front, self._back = made
            self._shown = self._latest  # which is one of the drones before
        return before

    @property
    def model(self) -> mujoco.MjModel:
        """The model. Nobody may change it; `copy_physics_model` gives one to change."""
        return self._mirrored.model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the drones, in the order of all arrays."""
        return self._mirrored.names

    @property
    def mutex(self) -> TimedLock:
        """The lock. Holding it keeps several reads at the same instant."""
        return self._mutex

    @property
    def time_ns(self) -> int:
        """Simulation time of the mirrored state [ns]."""
        with self._mutex:
            return 0 if self._shown is None else self._shown.time_ns

    # For the physics thread.

    def write(self, state: MirrorState) -> None:
        """Mirror the state, which stays as it is from now on. Physics thread only."""
        self._latest = state

    def range(self) -> np.ndarray:
        """Readings of the drones' range sensors [m], shape (M,), see `Rangefinder.read`.

        Physics thread only: nobody exchanges the data until it writes, so that it needs no lock.
        """
        self._work_out()
        return self._mirrored.rangefinder.read(self._front)

    def staged_controls(self) -> Controls | None:
        """What `apply_control_data` staged since the last call. Physics thread only."""
        if not self._mirrored.stage.is_filled:
            return None
        with self._mutex:
            return self._mirrored.stage.take(self._front)

    def notify_reset(self, fill_initial_state: bool) -> None:
        """Drop staged controls and run the reset callback, under the lock."""
        with self._mutex:
            self._mirrored.stage.clear()
            if self._reset_callback is not None:
                self._reset_callback(fill_initial_state)

    def _work_out(self) -> None:
        """Have the data in front show the latest state."""
        with self._working:
            state = self._latest
            if state is None or state is self._shown:
                return
            model, data = self._mirrored.model, self._back
            self._mirrored.index.write(state, data)
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_camlight(model, data)
            mujoco.mj_comVel(model, data)
            mujoco.mj_sensorPos(model, data)
            mujoco.mj_subtreeVel(model, data)
            mujoco.mj_sensorVel(model, data)
            # Explicitly: the sensor stages call these two only once in the life of the data.
            mujoco.mj_rnePostConstraint(model, data)
            mujoco.mj_sensorAcc(model, data)
            with self._mutex.unprepared():
                self._front, self._back = data, self._front
                self._shown = state

    # For everyone.

    def read_sensor(self, name: str) -> np.ndarray:
        """Copy of the readings of one sensor of the model, for example "gyro:cf0"."""
        with self._mutex:
            if name not in self._mirrored.sensors:
                raise ValueError(
                    f"unknown sensor {name!r}, have {', '.join(self._mirrored.sensors)}"
                )
            return self._front.sensordata[self._mirrored.sensors[name]].copy()

    def imu(self) -> Imu:
        """Copy of the readings of all drones' IMUs."""
        with self._mutex:
            readings = self._front.sensordata
            return Imu(
                readings[self._mirrored.orientation],
                readings[self._mirrored.gyro],
                readings[self._mirrored.accelerometer],
            )

    def copy_physics_model(self) -> mujoco.MjModel:
        """Copy of the model."""
        return copy.copy(self._mirrored.model)

    def copy_physics_data(self, destination: mujoco.MjData | None = None) -> mujoco.MjData:
        """Copy of the data: state, accelerations, frames and sensors; made if not given."""
        while True:
            model = self._mirrored.model
            data = mujoco.MjData(model) if destination is None else destination
            with self._mutex:
                if destination is None and model is not self._mirrored.model:
                    continue  # it was exchanged meanwhile
                self._mirrored.check_sizes(data)
                mujoco.mj_copyData(data, self._mirrored.model, self._front)
                return data

    def apply_control_data(self, source: mujoco.MjData) -> None:
        """Stage ctrl, qfrc_applied and xfrc_applied of `source` for the physics; the latest wins.

        Raises:
            ValueError: Some entry isn't finite, or acts where the physics has no freedom; then
                nothing is staged.
        """
        with self._mutex:
            self._mirrored.check_sizes(source)
            self._mirrored.stage.put(source)

    def overwrite_physics_data(self, source: mujoco.MjData) -> None:
        """Let the physics go on from positions, velocities and rotors of `source`.

        Raises:
            ValueError: `source` is of another model, or isn't a state.
        """
        mirrored = self._mirrored
        mirrored.check_sizes(source)
        state = mirrored.index.read(source.qpos, source.qvel, source.qacc, source.time)
        self._physics().set_state(mirrored.checked(state)).result(_TIMEOUT)

    def apply_keyframe(self, name: str) -> bool:
        """Let the physics go on from a keyframe of the model, if there is one of this name."""
        state = self.keyframe(name)
        if state is None:
            return False
        self._physics().set_state(state).result(_TIMEOUT)
        return True

    def keyframe(self, name: str) -> MirrorState | None:
        """The state of the drones in a keyframe of the model, rotors included, if there is one.

        Raises:
            ValueError: It isn't a state.
        """
        mirrored = self._mirrored
        try:
            key = mirrored.model.key(name)
        except KeyError:
            return None
        zeros = np.zeros(mirrored.model.nv)
        return mirrored.checked(mirrored.index.read(key.qpos, key.qvel, zeros, key.time[0]))

    def body_poses(self, state: MirrorState) -> list[tuple[np.ndarray, np.ndarray]]:
        """Position [m] and attitude xyzw of each body of the model, with the drones in a state."""
        mirrored = self._mirrored
        data = mujoco.MjData(mirrored.model)
        mirrored.index.write(state, data)
        mujoco.mj_kinematics(mirrored.model, data)
        return list(zip(data.xpos, wxyz_to_xyzw(data.xquat)))

    def capture_initial_state(self) -> None:
        """Make the current state, and the commands in force, those that a reset restores."""
        self._physics().capture_initial_state().result(_TIMEOUT)

    def reset_world_state(self, fill_initial_state: bool = True) -> None:
        """Reset the physics to the initial state and run the reset callback.

        Args:
            fill_initial_state: False keeps the state, which a keyframe has set, and only drops
                staged controls and runs the callback.
        """
        if fill_initial_state:
            self._physics().reset().result(_TIMEOUT)
        else:
            self._physics().notify_reset().result(_TIMEOUT)

    def set_reset_callback(self, callback: ResetCallback | None) -> None:
        """Have `callback` run after each reset, in the physics thread, with the lock held."""
        with self._mutex:
            self._reset_callback = callback

    def _physics(self) -> PhysicsRequests:
        if self.requests is None:
            raise RuntimeError("no physics thread is connected to the mirror")
        if self._mutex.held:
            raise RuntimeError("release the mirror's lock before asking something of the physics")
        return self.requests


def made_model(model: mujoco.MjModel, names: Sequence[str]) -> MadeModel:
    """A model for `Mirror.use`. From any thread.

    Args:
        model: As for the constructor of the mirror.
        names: As for it.

    Raises:
        ValueError: The model lacks a part of a drone.
    """
    return MadeModel(MirroredModel(model, names), mujoco.MjData(model), mujoco.MjData(model))
