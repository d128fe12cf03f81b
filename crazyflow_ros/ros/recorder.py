"""Messages into an MCAP file, as rosbag2 and Foxglove read it, without keeping anybody waiting."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import yaml
from geometry_msgs.msg import WrenchStamped
from mcap.writer import Writer
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message

from crazyflow_ros.control import Control
from crazyflow_ros.ros.cdr import XYZ
from crazyflow_ros.ros.frame_ids import MAP
from crazyflow_ros.ros.message_definitions import definition, type_name
from crazyflow_ros.runtime import PhysicsThread, Setpoint, Snapshot
from crazyflow_ros.runtime.setpoints import Start

if TYPE_CHECKING:
    from rclpy.impl.rcutils_logger import RcutilsLogger
    from rclpy.publisher import Publisher

_MAX_QUEUED = 64 * 1024 * 1024  # bytes of messages that wait to be written
_WRITE_PERIOD = 0.05  # s of wall time
_FLUSH_PERIOD = 1.0  # s of wall time, what a killed process loses at most
_FOREVER = {"sec": 9223372036, "nsec": 854775807}  # RMW_DURATION_INFINITE


class RecorderStatus(NamedTuple):
    """How a recorder is doing."""

    written: int
    """Messages in the file, or about to be."""
    dropped: int
    """Messages that came faster than they could be written."""
    error: str
    """What ended the recording, or nothing."""


class _Channel:
    """A topic in the file. It gets its number with its first message."""

    def __init__(self, topic: str, kind: Any, qos: QoSProfile) -> None:
        self.topic, self.kind, self.qos = topic, kind, qos
        self.number: int | None = None


class Recorder:
    """Writes messages in a thread of its own.

    Chunks are completed once a second, so that the file of a process that was killed lacks no more
    than that; what reads files by their index needs `mcap recover` first.

    Args:
        path: The file, which must not exist, or be empty.
        parameters: Of the simulation, stored as JSON in the metadata "crazyflow_ros".
        logger: Hears of what goes wrong later.

    Raises:
        OSError: There is such a file, or it cannot be written.
    """

    def __init__(self, path: Path, parameters: Mapping[str, Any], logger: RcutilsLogger) -> None:
        if path.is_file() and path.stat().st_size:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self._path, self._logger = path, logger
        self._file = path.open("wb")
        self._writer = Writer(self._file)
        self._metadata = {"parameters": json.dumps(parameters)}
        self._schemas: dict[str, int] = {}
        self._lock = threading.Lock()  # guards the next three
        self._queue: list[tuple[_Channel, int, bytes]] = []
        self._queued_bytes = 0
        self._dropped = 0
        self._written = 0
        self._error = ""
        self._closing = threading.Event()
        self._physics: PhysicsThread | None = None
        self._thread = threading.Thread(target=self._main, name="recorder", daemon=True)

    def start(self) -> None:
        """Start writing. Until here the file is empty, and may be taken again."""
        self._thread.start()

    def tap(self, publisher: Publisher[Any]) -> RecordedPublisher:
        """Record what a publisher publishes."""
        channel = _Channel(publisher.topic_name, publisher.msg_type, publisher.qos_profile)
        return RecordedPublisher(publisher, partial(self._put, channel))

    def tap_commands(
        self, conversion: Callable[[Any, str], Setpoint], topic: str, kind: Any
    ) -> Callable[[Any, str], Setpoint]:
        """Record the commands of a topic when they take effect.

        Args:
            conversion: From message and drone to setpoint.
            topic: Its full name.
            kind: Type of the messages.

        Returns:
            The conversion to be used instead. A command that never takes effect, for another one
            followed before the next tick, is not recorded.
        """
        channel = _Channel(topic, kind, QoSProfile(depth=1))

        def convert(message: Any, drone: str) -> Setpoint:
            return _RecordedSetpoint(conversion(message, drone), channel, message)

        return convert

    def follow(self, physics: PhysicsThread, topic: Callable[[str], str]) -> None:
        """Record what takes effect in a simulation, and take the time from it.

        Args:
            physics: Has not been started.
            topic: Gives the full name of a topic.
        """
        self._physics = physics
        channels: dict[str, _Channel] = {}
        latest: dict[str, np.ndarray] = {}

        def note_command(_name: str, setpoint: Setpoint, _tick: int) -> None:
            if isinstance(setpoint, _RecordedSetpoint):
                self._put(setpoint.channel, serialize_message(setpoint.message))

        def note_wrench(now: Snapshot, wrenches: np.ndarray) -> None:
            for name, wrench in zip(now.names, wrenches):
                if np.array_equal(wrench, latest.get(name, np.zeros(6))):
                    continue
                if name not in channels:
                    full_name = topic(f"{name}/external_wrench")
                    channels[name] = _Channel(full_name, WrenchStamped, QoSProfile(depth=1))
                self._put(channels[name], serialize_message(_wrench_message(now, wrench)))
                latest[name] = wrench

        physics.on_command(note_command)
        physics.on_wrench(note_wrench)
        physics.on_reset(lambda _: note_wrench(physics.snapshot, np.zeros((len(physics.names), 6))))

    def _put(self, channel: _Channel, payload: bytes) -> None:
        """Have a message written, or counted if there is no room left; returns at once."""
        assert self._physics is not None
        time_ns = self._physics.snapshot.time_ns
        with self._lock:
            if self._error:
                return
            if self._queued_bytes + len(payload) > _MAX_QUEUED:
                self._dropped += 1
                return
            self._queue.append((channel, time_ns, payload))
            self._queued_bytes += len(payload)

    def status(self) -> RecorderStatus:
        """How it is doing."""
        return RecorderStatus(self._written, self._dropped, self._error)

    def close(self, timeout: float) -> None:
        """Write what is left, and the index; a warning says if that takes longer."""
        self._closing.set()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._logger.warning(f"record: {self._path} is not complete after {timeout:g} s")

    def _main(self) -> None:
        try:
            with self._file:
                self._writer.start(profile="ros2")
                self._writer.add_metadata("crazyflow_ros", self._metadata)
                flushed = time.monotonic()
                while not self._closing.wait(_WRITE_PERIOD):
                    self._write_queue()
                    if time.monotonic() - flushed > _FLUSH_PERIOD:
                        self._writer.flush()
                        flushed = time.monotonic()
                self._write_queue()
                self._writer.finish()
        except Exception as error:  # whatever it is, the simulation goes on
            with self._lock:
                self._error = str(error)
                self._queue.clear()
            self._logger.error(f"record: {self._path} is given up, the simulation goes on: {error}")

    def _write_queue(self) -> None:
        with self._lock:
            batch, self._queue, self._queued_bytes = self._queue, [], 0
        for channel, time_ns, payload in batch:
            if channel.number is None:
                channel.number = self._register(channel)
            self._writer.add_message(channel.number, time_ns, payload, time_ns)
        self._written += len(batch)

    def _register(self, channel: _Channel) -> int:
        name = type_name(channel.kind)
        if name not in self._schemas:
            text = definition(channel.kind).encode()
            self._schemas[name] = self._writer.register_schema(name, "ros2msg", text)
        metadata = {"offered_qos_profiles": _qos_text(channel.qos)}
        return self._writer.register_channel(channel.topic, "cdr", self._schemas[name], metadata)


class RecordedPublisher:
    """A publisher whose messages are recorded, too; the recorder counts as a subscriber."""

    def __init__(self, publisher: Publisher[Any], write: Callable[[bytes], None]) -> None:
        self._publisher, self._write = publisher, write
        self._publish_raw = publisher.handle.publish_raw

    @property
    def handle(self) -> RecordedPublisher:
        """What has `publish_raw`."""
        return self

    def publish(self, message: Any) -> None:
        """Publish a message, serialised or not."""
        self.publish_raw(message if isinstance(message, bytes) else serialize_message(message))

    def publish_raw(self, payload: bytes) -> None:
        """Publish a serialised message."""
        self._write(payload)
        self._publish_raw(payload)

    def get_subscription_count(self) -> int:
        """How many listen, the recorder among them."""
        return self._publisher.get_subscription_count() + 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._publisher, name)


class _RecordedSetpoint(Setpoint):
    """A setpoint with the message that it comes from."""

    def __init__(self, setpoint: Setpoint, channel: _Channel, message: Any) -> None:
        self.channel, self.message = channel, message
        self._setpoint = setpoint

    def check(self, control: Control) -> None:
        """As the setpoint."""
        self._setpoint.check(control)

    def command(self, start: Start, time_ns: int) -> np.ndarray:
        """As the setpoint."""
        return self._setpoint.command(start, time_ns)

    def settled(self, start: Start) -> float:
        """As the setpoint."""
        return self._setpoint.settled(start)


def _wrench_message(now: Snapshot, wrench: np.ndarray) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = MAP
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(now.time_ns, 1_000_000_000)
    for field, values in (("force", wrench[:3]), ("torque", wrench[3:])):
        for axis, value in zip(XYZ, values.tolist()):
            setattr(getattr(message.wrench, field), axis, value)
    return message


def _qos_text(qos: QoSProfile) -> str:
    """What rosbag2 offers when it plays the topic, so that late subscribers hear latched ones."""
    profile = {
        "history": qos.history.name.lower(),
        "depth": qos.depth,
        "reliability": qos.reliability.name.lower(),
        "durability": qos.durability.name.lower(),
        "deadline": _FOREVER,
        "lifespan": _FOREVER,
        "liveliness": "automatic",
        "liveliness_lease_duration": _FOREVER,
        "avoid_ros_namespace_conventions": False,
    }
    return yaml.safe_dump([profile], sort_keys=False)
