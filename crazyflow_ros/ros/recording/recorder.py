"""Recording of messages to MCAP files for rosbag2 and Foxglove, without blocking publishers."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nav_msgs.msg import Path as Course
from rclpy.exceptions import InvalidHandle

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.resources import package_version
from crazyflow_ros.ros.messages.tapped_publisher import TappedPublisher
from crazyflow_ros.ros.recording.episode_file import Channel, EpisodeFile, is_folder, place_of

if TYPE_CHECKING:
    from rclpy.publisher import Publisher

    from crazyflow_ros.checks.throttled_logger import Logger

PARTIAL = "partial"
"""Key of the metadata with the reason why a file cannot be replayed."""

_MAX_QUEUED = 64 * 1024 * 1024  # bytes of queued messages
_WRITE_PERIOD = 0.05  # s of wall time
_FLUSH_PERIOD = 1.0  # s of wall time; a killed process loses no more than this


class RecorderStatus(NamedTuple):
    """Status of a recorder."""

    written: int
    """Number of messages written or being written."""
    dropped: int
    """Number of messages dropped because the queue was full."""
    error: str
    """Error that ended the recording, or an empty string."""


class _Queued(NamedTuple):
    channel: Channel
    time_ns: int
    payload: bytes
    begins: bool
    """Whether time has jumped since the message before."""


class Recorder:
    """A writer of messages with its own thread.

    When time jumps, a new file begins with what latched topics had published last: every file
    holds one stretch of time. Chunks are completed once a second, so a killed process loses at
    most one second, and the index that other programs need.

    Args:
        path: The first file, which must be empty or not exist; without a suffix, the folder.
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
        OSError: The file is not empty, has another suffix, or cannot be written.
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
        if path.suffix not in ("", ".mcap") and not path.exists():  # readers go by the suffix
            text = "expected the suffix .mcap, or none for a folder"
            raise OSError(errno.EINVAL, text, str(path))
        self._in_folder = is_folder(path)
        self._file = EpisodeFile(path, in_folder=self._in_folder)
        self._metadata = {"parameters": json.dumps(parameters), "version": package_version()}
        if not is_complete:
            self._metadata[PARTIAL] = "only topics as a subscriber received them"
        self._origin_ns, self._wall_time = 0, wall_time
        self._episode, self._number = 0, 0
        self._latched: dict[str, tuple[Channel, deque[bytes]]] = {}
        self._lock = threading.Lock()  # guards the next five
        self._queue: list[_Queued] = []
        self._queued_bytes = 0
        self._dropped = 0
        self._latest_ns = 0
        self._jump_ns: int | None = None
        self._written = 0
        self._error = ""
        self._closing = threading.Event()
        self.time_ns: Callable[[], int] = lambda: 0
        self._thread = threading.Thread(target=self._main, name="recorder", daemon=True)

    def start(self, periods: Iterable[int] = ()) -> None:
        """Start writing; until then the file stays empty and can be reused.

        Args:
            periods: Ticks between two looks at the simulation, of all that look, which group its
                ticks.
        """
        if self._wall_time:
            self._origin_ns = time.time_ns()
        self._metadata["origin_ns"] = str(self._origin_ns)
        self._metadata["periods"] = json.dumps(sorted(periods))
        # Latched topics come first, as in the later files.
        self._queue.sort(key=lambda queued: (queued.time_ns, not queued.channel.kept))
        self._thread.start()
        self._logger.info(f"record: writes {shown_path(self._file.path)}")

    def tap(self, publisher: Publisher[Any]) -> RecordedPublisher:
        """Return a publisher whose messages are recorded, too."""
        channel = Channel(
            publisher.topic_name,
            publisher.msg_type,
            publisher.qos_profile,
            kept=0 if publisher.msg_type is Course else 1,  # which is over when time jumps
            is_there=partial(_is_there, publisher),
        )
        return RecordedPublisher(publisher, partial(self.put, channel))

    def put(self, channel: Channel, payload: bytes) -> None:
        """Queue a serialised message for writing, from any thread, without blocking.

        If the queue is full, the message is counted and dropped.
        """
        with self._lock:  # also while reading the time: what is queued is in order
            time_ns = self.time_ns()
            if self._error:
                return
            if self._queued_bytes + len(payload) > _MAX_QUEUED:
                self._dropped += 1
                return
            begins = time_ns < self._latest_ns or time_ns == self._jump_ns
            self._jump_ns = None if begins else self._jump_ns
            self._latest_ns = time_ns
            self._queue.append(_Queued(channel, time_ns, payload, begins))
            self._queued_bytes += len(payload)

    def expect_jump(self, time_ns: int) -> None:
        """Begin a new file with the first message of this time [ns], which may be a later one."""
        with self._lock:
            self._jump_ns = time_ns

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
            self._file.begin({**self._metadata, "episode": "0"})
            flushed = time.monotonic()
            while not self._closing.wait(_WRITE_PERIOD):
                self._write_queue()
                if time.monotonic() - flushed > _FLUSH_PERIOD:
                    self._file.flush()
                    flushed = time.monotonic()
            self._write_queue()
            self._file.finish()
        except Exception as error:  # no error may stop the simulation
            with self._lock:
                self._error = str(error)
                self._queue.clear()
            self._file.close()
            self._logger.error(
                f"record: writing {self._file.path} failed, the simulation continues: {error}"
            )

    def _write_queue(self) -> None:
        with self._lock:
            batch, self._queue, self._queued_bytes = self._queue, [], 0
        for channel, time_ns, payload, begins in batch:
            if begins:
                self._begin_episode(self._origin_ns + time_ns)
            if channel.kept:
                _, last = self._latched.setdefault(
                    channel.topic, (channel, deque(maxlen=channel.kept))
                )
                last.append(payload)
            self._file.write(channel, self._origin_ns + time_ns, payload)
            self._written += 1

    def _begin_episode(self, time_ns: int) -> None:
        """Complete the file, and begin the next one with the latched messages."""
        self._episode += 1
        while True:
            self._number += 1  # files of other recordings may be there
            try:
                place = place_of(self._path, self._number)
                following = EpisodeFile(place, in_folder=self._in_folder)
                break
            except FileExistsError:
                continue
        before, self._file = self._file, following
        before.finish(following.path)
        first = {"episode": str(self._episode), "first": self._path.name}
        following.begin({**self._metadata, **first})
        for channel, payloads in self._latched.values():
            for payload in payloads if channel.is_there() else ():
                following.write(channel, time_ns, payload)
        self._logger.info(f"record: time has jumped, and goes on in {shown_path(following.path)}")


class RecordedPublisher(TappedPublisher):
    """A publisher whose messages are recorded, too; the recorder counts as a subscriber."""

    def get_subscription_count(self) -> int:
        """Return the number of subscribers, including the recorder."""
        return self.publisher.get_subscription_count() + 1


def _is_there(publisher: Publisher[Any]) -> bool:
    try:
        with publisher.handle:
            return True
    except InvalidHandle:  # it has been destroyed
        return False
