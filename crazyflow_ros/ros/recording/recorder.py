"""Recording of messages to an MCAP file for rosbag2 and Foxglove, without blocking publishers."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import yaml
from rclpy.qos import QoSProfile

from crazyflow_ros.extras import extra
from crazyflow_ros.resources import package_version
from crazyflow_ros.ros.messages.message_definitions import definition
from crazyflow_ros.ros.messages.serialisation import type_name
from crazyflow_ros.ros.messages.tapped_publisher import TappedPublisher

with extra("record"):
    from mcap.writer import Writer

if TYPE_CHECKING:
    from rclpy.publisher import Publisher

    from crazyflow_ros.checks.throttled_logger import Logger

PARTIAL = "partial"
"""Key of the metadata with the reason why a file cannot be replayed."""

_MAX_QUEUED = 64 * 1024 * 1024  # bytes of queued messages
_WRITE_PERIOD = 0.05  # s of wall time
_FLUSH_PERIOD = 1.0  # s of wall time; a killed process loses no more than this
_FOREVER = {"sec": 9223372036, "nsec": 854775807}  # RMW_DURATION_INFINITE


class RecorderStatus(NamedTuple):
    """Status of a recorder."""

    written: int
    """Number of messages written or being written."""
    dropped: int
    """Number of messages dropped because the queue was full."""
    error: str
    """Error that ended the recording, or an empty string."""


class Channel:
    """A topic in the file; its number is assigned with its first message."""

    def __init__(self, topic: str, kind: Any, qos: QoSProfile) -> None:
        self.topic, self.kind, self.qos = topic, kind, qos
        self.number: int | None = None


class Recorder:
    """A writer of messages with its own thread.

    Chunks are completed once a second, so a killed process loses at most one second, and the index
    that other programs need.

    Args:
        path: The file, which must be empty or not exist.
        parameters: Parameters of the simulation, stored as JSON in the metadata "crazyflow_ros",
            where the version of this package is, too.
        logger: Logger for later errors.
        wall_time: Whether the file records simulation time 0 as the wall time of the start instead
            of 1970; the stamps in the messages stay the same.
        is_complete: Whether the file will have all commands since the start of the simulation, so
            that it can be replayed.

    Attributes:
        time_ns: Returns the simulation time [ns] for new messages.

    Raises:
        OSError: The file is not empty or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        parameters: Mapping[str, Any],
        logger: Logger,
        wall_time: bool = False,
        is_complete: bool = True,
    ) -> None:
        self._path, self._logger = path, logger
        self._file = _new_file(path)
        self._writer = Writer(self._file)
        self._metadata = {"parameters": json.dumps(parameters), "version": package_version()}
        if not is_complete:
            self._metadata[PARTIAL] = "only topics as a subscriber received them"
        self._origin_ns, self._wall_time = 0, wall_time
        self._schemas: dict[str, int] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()  # guards the next three
        self._queue: list[tuple[Channel, int, bytes]] = []
        self._queued_bytes = 0
        self._dropped = 0
        self._written = 0
        self._error = ""
        self._closing = threading.Event()
        self.time_ns: Callable[[], int] = lambda: 0
        self._thread = threading.Thread(target=self._main, name="recorder", daemon=True)

    def start(self) -> None:
        """Start writing; until then the file stays empty and can be reused."""
        if self._wall_time:
            self._origin_ns = time.time_ns()
        self._metadata["origin_ns"] = str(self._origin_ns)
        self._thread.start()

    def tap(self, publisher: Publisher[Any]) -> RecordedPublisher:
        """Return a publisher whose messages are recorded, too."""
        channel = Channel(publisher.topic_name, publisher.msg_type, publisher.qos_profile)
        return RecordedPublisher(publisher, partial(self.put, channel))

    def put(self, channel: Channel, payload: bytes) -> None:
        """Queue a serialised message for writing, from any thread, without blocking.

        If the queue is full, the message is counted and dropped.
        """
        time_ns = self.time_ns()
        with self._lock:
            if self._error:
                return
            if self._queued_bytes + len(payload) > _MAX_QUEUED:
                self._dropped += 1
                return
            self._queue.append((channel, time_ns, payload))
            self._queued_bytes += len(payload)

    def status(self) -> RecorderStatus:
        """Return the status."""
        return RecorderStatus(self._written, self._dropped, self._error)

    def close(self, timeout: float) -> None:
        """Write the remaining messages and the index; warn if that exceeds the timeout."""
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
        except Exception as error:  # no error may stop the simulation
            with self._lock:
                self._error = str(error)
                self._queue.clear()
            self._logger.error(
                f"record: writing {self._path} failed, the simulation continues: {error}"
            )

    def _write_queue(self) -> None:
        with self._lock:
            batch, self._queue, self._queued_bytes = self._queue, [], 0
        for channel, time_ns, payload in batch:
            if channel.number is None:
                channel.number = self._register(channel)
            in_file = self._origin_ns + time_ns
            self._writer.add_message(channel.number, in_file, payload, in_file)
        self._written += len(batch)

    def _register(self, channel: Channel) -> int:
        name = type_name(channel.kind)
        if name not in self._schemas:
            text = definition(channel.kind).encode()
            self._schemas[name] = self._writer.register_schema(name, "ros2msg", text)
        key = channel.topic, name
        if key not in self._numbers:
            metadata = {"offered_qos_profiles": _qos_text(channel.qos)}
            schema = self._schemas[name]
            number = self._writer.register_channel(channel.topic, "cdr", schema, metadata)
            self._numbers[key] = number
        return self._numbers[key]


class RecordedPublisher(TappedPublisher):
    """A publisher whose messages are recorded, too; the recorder counts as a subscriber."""

    def get_subscription_count(self) -> int:
        """Return the number of subscribers, including the recorder."""
        return self.publisher.get_subscription_count() + 1


def _new_file(path: Path) -> BinaryIO:
    """Open a file for writing, which must be empty or not exist.

    Raises:
        OSError: It is not empty, is a FIFO, or cannot be written; it stays as it is.
    """
    # Opening a FIFO would wait for a reader, and truncating could meet a file of this moment.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISFIFO(status.st_mode):
            raise OSError(errno.EINVAL, "it is a FIFO", str(path))
        if status.st_size:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "wb")
    except BaseException:
        os.close(descriptor)
        raise


def _qos_text(qos: QoSProfile) -> str:
    """Return the QoS profile for rosbag2, so that late subscribers receive latched messages."""
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
