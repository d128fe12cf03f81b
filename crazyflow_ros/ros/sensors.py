"""<drone>/<sensor>: what the file of the parameter `sensors` asks for, sensed beside the physics.

The physics thread only leaves its snapshot, if somebody listens and there is room. Sensors make of
it what they measure, each rate and kind of sensor in a thread of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import mujoco

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.ros.contact_topics import ContactTopics
from crazyflow_ros.ros.declaration import ParameterError
from crazyflow_ros.ros.device_topics import DeviceTopics, Scene
from crazyflow_ros.ros.sensor_topics import CameraTopics, LidarTopics, SampleTopics
from crazyflow_ros.runtime import ResetEvent, Snapshot
from crazyflow_ros.sensors import RenderingUnavailable

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_TOPICS: dict[str, Any] = {  # others are sampled
    "lidar": LidarTopics,
    "camera": CameraTopics,
    "contact": ContactTopics,
}
_LOOK_PERIOD = 0.2  # s of wall time after which it is seen who listens


class _View(NamedTuple):
    """What there is to be sensed."""

    number: int
    snapshot: Snapshot
    model: mujoco.MjModel


class _Reset(NamedTuple):
    """Drones were put back to their initial state."""

    before: int
    """Number of the first view after it."""
    drones: tuple[str, ...]


class SensorThread:
    """Senses and publishes what has the same rate and is of one kind.

    Args:
        simulator: The node.
        rate: Hz, of simulated time.
        backlog: Snapshots that wait at most; of more the oldest are left out.
    """

    def __init__(self, simulator: Simulator, rate: int, backlog: int) -> None:
        physics = simulator.physics
        self._mirror, self._logger = physics.mirror, simulator.get_logger()
        self._period = ticks_per_period(physics.freq, rate, f"sensors: the rate {rate}")
        self._topics: list[DeviceTopics] = []
        self._is_wanted = False
        self._scene: Scene | None = None
        self._n_views = 0
        self._views: deque[_View] = deque(maxlen=backlog)
        self._resets: deque[_Reset] = deque()
        self._due = threading.Event()
        physics.every(rate, self._take, "sensors", observes=True)
        physics.on_reset(self._note_reset)
        threading.Thread(target=self._main, name=f"sensors {rate} Hz", daemon=True).start()

    def add(self, topics: DeviceTopics) -> None:
        """Sense and publish these, too; before the physics starts."""
        self._topics.append(topics)

    def look(self, drones: tuple[str, ...]) -> None:
        """See who listens. In the executor's thread."""
        for topics in self._topics:
            topics.look(drones)
        self._is_wanted = any(topics.listeners for topics in self._topics)

    def _take(self, snapshot: Snapshot) -> None:
        """In the physics thread."""
        # It is also called between two periods, after a step and after changes by hand.
        if self._is_wanted and snapshot.tick % self._period == 0:
            self._views.append(_View(self._n_views, snapshot, self._mirror.model))
            self._n_views += 1
            self._due.set()

    def _note_reset(self, event: ResetEvent) -> None:
        """In the physics thread."""
        if event.drones and self._n_views:
            self._resets.append(_Reset(self._n_views, event.drones))

    def _main(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            while self._views:
                try:
                    self._sense(self._views.popleft())
                except RenderingUnavailable as error:
                    self._logger.warning(f"sensors: no pictures: {error}")
                    self._topics = []
                except Exception as error:  # time goes on
                    self._logger.error(f"sensors: {error!r}", throttle_duration_sec=1.0)

    def _sense(self, view: _View) -> None:
        scene, names = self._scene, view.snapshot.names
        # Another model also when the scene has changed.
        if scene is None or scene.mirrored is not view.model or scene.names != names:
            self._scene = scene = Scene(view.model, names)
            for topics in self._topics:
                topics.initialize(scene)
        while self._resets and self._resets[0].before <= view.number:
            reset = self._resets.popleft()
            for topics in self._topics:
                topics.reset(reset.drones)
        scene.show(view.snapshot)
        for topics in self._topics:
            if topics.listeners:
                topics.sense(view.snapshot, scene)


def declare(simulator: Simulator) -> None:
    """Add the topics that the file of the parameter `sensors` asks for."""
    file = simulator.sensor_file
    threads: dict[tuple[int, type[DeviceTopics]], SensorThread] = {}
    everything: list[DeviceTopics] = []
    taken = [publisher.topic_name for publisher in simulator.publishers]
    for device in file.devices:
        kind = _TOPICS.get(device.type, SampleTopics)
        topics = kind(simulator, file, device)
        for topic in topics.names(simulator.drones):
            if simulator.resolve_topic_name(topic) in taken:
                raise ParameterError("sensors", "names that are not those of other topics", topic)
        if (device.rate, kind) not in threads:
            threads[device.rate, kind] = SensorThread(simulator, device.rate, kind.backlog)
        threads[device.rate, kind].add(topics)
        simulator.for_each_drone(topics.add)
        everything.append(topics)

    def look() -> None:
        for thread in threads.values():
            thread.look(simulator.drones)

    if threads:
        simulator.create_timer(_LOOK_PERIOD, look)
