"""Sensors and GPIOs for the stock ros2_control plugin `CMTopicSystem`.

The component `<drone>_sensors` subscribes to names and values under its own name, in the namespace
of its controller manager: the simulator's namespace or the drone's namespace in it. Its
subscriptions receive no earlier messages, so the names are published repeatedly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pal_statistics_msgs.msg import StatisticsNames, StatisticsValues
from rclpy.publisher import Publisher

from crazyflow_ros.description.interfaces import AXES, BODY, SENSORS
from crazyflow_ros.description.ros2_control import sensors_component
from crazyflow_ros.lockstep.states import StateInterfaces
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.messages.cdr import layout
from crazyflow_ros.ros.messages.numeric_message import elements
from crazyflow_ros.ros.messages.outbox import Row, SerialisedMessages
from crazyflow_ros.ros.topics.state_topics import STATE_QOS
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene import Mirror

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_COMPONENTS = (*SENSORS, *AXES, BODY)
_VERSION = 1  # of the names; the plugin treats values of version 0 as missing
_REPEAT_PERIOD = 0.2  # s of wall time


class SensorTopics:
    """Topics <drone>_sensors/names and <drone>_sensors/values, also in the drone's namespace."""

    def __init__(self, simulator: Host, door: TopicSource) -> None:
        self._states = StateInterfaces(simulator.parameters.drone_model)
        self._simulator, self._listeners = simulator, simulator.listeners
        self._drones = simulator.parameters.by_door
        states = len(_names(""))
        prototype = StatisticsValues(values=[0.0] * states, names_version=_VERSION)
        prototypes = [prototype] * len(self._drones)
        self._messages = SerialisedMessages(layout(prototypes, [elements("values", states)]))
        self._topics: dict[str, _Topic] = {}
        for drone in self._drones:
            self._add("", drone)
        simulator.for_each_drone(lambda drone: self._add(f"{drone}/", drone))
        self._wanted: list[_Topic] = []
        self._row = Row(self._messages, [])
        self._listeners.follow(self._address)
        simulator.regular_calls.add(self._repeat, _REPEAT_PERIOD)
        door.add_output(self._publish)

    def _publish(self, snapshot: Snapshot, mirror: Mirror, level: np.ndarray) -> None:
        if self._wanted:
            values = self._states.others(snapshot, mirror, level)
            self._row.send(snapshot.time_ns, [values])

    def _add(self, prefix: str, drone: str) -> None:
        """Create the topics of a drone that a door flies, in place of those that have gone."""
        if drone not in self._drones:
            return
        # The plugin's node has the name of the component in lower case.
        topic = f"{prefix}{sensors_component(drone).lower()}"
        values = f"{topic}/values"
        self._listeners.create_publisher(StatisticsValues, values, STATE_QOS)
        self._topics[topic] = _Topic(
            self._simulator.create_publisher(StatisticsNames, f"{topic}/names", STATE_QOS),
            StatisticsNames(names=_names(drone), names_version=_VERSION),
            values,
            self._drones.index(drone),
        )

    def _address(self) -> None:
        heard = [(topic, self._listeners.heard(topic.values)) for topic in self._topics.values()]
        self._row = Row(self._messages, [(t.drone, values) for t, values in heard if values])
        self._wanted = [topic for topic, values in heard if values]
        self._repeat()

    def _repeat(self) -> None:
        for topic in self._wanted:
            topic.publisher.publish(topic.names)


class _Topic(NamedTuple):
    """Two topics with the states of one drone."""

    publisher: Publisher[Any]
    """Publisher of the names."""
    names: StatisticsNames
    values: str
    """Topic of the values."""
    drone: int
    """Index of the drone."""


def _names(drone: str) -> list[str]:
    return [f"state_interface.{c.name(drone)}/{state}" for c in _COMPONENTS for state in c.states]
