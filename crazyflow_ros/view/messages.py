"""The states of the drones, read from a simulator's messages."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState, MultiDOFJointState
from visualization_msgs.msg import Marker

from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.ros.messages import below, deserialised, elements, find_numbers
from crazyflow_ros.ros.topics.drone_states import paths_of_odometry
from crazyflow_ros.ros.topics.world_states import paths_of_cables
from crazyflow_ros.scene.moving_frames import Poses
from crazyflow_ros.view.frame import Frame

_STAMP = below("header.stamp", ("sec", "nanosec"))
_WORD = 4  # bytes


class NumberReader:
    """Reads the numbers of serialised messages that differ in nothing else.

    Deserialising a message of 100 drones takes ten times as long.

    Args:
        kind: Type of the messages, with a header.
        paths: Returns the paths of all numbers that change, see `cdr.find_numbers`.

    Attributes:
        prototype: A message with the same fields, except for stamp and numbers.
    """

    def __init__(self, kind: Any, paths: Callable[[Any], list[str]]) -> None:
        self._kind, self._paths = kind, paths
        self.prototype: Any = None
        self._fixed = self._constants = self._numbers = self._times = np.zeros(0, np.intp)
        self._size = -1

    def read(self, payload: bytes) -> tuple[int, np.ndarray]:
        """Return the stamp [ns] and the numbers, float64.

        Raises:
            ValueError: The message is damaged, or too large.
        """
        words = np.frombuffer(payload, np.uint32, len(payload) // _WORD)
        if len(payload) != self._size or (words[self._fixed] != self._constants).any():
            self._learn(payload, words)
        seconds, nanosecs = words[self._times].tolist()
        return seconds * 10**9 + nanosecs, words[self._numbers].view(np.float64)

    def _learn(self, payload: bytes, words: np.ndarray) -> None:
        self.prototype, self._size = deserialised(payload, self._kind), len(payload)
        paths = self._paths(self.prototype)
        places = np.array(find_numbers(self.prototype, paths, _STAMP), np.intp) // _WORD
        if places.max(initial=0) + 1 >= len(words):
            raise ValueError(f"a {self._kind.__name__} of {len(payload)} bytes is cut off")
        numbers, self._times = places[: len(paths)], places[len(paths) :]
        self._numbers = np.stack([numbers, numbers + 1], axis=-1).ravel()
        self._fixed = np.ones(len(words), bool)
        self._fixed[self._numbers] = self._fixed[self._times] = False
        self._constants = words[self._fixed]


class FrameReader:
    """Reads the states of all drones, and of what else moves."""

    def __init__(self) -> None:
        self._odometry = NumberReader(MultiDOFJointState, _paths_of_odometry)
        self._bodies = NumberReader(MultiDOFJointState, _paths_of_odometry)
        self._cables = NumberReader(Marker, lambda marker: paths_of_cables(len(marker.points)))
        self._rotors = NumberReader(JointState, _paths_of_rotors)
        self._n_rotors = QUADROTOR  # until a message has told

    def read(
        self,
        odometry: bytes,
        rotors: bytes | None,
        bodies: bytes | None = None,
        cables: bytes | None = None,
    ) -> Frame:
        """Return the state of the drones.

        Args:
            odometry: A message of `~/odometry`.
            rotors: A message of `~/joint_states`; if it is None or has other drones, the rotors
                stand still.
            bodies: A message of `~/world/odometry`; None if nothing else moves.
            cables: A message of `~/world/cables`; None without cables.
        """
        time_ns, numbers = self._odometry.read(odometry)
        names = tuple(self._odometry.prototype.joint_names)
        n = len(names)
        pos, quat, vel, _ = np.split(numbers, [3 * n, 7 * n, 10 * n])
        speeds = None
        if rotors is not None and n:
            _, found = self._rotors.read(rotors)
            size, rest = divmod(found.size, 2 * n)  # speeds, then angles
            if rest == 0 and (size == self._n_rotors or self._are_of(names, size)):
                self._n_rotors, speeds = size, found[: n * size].reshape(n, size)
        if speeds is None:
            speeds = np.zeros((n, self._n_rotors))
        rows = pos.reshape(n, 3), quat.reshape(n, 4), vel.reshape(n, 3)
        return Frame(
            time_ns,
            names,
            *rows,
            speeds,
            None if bodies is None else self._poses(bodies),
            None if cables is None else self._cables.read(cables)[1].reshape(-1, 2, 3),
        )

    def _poses(self, bodies: bytes) -> Poses:
        _, numbers = self._bodies.read(bodies)
        names = tuple(self._bodies.prototype.joint_names)
        n = len(names)
        pos, quat, _ = np.split(numbers, [3 * n, 7 * n])
        return Poses(names, pos.reshape(n, 3), quat.reshape(n, 4))

    def _are_of(self, drones: tuple[str, ...], size: int) -> bool:
        """Return whether the message that was read last has `size` rotors of each drone."""
        wanted = [f"{drone}_rotor{i}" for drone in drones for i in range(size)]
        return bool(wanted == list(self._rotors.prototype.name))


def _paths_of_odometry(message: MultiDOFJointState) -> list[str]:
    return list(chain(*paths_of_odometry(len(message.joint_names))))


def _paths_of_rotors(message: JointState) -> list[str]:
    n = len(message.velocity)
    return [*elements("velocity", n), *elements("position", n)]
