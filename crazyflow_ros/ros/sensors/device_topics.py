"""Base class for the topics of one entry of the sensors file, for all drones, and drawings."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from rclpy.exceptions import InvalidHandle
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import point
from crazyflow_ros.ros.messages.outbox import Outbox, SerialisedMessages
from crazyflow_ros.ros.messages.times import duration_of, time_of
from crazyflow_ros.ros.sensors.devices import Device, SensorFile, Topic
from crazyflow_ros.runtime import Life, Snapshot
from crazyflow_ros.scene import MirrorState
from crazyflow_ros.scene.mirror_state import DroneIndex
from crazyflow_ros.sensors import MujocoBackend, SensorContext, ShapeRecorder
from crazyflow_ros.sensors.rendering import Room

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

MARKERS = Topic(MarkerArray, "/markers", "MarkerArray")
"""The topic of the drawings of a sensor."""
_SHORTEST = 0.5  # s, minimum lifetime of markers


class Scene:
    """All drones and their surroundings, as the sensors of one thread see them.

    Args:
        model: Model of the mirror.
        names: Names of the drones.
        room: Is shared by all scenes of the thread, so that a drone that comes or goes compiles
            nothing.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str], room: Room) -> None:
        self.mirrored, self.names = model, tuple(names)
        self._model = copy.copy(model)  # a copy, because drawing may set the size of its buffers
        self._data, self._index = mujoco.MjData(self._model), DroneIndex(self._model, names)
        self.backend = MujocoBackend(self._model, self._data)
        self.context = SensorContext(self.backend, (), room)
        """Rendering context of cameras."""
        self._shown: MirrorState | None = None

    def show(self, state: MirrorState) -> None:
        """Move all frames to their poses in a state."""
        if self._shown is state:
            return
        self._shown = state
        self._index.show(state, self._data)


class Audience(dict[tuple[str, int], Any]):
    """Publishers of the topics that have subscribers, by drone and number of the topic.

    Attributes:
        outbox: Sends the messages of a moment to all of them, once they are addressed.
        numbers: The numbers of these messages.
    """

    outbox: Outbox | None = None
    numbers: Sequence[int] = ()


class DeviceTopics(ABC):
    """The topics of one entry of the file.

    `add` and `look` are called in the executor's thread, `initialize`, `sense` and `reset` in the
    sensor thread.

    Attributes:
        listeners: Publishers of the topics that have subscribers.
        rate: How often it senses [Hz].
    """

    needs_scene = True
    """Whether `sense` takes one snapshot at a time, and reads from the scene at that moment."""
    in_drone_model = True
    """Whether the sensor is part of `SensorFile.model`."""
    is_awaited = True
    """Whether the physics waits for the readings, so that none is skipped."""

    def __init__(self, simulator: Host, file: SensorFile, device: Device[Any]) -> None:
        self._file, self._device, self.rate = file, device, device.rate
        self._simulator, self._topics = simulator, device.topics
        self.listeners = Audience()
        self._drones: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self._device.owner}/{self._device.name}"

    @staticmethod
    @abstractmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """Return the topics of each drone that carries the sensor."""

    def names(self, drones: Iterable[str]) -> list[str]:
        """Return the names of the topics of the drones that carry the sensor."""
        return [
            f"{drone}/{self._device.name}{topic.suffix}"
            for drone in drones
            if self._file.carries(drone, self._device)
            for topic in self._topics
        ]

    def add(self, drone: str) -> None:
        """Create the publishers of a drone, if it carries the sensor."""
        for name, topic in zip(self.names([drone]), self._topics):
            self._simulator.listeners.create_publisher(topic.message_type, name, topic.qos)

    def look(self, drones: Collection[str]) -> None:
        """Update `listeners`; `drones` are those with topics of their own."""
        self.listeners = Audience(  # a new one, because an outbox keeps destroyed publishers alive
            ((drone, number), publisher)
            for drone in drones
            for number, topic in enumerate(self.names([drone]))
            if (publisher := self._simulator.listeners.heard(topic))
        )

    def initialize(self, scene: Scene) -> None:
        """Prepare to sense in this scene."""
        self._drones = tuple(d for d in scene.names if self._file.carries(d, self._device))
        self.listeners.outbox = None  # its messages are those of other drones
        if self._drones:
            self._initialize(scene)

    def reset(self, lives: Mapping[str, Life]) -> None:
        """Handle resets: `lives` counts them for each drone. Called before `sense`."""
        del lives

    @abstractmethod
    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Sense, and publish the readings that have subscribers.

        Args:
            snapshots: The snapshots at which the sensor is due, in order; only one if it needs the
                scene.
            scene: The scene; at the moment of the snapshot if the sensor needs it.
        """

    @abstractmethod
    def _initialize(self, scene: Scene) -> None:
        """Prepare to sense; at least one drone carries the sensor."""

    def _publish(self, drone: str, number: int, message: Any) -> None:
        publisher = self.listeners.get((drone, number))
        if publisher is not None:
            with suppress(InvalidHandle):
                publisher.publish(message)

    def _address(self, listeners: Audience, messages: SerialisedMessages) -> Outbox:
        """Address messages to the topics that have subscribers.

        Args:
            listeners: The audience, which gets the outbox.
            messages: The messages of all drones for the first topic, then for the next one.
        """
        keys = [(drone, i) for i in range(len(self._topics)) for drone in self._drones]
        keys = keys[: len(messages.places)]  # without markers
        listeners.numbers = [n for n, key in enumerate(keys) if key in listeners]
        addresses = [(listeners[keys[n]], messages.places[n]) for n in listeners.numbers]
        listeners.outbox = outbox = Outbox(addresses)
        return outbox


def put_header(message: Any, time_ns: int, frame: str) -> None:
    """Set the stamp and the frame of a message."""
    message.header.stamp = time_of(time_ns)
    message.header.frame_id = frame


def marker_array(shapes: ShapeRecorder, time_ns: int, rate: int) -> MarkerArray:
    """Return spheres and arrows in the map, one marker for all spheres and one for all arrows.

    Args:
        shapes: The drawing.
        time_ns: Time of the readings [ns].
        rate: Rate of the sensor [Hz]; markers stay for two periods.
    """
    spheres, arrows = shapes.spheres, shapes.arrows
    points = _marker(
        Marker.SPHERE_LIST, time_ns, [s.center for s in spheres], [s.color for s in spheres]
    )
    ends = [end for arrow in arrows for end in (arrow.start, arrow.end)]
    colors = [color for arrow in arrows for color in (arrow.color, arrow.color)]
    lines = _marker(Marker.LINE_LIST, time_ns, ends, colors)
    lifetime = duration_of(max(_SHORTEST, 2 / rate))
    for marker, size in (
        (points, max((2 * sphere.radius for sphere in spheres), default=0.0)),
        (lines, max((arrow.width for arrow in arrows), default=0.0)),
    ):
        marker.scale.x = marker.scale.y = marker.scale.z = size
        marker.lifetime = lifetime
    return MarkerArray(markers=[points, lines])


def _marker(
    kind: int, time_ns: int, points: Iterable[np.ndarray], colors: Iterable[tuple[float, ...]]
) -> Marker:
    marker = Marker(type=kind, id=kind, action=Marker.ADD)
    marker.header.frame_id = frame_ids.MAP
    marker.header.stamp = time_of(time_ns)
    marker.points = list(map(point, points))
    marker.colors = [ColorRGBA(r=r, g=g, b=b, a=a) for r, g, b, a in colors]
    if not marker.points:
        marker.action = Marker.DELETE
    return marker
