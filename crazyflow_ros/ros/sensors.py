"""<drone>/<sensor>: what the file of the parameter `sensors` asks for, sensed beside the physics.

The physics thread only leaves its snapshot, if somebody listens and there is room. Sensors make of
it what they measure, cameras of one rate in a thread and all others in another one.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from itertools import chain
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
_BACKLOG = 50  # snapshots that wait to be sensed; of a camera one, so that pictures are of now
_LOOK_PERIOD = 0.2  # s of wall time after which it is seen who listens


class _View(NamedTuple):
    """What there is to be sensed."""

    number: int
    rate: int
    """Of the sensors that are due [Hz]."""
    snapshot: Snapshot
    model: mujoco.MjModel


class _Reset(NamedTuple):
    """Drones were put back to their initial state."""

    before: int
    """Number of the first view after it."""
    drones: tuple[str, ...]


class SensorThread:
    """Senses and publishes.

    Args:
        simulator: The node.
        name: Of the thread.
        backlog: Snapshots that wait at most; of more the oldest are left out.
    """

    def __init__(self, simulator: Simulator, name: str, backlog: int) -> None:
        self._physics, self._logger = simulator.physics, simulator.get_logger()
        self._topics: dict[int, list[DeviceTopics]] = {}
        self._wanted: frozenset[int] = frozenset()  # rates at which somebody listens
        self._scene: Scene | None = None
        self._shown: Snapshot | None = None
        self._n_views = 0
        self._views: deque[_View] = deque(maxlen=backlog)
        self._resets: deque[_Reset] = deque()
        self._due = threading.Event()
        self._physics.on_reset(self._note_reset)
        threading.Thread(target=self._main, name=name, daemon=True).start()

    def add(self, topics: DeviceTopics, rate: int) -> None:
        """Sense and publish these, too, at a rate [Hz]; before the physics starts."""
        if rate not in self._topics:
            physics = self._physics
            period = ticks_per_period(physics.freq, rate, f"sensors: the rate {rate}")
            physics.every(rate, partial(self._take, rate, period), "sensors", observes=True)
        self._topics.setdefault(rate, []).append(topics)

    def look(self, drones: tuple[str, ...]) -> None:
        """See who listens. In the executor's thread."""
        for topics in chain(*self._topics.values()):
            topics.look(drones)
        self._wanted = frozenset(
            rate for rate, kept in self._topics.items() if any(topics.listeners for topics in kept)
        )

    def _take(self, rate: int, period: int, snapshot: Snapshot) -> None:
        """In the physics thread."""
        # It is also called between two periods, after a step and after changes by hand.
        if rate in self._wanted and snapshot.tick % period == 0:
            view = _View(self._n_views, rate, snapshot, self._physics.mirror.model)
            self._views.append(view)
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
                    for topics in self._topics.values():
                        topics.clear()
                except Exception as error:  # time goes on
                    self._logger.error(f"sensors: {error!r}", throttle_duration_sec=1.0)

    def _sense(self, view: _View) -> None:
        scene, names = self._scene, view.snapshot.names
        # Another model also when the scene has changed.
        if scene is None or scene.mirrored is not view.model or scene.names != names:
            self._scene = scene = Scene(view.model, names)
            self._shown = None
            for topics in chain(*self._topics.values()):
                topics.initialize(scene)
        while self._resets and self._resets[0].before <= view.number:
            reset = self._resets.popleft()
            for topics in chain(*self._topics.values()):
                topics.reset(reset.drones)
        heard = [topics for topics in self._topics[view.rate] if topics.listeners]
        if any(topics.needs_scene for topics in heard) and self._shown is not view.snapshot:
            scene.show(view.snapshot)
            self._shown = view.snapshot
        for topics in heard:
            topics.sense(view.snapshot, scene)


def declare(simulator: Simulator) -> None:
    """Add the topics that the file of the parameter `sensors` asks for."""
    file = simulator.sensor_file
    threads: dict[int, SensorThread] = {}
    taken = {publisher.topic_name for publisher in simulator.publishers}
    for device in file.devices:
        topics = _TOPICS.get(device.type, SampleTopics)(simulator, file, device)
        for topic in topics.names(simulator.drones):
            if simulator.resolve_topic_name(topic) in taken:
                raise ParameterError("sensors", "names that are not those of other topics", topic)
        # OpenGL keeps nobody waiting. All others are Python, of which one thread is the least load.
        key = device.rate if device.type == "camera" else 0
        if key not in threads:
            threads[key] = SensorThread(
                simulator, f"sensors {key}" if key else "sensors", 1 if key else _BACKLOG
            )
        threads[key].add(topics, device.rate)
        simulator.for_each_drone(topics.add)

    def look() -> None:
        for thread in threads.values():
            thread.look(simulator.drones)

    if threads:
        simulator.create_timer(_LOOK_PERIOD, look)
