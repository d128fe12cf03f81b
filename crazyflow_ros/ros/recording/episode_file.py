"""An MCAP file of one stretch of time, as rosbag2 writes it, alone or in a folder of its own."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from rclpy.qos import DurabilityPolicy, QoSProfile

from crazyflow_ros.extras import extra
from crazyflow_ros.ros.messages.message_definitions import definition
from crazyflow_ros.ros.messages.serialisation import type_name

with extra("record"):
    from mcap.writer import Writer

METADATA = "crazyflow_ros"
"""Name of this package's metadata."""

_BAG_VERSION = 9  # of rosbag2's metadata in Jazzy, Kilted and Lyrical
_FOREVER = {"sec": 9223372036, "nsec": 854775807}  # RMW_DURATION_INFINITE


class Channel:
    """A topic in recordings.

    Args:
        topic: Its full name.
        kind: Type of its messages.
        qos: That of its publisher.
        kept: Number of its last messages with which later episodes begin if it is latched.
        is_there: Returns whether it still has its publisher.
    """

    def __init__(
        self,
        topic: str,
        kind: Any,
        qos: QoSProfile,
        kept: int = 1,
        is_there: Callable[[], bool] = lambda: True,
    ) -> None:
        self.topic, self.kind, self.qos, self.is_there = topic, kind, qos, is_there
        self.kept = kept if qos.durability is DurabilityPolicy.TRANSIENT_LOCAL else 0


def place_of(path: Path, episode: int) -> Path:
    """Return the file or folder of an episode of a recording, of which `path` is the first."""
    return path.with_name(f"{path.stem}_{episode}{path.suffix}") if episode else path


def is_folder(path: Path) -> bool:
    """Return whether a recording of this name becomes folders, as those of rosbag2."""
    return not path.suffix and (path.is_dir() or not path.exists())


class EpisodeFile:
    """A file to which one thread writes messages.

    Args:
        place: The file, which must be empty or not exist, or the folder, without other files.
        in_folder: Whether it is the folder.

    Raises:
        OSError: The file is not empty or cannot be written.
    """

    def __init__(self, place: Path, *, in_folder: bool) -> None:
        self.path = place / f"{place.name}_0.mcap" if in_folder else place
        if in_folder:
            place.mkdir(exist_ok=True)
            if any(file != self.path for file in place.iterdir()):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
        self._in_folder = in_folder
        self._file = _new_file(self.path)
        self._writer = Writer(self._file)
        self._schemas: dict[str, int] = {}
        self._channels: dict[Channel, tuple[int, dict[str, Any]]] = {}
        self._topics: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self._begin_ns: int | None = None
        self._end_ns = 0

    def begin(self, metadata: Mapping[str, str]) -> None:
        """Write the head of the file, and the package's metadata."""
        self._writer.start(profile="ros2")
        self._writer.add_metadata(METADATA, dict(metadata))

    def write(self, channel: Channel, time_ns: int, payload: bytes) -> None:
        """Write a message with its time in the file [ns]."""
        if channel not in self._channels:
            self._channels[channel] = self._register(channel)
        number, topic = self._channels[channel]
        self._writer.add_message(number, time_ns, payload, time_ns)
        topic["message_count"] += 1
        self._begin_ns = time_ns if self._begin_ns is None else self._begin_ns
        self._end_ns = time_ns

    def flush(self) -> None:
        """Complete the present chunk."""
        self._writer.flush()

    def finish(self, following: Path | None = None) -> None:
        """Complete the file, which names the next episode's file, if there is one."""
        with self._file:
            if following is not None:
                name = os.path.relpath(following, self.path.parent)
                self._writer.add_metadata(METADATA, {"next": name})
            bag = self._bag()
            text = yaml.safe_dump(bag, sort_keys=False)
            self._writer.add_metadata("rosbag2", {"serialized_metadata": text})
            self._writer.finish()
        if self._in_folder:
            text = yaml.safe_dump({"rosbag2_bagfile_information": bag}, sort_keys=False)
            self.path.with_name("metadata.yaml").write_text(text)

    def close(self) -> None:
        """Leave the file as it is, after an error."""
        with suppress(OSError):  # the same again: what could not be written is still buffered
            self._file.close()

    def _register(self, channel: Channel) -> tuple[int, dict[str, Any]]:
        """Return the number of a topic in the file, and its entry for rosbag2."""
        name = type_name(channel.kind)
        if name not in self._schemas:
            text = definition(channel.kind).encode()
            self._schemas[name] = self._writer.register_schema(name, "ros2msg", text)
        key = channel.topic, name
        if key not in self._topics:
            qos = _offered(channel.qos)
            metadata = {"offered_qos_profiles": yaml.safe_dump([qos], sort_keys=False)}
            schema = self._schemas[name]
            number = self._writer.register_channel(channel.topic, "cdr", schema, metadata)
            about = {
                "name": channel.topic,
                "type": name,
                "serialization_format": "cdr",
                "offered_qos_profiles": [qos],
                "type_description_hash": "",
            }
            self._topics[key] = number, {"topic_metadata": about, "message_count": 0}
        return self._topics[key]

    def _bag(self) -> dict[str, Any]:
        """Return what `rosbag2_storage::BagMetadata` has."""
        topics, begin_ns = [topic for _, topic in self._topics.values()], self._begin_ns or 0
        span = {
            "starting_time": {"nanoseconds_since_epoch": begin_ns},
            "duration": {"nanoseconds": self._end_ns - begin_ns},
            "message_count": sum(topic["message_count"] for topic in topics),
        }
        name = self.path.name
        return {
            "version": _BAG_VERSION,
            "storage_identifier": "mcap",
            **span,
            "topics_with_message_count": topics,
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [name],
            "files": [{"path": name, **deepcopy(span)}],  # or YAML would have anchors
            "custom_data": {},
            "ros_distro": os.environ.get("ROS_DISTRO", ""),
        }


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


def _offered(qos: QoSProfile) -> dict[str, Any]:
    """Return the QoS profile for rosbag2, so that late subscribers receive latched messages."""
    return {
        "history": qos.history.name.lower(),
        "depth": qos.depth,
        "reliability": qos.reliability.name.lower(),
        "durability": qos.durability.name.lower(),
        "deadline": dict(_FOREVER),
        "lifespan": dict(_FOREVER),
        "liveliness": "automatic",
        "liveliness_lease_duration": dict(_FOREVER),
        "avoid_ros_namespace_conventions": False,
    }
