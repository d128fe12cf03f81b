"""The mirror: the physics as a MuJoCo model and data, for any thread.

The physics thread only records its latest state. Most states are never read, so readers compute
frames and MuJoCo's sensors, each in its own copy: they hold the lock only to look up the state, and
the physics waits for no reader. Velocities and accelerations of the physics are also written, so
MuJoCo's own sensors are exact without MuJoCo's dynamics.

The interface is that of `MujocoSimulation` in mujoco_ros2_control, with two differences: changes of
the state go through the physics thread, which owns it, and simulation time never jumps back.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import mujoco
import numpy as np

from crazyflow_ros.scene.collision_shapes import neighbour
from crazyflow_ros.scene.controls import Controls
from crazyflow_ros.scene.frames import wxyz_to_xyzw
from crazyflow_ros.scene.mirror_state import MirrorState
from crazyflow_ros.scene.mirrored_model import BodyMotion, MirroredModel

_TIMEOUT = 10.0  # s for a request to the physics thread

ResetCallback = Callable[[bool], None]
"""Called after a reset with `fill_initial_state`: False if a keyframe has set the state."""


class PhysicsRequests(Protocol):
    """Requests of the mirror to the physics thread; each future is done when its request is."""

    def apply_controls(self, names: Sequence[str], controls: Controls) -> None:
        """Apply the inputs of these drones from the next tick on, instead of earlier ones."""

    def controls(self, names: Sequence[str]) -> Controls:
        """Return the inputs of these drones: those applied last, and rotor commands of others."""

    def set_state(self, state: MirrorState, controls: Controls) -> Future[Any]:
        """Set the state of all drones between two ticks, except time and accelerations.

        The inputs are applied at the same time.
        """

    def capture_initial_state(self) -> Future[Any]:
        """Make the present state the one that `reset` restores."""

    def reset(self) -> Future[Any]:
        """Reset all drones to the initial state, then call `Mirror.notify_reset(True)`."""

    def notify_reset(self) -> Future[Any]:
        """Call `Mirror.notify_reset(False)` between two ticks."""


class Mirror:
    """Copy of one world of the physics in MuJoCo, readable by any thread.

    Args:
        model: As for `MirroredModel`.
        names: As for `MirroredModel`.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        mirrored = MirroredModel(model, names)
        self._latest = mirrored, mirrored.initial  # replaced as a whole
        self._held: tuple[MirroredModel, MirrorState] | None = None  # while the lock is held
        self._lock = threading.RLock()
        self._reset_callback: ResetCallback | None = None
        self.requests: PhysicsRequests | None = None
        """The physics thread; the thread's owner sets it."""

    def use(self, mirrored: MirroredModel) -> MirroredModel:
        """Mirror another model, in its initial state until the next `write`. Physics thread only.

        From now on, data of the previous model are refused; `model` shows that it has changed.

        Args:
            mirrored: The model, for this mirror alone.

        Returns:
            The previous model. Freeing it takes long, too.
        """
        with self._lock:
            before, _ = self._latest
            self._latest = mirrored, mirrored.initial
        return before

    @property
    def model(self) -> mujoco.MjModel:
        """The model. It must not be modified; `copy_physics_model` returns a copy to modify."""
        return self._latest[0].index.model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the drones, in the order of all arrays."""
        return self._latest[0].index.names

    @property
    def n_rotors(self) -> int:
        """Number of rotors of a drone."""
        return self._latest[0].index.ctrl.shape[1]

    @property
    @contextmanager
    def mutex(self) -> Iterator[None]:
        """The lock. All reads while it is held are of the same instant; other readers wait.

        Only control inputs are always the latest, so that the holder of the lock can read, modify
        and apply them. The physics waits for the lock only to change the model and to run the reset
        callback.
        """
        with self._lock:
            before = self._held
            self._held = before or self._latest
            try:
                yield
            finally:
                self._held = before

    # For the physics thread.

    def write(self, state: MirrorState) -> None:
        """Mirror a state, whose arrays must not change afterwards. Physics thread only."""
        self._latest = self._latest[0], state

    def range(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Return the readings of the drones' range sensors [m], shape (M,), see `Rangefinder.read`.

        Physics thread only.

        Args:
            names: Names of the drones, one for each row; by default those of all drones.
        """
        mirrored, state = self._latest
        rows = mirrored.index.rows(names)
        return mirrored.rangefinder.read(mirrored.kinematics(state), rows)

    def ranges(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Return distances to the front, back, left, right, top and bottom [m], shape (M, 6).

        Physics thread only.

        Args:
            names: See `range`.
        """
        mirrored, state = self._latest
        frames, rows = mirrored.kinematics(state), mirrored.index.rows(names)
        around, below = (
            mirrored.rangefinder.read_around(frames, rows),
            mirrored.rangefinder.read(frames, rows),
        )
        return np.column_stack((around, below))

    def matter_before(self, points: np.ndarray) -> np.ndarray:
        """Return how much stands between drones and points [m], see `Rangefinder.matter_before`.

        Physics thread only.

        Args:
            points: (K, 3) m.
        """
        mirrored, state = self._latest
        return mirrored.rangefinder.matter_before(mirrored.kinematics(state), points)

    def neighbour(
        self, state: MirrorState, drone: str, *, drones: bool, floor: float | None = 0.0
    ) -> str | None:
        """Return the name of what a drone touches, see `collision_shapes.neighbour`.

        Args:
            state: A state of the drones of this mirror.
            drone: Name of the drone.
            drones: Whether drones collide with one another.
            floor: Height of the floor [m], which is not meant; None for none.

        Physics thread only.
        """
        mirrored, _ = self._latest
        frames = mirrored.kinematics(state)
        return neighbour(mirrored.index.model, frames, drone, drones=drones, floor=floor)

    def body_poses(self, state: MirrorState) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return position [m] and attitude xyzw of each body, with the drones in a given state.

        Physics thread only.
        """
        frames = self._latest[0].kinematics(state)
        return list(zip(frames.xpos.copy(), wxyz_to_xyzw(frames.xquat)))

    def notify_reset(self, fill_initial_state: bool) -> None:
        """Run the reset callback, with the lock held."""
        with self.mutex:
            if self._reset_callback is not None:
                self._reset_callback(fill_initial_state)

    # For any thread.

    def copy_physics_model(self) -> mujoco.MjModel:
        """Return a copy of the model."""
        return copy.copy(self.model)

    def copy_physics_data(self, destination: mujoco.MjData | None = None) -> mujoco.MjData:
        """Copy the data, with accelerations, frames and sensors; by default to new data.

        Control inputs are those of the last `apply_control_data`, even if no tick has followed, so
        that a caller can change some of them, apply the copy and leave the others as they are.
        `ctrl` has the rotors' commands from any source; forces from elsewhere are not in the copy.

        Raises:
            ValueError: `destination` is of another model.
        """
        mirrored, state = self._present()
        index, model = mirrored.index, mirrored.index.model
        if destination is None:
            destination = mujoco.MjData(model)
        else:
            index.check_sizes(destination)
            mujoco.mj_resetData(model, destination)
        index.show(state, destination)
        if self.requests is not None:
            mirrored.controls.write(self.requests.controls(index.names), destination)
        mujoco.mj_comVel(model, destination)
        mujoco.mj_sensorPos(model, destination)
        mujoco.mj_sensorVel(model, destination)
        mujoco.mj_sensorAcc(model, destination)
        return destination

    def motions(self) -> list[BodyMotion]:
        """Return the motion of each body directly below the world that is not a drone, in order."""
        mirrored, state = self._present()
        return mirrored.motions(state)

    def apply_control_data(self, source: mujoco.MjData) -> None:
        """Apply ctrl, qfrc_applied and xfrc_applied of `source` from the next tick on.

        Later calls replace earlier ones. Rotor speeds (ctrl) need the control mode `rotor_vel`; in
        others the drones' controllers command the rotors, and ctrl has no effect. Forces last until
        a reset; they act where MuJoCo stores them, and add to forces from elsewhere.

        Raises:
            ValueError: An entry is not finite or beyond its limit, or acts on a part of the world
                that nothing moves; nothing is applied.
        """
        mirrored, _ = self._present()
        controls = self._controls(mirrored, source)
        self._connected().apply_controls(mirrored.index.names, controls)

    def overwrite_physics_data(self, source: mujoco.MjData) -> None:
        """Continue the physics with positions, velocities, rotors and control inputs of `source`.

        Raises:
            ValueError: `source` is of another model, or its state or an input is invalid.
        """
        mirrored, _ = self._present()
        controls, index = self._controls(mirrored, source), mirrored.index
        state = index.checked(index.read(source.qpos, source.qvel, source.qacc, source.time))
        state = replace(state, bodies=mirrored.bodies(source))
        self._physics().set_state(state, controls).result(_TIMEOUT)

    def apply_keyframe(self, name: str) -> bool:
        """Continue the physics with the drones and bodies of a keyframe; return whether it exists.

        The keyframe's ctrl commands rotors and actuators, and the forces of `apply_control_data`
        end. Bodies of a scene in which nothing but drones moves stay where they are.
        """
        state = self.keyframe(name)
        if state is None:
            return False
        assert state.rotor_command is not None
        controls = Controls(state.rotor_command, [])
        self._physics().set_state(state, controls).result(_TIMEOUT)
        return True

    def keyframe(self, name: str) -> MirrorState | None:
        """Return the state of drones and bodies in a keyframe, with commands of the rotors.

        Raises:
            ValueError: The state is invalid.
        """
        mirrored, _ = self._latest
        index = mirrored.index
        try:
            key = index.model.key(name)
        except KeyError:
            return None
        zeros = np.zeros(index.model.nv)
        state = index.read(key.qpos, key.qvel, zeros, key.time[0])
        data = mujoco.MjData(index.model)
        mujoco.mj_resetDataKeyframe(index.model, data, key.id)
        bodies = mirrored.bodies(data)
        return index.checked(replace(state, rotor_command=key.ctrl[index.ctrl], bodies=bodies))

    def capture_initial_state(self) -> None:
        """Make the present state, and the commands in force, the ones that a reset restores."""
        self._physics().capture_initial_state().result(_TIMEOUT)

    def reset_world_state(self, fill_initial_state: bool = True) -> None:
        """Reset the physics to the initial state and run the reset callback.

        Args:
            fill_initial_state: False keeps the state, which a keyframe has set, and only ends the
                forces of `apply_control_data` and runs the callback.
        """
        if fill_initial_state:
            self._physics().reset().result(_TIMEOUT)
        else:
            self._physics().notify_reset().result(_TIMEOUT)

    def set_reset_callback(self, callback: ResetCallback | None) -> None:
        """Run `callback` after each reset, in the physics thread, with the lock held."""
        with self._lock:
            self._reset_callback = callback

    @staticmethod
    def _controls(mirrored: MirroredModel, source: mujoco.MjData) -> Controls:
        mirrored.index.check_sizes(source)
        return mirrored.controls.read(source)

    def _present(self) -> tuple[MirroredModel, MirrorState]:
        """Return the model and the state to read."""
        with self._lock:
            return self._held or self._latest

    def _connected(self) -> PhysicsRequests:
        if self.requests is None:
            raise RuntimeError("no physics thread is connected to the mirror")
        return self.requests

    def _physics(self) -> PhysicsRequests:
        """Return the physics thread, to wait for a request."""
        with self._lock:
            if self._held is not None:
                raise RuntimeError(
                    "release the mirror's lock before sending a request to the physics"
                )
        return self._connected()
