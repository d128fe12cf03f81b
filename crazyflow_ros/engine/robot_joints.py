"""Joints and sensors of robots in a world whose bodies move, for programs that command them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.scene.robot_parts import Mode, joints_of, sensors_of

N_NUMBERS = 3
"""Numbers of a joint: position [rad or m], velocity, and effort [N m or N]."""


class RobotJoints:
    """Reads and commands some joints, and reads sensors. For the physics thread.

    What the present world lacks reads as NaN, and its commands have no effect.

    Args:
        bodies: The moving bodies of the world.
        joints: Names of the joints, in the order of all arrays.
        sensors: Names of the sensors and how many numbers each has, in their order.
    """

    def __init__(
        self, bodies: MovingBodies, joints: Sequence[str], sensors: Sequence[tuple[str, int]]
    ) -> None:
        self._bodies, model = bodies, bodies.model
        present = {joint.name: joint for joint in joints_of(model)}
        found = [(row, present[name]) for row, name in enumerate(joints) if name in present]
        self._n_joints = len(joints)
        self._rows = np.array([row for row, _ in found], int)
        ids = np.array([joint.id for _, joint in found], int)
        self._qpos, self._dofs = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
        by_actuator = [(row, *a) for row, joint in found for a in joint.actuators]
        self._actuated = np.array([row for row, *_ in by_actuator], int)
        self._modes = np.array([int(mode) for _, mode, *_ in by_actuator], int)
        self._numbers = np.array([int(mode).bit_length() - 1 for _, mode, *_ in by_actuator], int)
        self._ctrl = np.array([i for *_, i, _ in by_actuator], int)
        self._scale = np.array([scale for *_, scale in by_actuator])
        free = [not joint.actuators for _, joint in found]
        self._pushed, self._pushed_dofs = self._rows[free], self._dofs[free]
        there = {(sensor.name, sensor.size): sensor.first for sensor in sensors_of(model)}
        places: list[int] = []
        for sensor in sensors:
            first, size = there.get(sensor, -1), sensor[1]
            places += [-1] * size if first < 0 else range(first, first + size)
        self._places = np.array(places, int)

    def read(self) -> np.ndarray:
        """Return three numbers of each joint, see `N_NUMBERS`, then those of the sensors, (k,).

        The effort is what acted in the last tick, and so are sensors of accelerations and forces.
        """
        data, joints = self._bodies.data, np.full((self._n_joints, N_NUMBERS), np.nan)
        joints[self._rows, 0], joints[self._rows, 1] = data.qpos[self._qpos], data.qvel[self._dofs]
        efforts = data.qfrc_actuator[self._dofs] + data.qfrc_applied[self._dofs]
        joints[self._rows, 2] = efforts
        sensed = self._places
        if sensed.size:
            readings = np.append(self._bodies.readings(), np.nan)
            return np.concatenate((joints.ravel(), readings[sensed]))
        return joints.ravel()

    def command(self, modes: np.ndarray, values: np.ndarray) -> None:
        """Command joints from the next tick on.

        Args:
            modes: (J,) modes of each joint, see `Mode`; 0 leaves its actuators as they are.
            values: (J, 3) position, velocity and effort, used where the mode is among `modes`.
        """
        data = self._bodies.data
        heeded = (modes[self._actuated] & self._modes) != 0
        commands = values[self._actuated, self._numbers] * self._scale
        data.ctrl[self._ctrl[heeded]] = commands[heeded]
        pushed = (modes[self._pushed] & Mode.effort) != 0
        data.qfrc_applied[self._pushed_dofs[pushed]] = values[self._pushed[pushed], 2]
