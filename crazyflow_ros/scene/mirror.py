"""The mirror: a MuJoCo model and data of one world that follow the physics.

The physics thread writes the state of the drones; sensors, viewers and the hardware interface
read it. Frames and MuJoCo's sensors are computed only on demand, because most ticks are never read:
the reader computes them in a second `MjData`, and swaps it with the first under the lock. So the
lock is held only to copy, and the physics never waits long. Velocities and accelerations of the
physics are also written, so MuJoCo's own sensors are exact without MuJoCo's dynamics.

The interface is that of `MujocoSimulation` in mujoco_ros2_control, with two differences: changes of
the state go through the physics thread, which owns it, and simulation time never jumps back.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import mujoco
import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.scene.controls import Controls
from crazyflow_ros.scene.frames import wxyz_to_xyzw
from crazyflow_ros.scene.lock import TimedLock
from crazyflow_ros.scene.mirrored_model import MirroredModel
from crazyflow_ros.scene.neighbours import neighbour
from crazyflow_ros.scene.state import MirrorState

_TIMEOUT = 10.0  # s for a request to the physics thread

ResetCallback = Callable[[bool], None]
"""Called after a reset with `fill_initial_state`: False if a keyframe has set the state."""


class PhysicsRequests(Protocol):
    """Requests of the mirror to the physics thread; each future is done when the request is."""

    def set_state(self, state: MirrorState) -> Future[Any]:
        """Set the state of all drones between two ticks, except time and accelerations."""

    def capture_initial_state(self) -> Future[Any]:
        """Make the present state the one that `reset` restores."""

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
    """A model with its indices, and data for readers and for computation."""

    mirrored: MirroredModel
    front: mujoco.MjData
    back: mujoco.MjData


class Mirror:
    """Copy of one world of the physics in MuJoCo, readable by any thread.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`; not modified.
        names: Names of the drones; they give the order of all arrays.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self._mutex = TimedLock(prepare=self._work_out)  # guards the front data
        self._working = threading.Lock()  # guards the back data, and is acquired first
        self._latest: MirrorState | None = None
        self._shown: MirrorState | None = None
        self._reset_callback: ResetCallback | None = None
        self.requests: PhysicsRequests | None = None
        """The physics thread; the thread's owner sets it."""
        self._mirrored, self._front, self._back = made_model(model, names)
        initial = self._front
        self.write(
            self._mirrored.index.read(initial.qpos, initial.qvel, initial.qacc, initial.time)
        )

    def use(self, made: MadeModel) -> MadeModel:
        """Mirror another model from the next `write` on. Physics thread only.

        From now on, data of the previous model are refused; `model` shows that it has changed.
        Staged controls are discarded.

        Args:
            made: Result of `made_model`, which takes long, for this mirror alone.

        Returns:
            The previous model. Freeing it takes long, too.
        """
        with self._working, self._mutex.unprepared():
            before = MadeModel(self._mirrored, self._front, self._back)
            self._mirrored, self._front, self._back = made
            self._shown = self._latest  # a state of the previous drones
        return before

    @property
    def model(self) -> mujoco.MjModel:
        """The model. It must not be modified; `copy_physics_model` returns a copy to modify."""
        return self._mirrored.model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the drones, in the order of all arrays."""
        return self._mirrored.names

    @property
    def mutex(self) -> TimedLock:
        """The lock. Several reads while holding it are of the same instant."""
        return self._mutex

    @property
    def time_ns(self) -> int:
        """Simulation time of the mirrored state [ns]."""
        with self._mutex:
            return 0 if self._shown is None else self._shown.time_ns

    # For the physics thread.

    def write(self, state: MirrorState) -> None:
        """Mirror a state, which must not change any more. Physics thread only."""
        self._latest = state

    def range(self) -> np.ndarray:
        """Return the readings of the drones' range sensors [m], shape (M,), see `Rangefinder.read`.

        Physics thread only: it needs no lock, because nobody swaps the data until this thread
        writes.
        """
        self._work_out()
        return self._mirrored.rangefinder.read(self._front)

    def ranges(self) -> np.ndarray:
        """Return distances to the front, back, left, right, top and bottom [m], shape (M, 6).

        Physics thread only, as `range`.
        """
        down = self.range()
        return np.column_stack((self._mirrored.rangefinder.read_around(self._front), down))

    def neighbour(self, state: MirrorState, drone: str, *, drones: bool) -> str | None:
        """Return the name of what a drone touches, see `neighbours.neighbour`.

        Args:
            state: A state of the drones of this mirror.
            drone: Name of the drone.
            drones: Whether drones collide with one another.

        Physics thread only, as `range`.
        """
        with self._working:
            self._mirrored.index.write(state, self._back)
            mujoco.mj_kinematics(self._mirrored.model, self._back)
            return neighbour(self._mirrored.model, self._back, drone, drones=drones)

    def staged_controls(self) -> Controls | None:
        """Return the controls staged since the last call, see `apply_control_data`.

        Physics thread only.
        """
        if not self._mirrored.stage.is_filled:
            return None
        with self._mutex:
            return self._mirrored.stage.take(self._front)

    def notify_reset(self, fill_initial_state: bool) -> None:
        """Discard staged controls and run the reset callback, with the lock held."""
        with self._mutex:
            self._mirrored.stage.clear()
            if self._reset_callback is not None:
                self._reset_callback(fill_initial_state)

    def _work_out(self) -> None:
        """Update the front data to the latest state."""
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
            # Explicitly, because the sensor stages call these two only once in the
            # lifetime of the data.
            mujoco.mj_rnePostConstraint(model, data)
            mujoco.mj_sensorAcc(model, data)
            with self._mutex.unprepared():
                self._front, self._back = data, self._front
                self._shown = state

    # For any thread.

    def read_sensor(self, name: str) -> np.ndarray:
        """Return a copy of the readings of one sensor of the model, for example "gyro:cf0"."""
        with self._mutex:
            if name not in self._mirrored.sensors:
                raise ValueError(unknown("sensor", name, self._mirrored.sensors))
            return self._front.sensordata[self._mirrored.sensors[name]].copy()

    def imu(self) -> Imu:
        """Return a copy of the readings of all drones' IMUs."""
        with self._mutex:
            readings = self._front.sensordata
            return Imu(
                readings[self._mirrored.orientation],
                readings[self._mirrored.gyro],
                readings[self._mirrored.accelerometer],
            )

    def copy_physics_model(self) -> mujoco.MjModel:
        """Return a copy of the model."""
        return copy.copy(self._mirrored.model)

    def copy_physics_data(self, destination: mujoco.MjData | None = None) -> mujoco.MjData:
        """Copy the data, with accelerations, frames and sensors; by default to new data."""
        while True:
            model = self._mirrored.model
            data = mujoco.MjData(model) if destination is None else destination
            with self._mutex:
                if destination is None and model is not self._mirrored.model:
                    continue  # the model has changed
                self._mirrored.check_sizes(data)
                mujoco.mj_copyData(data, self._mirrored.model, self._front)
                return data

    def apply_control_data(self, source: mujoco.MjData) -> None:
        """Stage ctrl, qfrc_applied and xfrc_applied of `source` for the physics.

        Later calls replace earlier ones.

        Raises:
            ValueError: An entry is not finite, or acts on a degree of freedom that the physics
                lacks; nothing is staged.
        """
        with self._mutex:
            self._mirrored.check_sizes(source)
            self._mirrored.stage.put(source)

    def overwrite_physics_data(self, source: mujoco.MjData) -> None:
        """Continue the physics with positions, velocities and rotors of `source`.

        Raises:
            ValueError: `source` is of another model, or its state is invalid.
        """
        mirrored = self._mirrored
        mirrored.check_sizes(source)
        state = mirrored.index.read(source.qpos, source.qvel, source.qacc, source.time)
        self._physics().set_state(mirrored.checked(state)).result(_TIMEOUT)

    def apply_keyframe(self, name: str) -> bool:
        """Continue the physics with the drones of a keyframe; return whether it exists.

        Bodies of the scene stay where they are.
        """
        state = self.keyframe(name)
        if state is None:
            return False
        self._physics().set_state(state).result(_TIMEOUT)
        return True

    def keyframe(self, name: str) -> MirrorState | None:
        """Return the state of the drones in a keyframe of the model, with rotors, if it exists.

        Raises:
            ValueError: The state is invalid.
        """
        mirrored = self._mirrored
        try:
            key = mirrored.model.key(name)
        except KeyError:
            return None
        zeros = np.zeros(mirrored.model.nv)
        return mirrored.checked(mirrored.index.read(key.qpos, key.qvel, zeros, key.time[0]))

    def body_poses(self, state: MirrorState) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return position [m] and attitude xyzw of each body, with the drones in a given state."""
        mirrored = self._mirrored
        data = mujoco.MjData(mirrored.model)
        mirrored.index.write(state, data)
        mujoco.mj_kinematics(mirrored.model, data)
        return list(zip(data.xpos, wxyz_to_xyzw(data.xquat)))

    def capture_initial_state(self) -> None:
        """Make the present state, and the commands in force, the ones that a reset restores."""
        self._physics().capture_initial_state().result(_TIMEOUT)

    def reset_world_state(self, fill_initial_state: bool = True) -> None:
        """Reset the physics to the initial state and run the reset callback.

        Args:
            fill_initial_state: False keeps the state, which a keyframe has set, and only discards
                staged controls and runs the callback.
        """
        if fill_initial_state:
            self._physics().reset().result(_TIMEOUT)
        else:
            self._physics().notify_reset().result(_TIMEOUT)

    def set_reset_callback(self, callback: ResetCallback | None) -> None:
        """Run `callback` after each reset, in the physics thread, with the lock held."""
        with self._mutex:
            self._reset_callback = callback

    def _physics(self) -> PhysicsRequests:
        if self.requests is None:
            raise RuntimeError("no physics thread is connected to the mirror")
        if self._mutex.held:
            raise RuntimeError("release the mirror's lock before sending a request to the physics")
        return self.requests


def made_model(model: mujoco.MjModel, names: Sequence[str]) -> MadeModel:
    """Prepare a model for `Mirror.use`. Thread-safe.

    Args:
        model: As for the constructor of the mirror.
        names: As for the constructor of the mirror.

    Raises:
        ValueError: The model lacks a part of a drone.
    """
    return MadeModel(MirroredModel(model, names), mujoco.MjData(model), mujoco.MjData(model))
