"""Recording of topics as a subscriber, started and ended while the simulator runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock

from crazyflow_ros.ros.discovery import published
from crazyflow_ros.ros.messages.message_definitions import type_of
from crazyflow_ros.ros.messages.qos import qos_for
from crazyflow_ros.ros.messages.times import STEADY, nanoseconds
from crazyflow_ros.ros.recording.episode_file import Channel
from crazyflow_ros.ros.recording.recorder import Recorder, RecorderStatus
from crazyflow_ros.ros.topics.display import DISPLAY

_LOG = "rcl_interfaces/msg/Log"  # latched, too, but what was said is over
_CLOCK = "rosgraph_msgs/msg/Clock"
_LOOK = 0.5  # s of wall time between two searches for topics
_LATCHED = 50  # last messages of a latched topic, of all its publishers
_DEPTH = 1000  # messages of a topic queued for this process
_MOST_TOPICS = 1000
_CLOSING = 2.0  # s of wall time to complete the file


class TopicRecording:
    """An MCAP file of all topics, from `begin` until `close`.

    It holds what a subscriber receives. Only a recording of the simulator itself (its parameter
    `record`) has all messages and commands, and can be replayed.

    Args:
        node: The node that subscribes; its executor runs elsewhere.
        simulator: Name of the simulator's node.
        path: The file, which must be empty or not exist.
        parameters: Parameters of the simulator, for the file.
        time_ns: Present simulated time [ns].

    Raises:
        OSError: The file cannot be written.
        ModuleNotFoundError: The package that writes it is not installed.
    """

    def __init__(
        self, node: Node, simulator: str, path: Path, parameters: Mapping[str, Any], time_ns: int
    ) -> None:
        self.path = path
        self._node, self._simulator, self._time_ns = node, simulator, time_ns
        self._clocks: list[str] = []  # of this simulator: others have other times
        self._subscriptions: dict[str, Any] = {}
        self._unknown: set[str] = set()
        self._is_full = False
        # Same as other topics.
        self._display = f"{node.resolve_topic_name(simulator)}/{DISPLAY}/"
        self._timer: Any = None
        self._recorder = Recorder(path, parameters, node.get_logger(), is_complete=False)
        self._recorder.time_ns = lambda: self._time_ns
        self._recorder.start()

    def status(self) -> RecorderStatus:
        """Return how many messages have been written or dropped, and any error."""
        return self._recorder.status()

    def begin(self) -> None:
        """Subscribe; call it in the thread of the node."""
        self._timer = self._node.create_timer(_LOOK, self._look, clock=STEADY)
        self._look()

    def end(self) -> None:
        """Unsubscribe; call it in the thread of the node. Once ended, it does nothing."""
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None
        for subscription in self._subscriptions.values():
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()

    def close(self) -> None:
        """Complete the file, which takes up to 2 s."""
        self._recorder.close(_CLOSING)

    def _look(self) -> None:
        self._clocks = self._clocks or published(self._node, self._simulator, _CLOCK)
        for topic, (kind, *_) in self._node.get_topic_names_and_types():
            is_old = topic in self._subscriptions or topic in self._unknown
            is_double = topic.startswith(self._display)
            is_hidden = "/_" in topic  # those of actions: ros2 bag leaves them out, too
            if is_old or is_double or is_hidden or self._is_full:
                continue
            if len(self._subscriptions) >= _MOST_TOPICS:
                self._is_full = True
                self._node.get_logger().warning(
                    f"{topic} and all further topics are not recorded: the limit is {_MOST_TOPICS}"
                )
                continue
            publishers = self._node.get_publishers_info_by_topic(topic)
            if publishers:
                self._subscribe(topic, kind, [end.qos_profile for end in publishers])

    def _subscribe(self, topic: str, kind: str, offered: Sequence[QoSProfile]) -> None:
        try:
            message = type_of(kind)
        except ValueError as error:
            self._unknown.add(topic)
            self._node.get_logger().warning(f"{topic} is not recorded: {error}")
            return
        kept = 0 if kind == _LOG else _LATCHED
        receive = partial(self._note, Channel(topic, message, offered[0], kept))
        self._subscriptions[topic] = self._node.create_subscription(
            message, topic, receive, qos_for(offered, _DEPTH), raw=True
        )

    def _note(self, channel: Channel, payload: bytes) -> None:
        if channel.topic in self._clocks:
            self._time_ns = nanoseconds(deserialize_message(payload, Clock).clock)
        self._recorder.put(channel, payload)
