"""What topics of sensors have in common: one entry of the sensors' file, on all its drones."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import mujoco
from builtin_interfaces.msg import Time
from rclpy.exceptions import InvalidHandle
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.sensors.sensors_file import Device, SensorFile
from crazyflow_ros.runtime import Life, Snapshot
from crazyflow_ros.scene import MirrorState
from crazyflow_ros.scene.state import DroneIndex
from crazyflow_ros.sensors import MujocoBackend

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

SENSOR_QOS = QoSProfile(depth=5)
"""Reliable, which suits every subscriber."""


class Scene:
    """All drones and what is around them, as the sensors of one thread see it.

    Args:
        model: That of the mirror.
        names: Of the drones.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self.mirrored, self.names = model, tuple(names)
        self._model = copy.copy(model)  # in which drawing may set the size of its buffers
        self._data, self._index = mujoco.MjData(self._model), DroneIndex(self._model, names)
        self.backend = MujocoBackend(self._model, self._data)
        self._shown: MirrorState | None = None

    def show(self, state: MirrorState) -> None:
        """Put all frames where they are in a state."""
        if self._shown is state:
            return
        self._shown = state
        self._index.write(state, self._data)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)


class DeviceTopics(ABC):
    """The topics of one entry of the file.

    `add` and `look` are called in the executor's thread, `initialize`, `sense` and `reset` in that
    of the sensors.

    Args:
        simulator: The node.
        file: The file.
        device: The entry.

    Attributes:
        listeners: Publishers of the topics that have subscribers, by drone and number of the
            topic.
    """

    needs_scene = True
    """Whether it reads from the scene as it is shown, which is at one moment."""

    def __init__(self, simulator: SimulatorNode, file: SensorFile, device: Device) -> None:
        self._simulator, self._file, self._device = simulator, file, device
        self.listeners: Mapping[tuple[str, int], Any] = {}
        self._drones: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self._device.owner}/{self._device.name}"

    def add(self, drone: str) -> None:
        """Create the publishers of a drone, if it carries the sensor."""
        for topic, (kind, _, qos) in zip(self.names([drone]), self._topics()):
            self._simulator.listeners.create_publisher(kind, topic, qos)

    def names(self, drones: Iterable[str]) -> list[str]:
        """Topics of those of the drones that carry the sensor."""
        return [
            f"{drone}/{self._device.name}{suffix}"
            for drone in drones
            if self._file.carries(drone, self._device)
            for _, suffix, _ in self._topics()
        ]

    def look(self, drones: Collection[str]) -> None:
        """Note who listens; `drones` are those that there are."""
        self.listeners = {
            (drone, number): publisher
            for drone in drones
            for number, topic in enumerate(self.names([drone]))
            if (publisher := self._simulator.listeners.heard(topic))
        }

    def initialize(self, scene: Scene) -> None:
        """Prepare to sense in this scene."""
        self._drones = tuple(d for d in scene.names if self._file.carries(d, self._device))
        if self._drones:
            self._initialize(scene)

    def reset(self, lives: Mapping[str, Life]) -> None:
        """Take note, before `sense`, how often drones were put back by now, and when."""
        del lives

    @abstractmethod
    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Sense, and publish what somebody listens to.

        Args:
            snapshots: At which it is due, in a row; one, if it needs the scene.
            scene: In which to show them; if it needs it, as it is then.
        """

    @abstractmethod
    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        """Type, what follows the sensor's name, and quality of service of each topic."""

    @abstractmethod
    def _initialize(self, scene: Scene) -> None:
        """Prepare to sense; there is a drone that carries the sensor."""

    def _publish(self, drone: str, number: int, message: Any) -> None:
        """Publish a message, unless the drone has gone meanwhile."""
        publisher = self.listeners.get((drone, number))
        if publisher is not None:
            with suppress(InvalidHandle):
                publisher.publish(message)


def put_header(message: Any, time_ns: int, frame: str) -> None:
    """Stamp a message, and tell its frame."""
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    message.header.stamp = Time(sec=seconds, nanosec=nanoseconds)
    message.header.frame_id = frame
