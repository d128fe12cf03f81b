"""MCAP files, of which only the wanted messages are read: files of hours have millions of others.

The library's reader takes every chunk apart; the indices of the messages lead to the wanted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from crazyflow_ros.extras import extra

with extra("record"):
    from mcap.data_stream import ReadDataStream
    from mcap.exceptions import McapError
    from mcap.reader import make_reader
    from mcap.records import Chunk, ChunkIndex
    from mcap.stream_reader import get_chunk_data_stream

_MAGIC = b"\x89MCAP0\r\n"  # first and last bytes of a file
_SMALLEST = 2 * len(_MAGIC) + 1  # bytes
_RECORD = 1 + 8  # bytes before the content of a record: its kind and its length
_MESSAGE = _RECORD + 2 + 4 + 8 + 8  # bytes before the data of a message
_INDEX = _RECORD + 2 + 4  # bytes before the entries of an index of messages
_LARGEST_CHUNK = 1 << 29  # bytes unpacked; the usual ones have a megabyte

Choice = Callable[[np.ndarray], np.ndarray]
"""Takes the times [ns] of consecutive messages, and returns which of them to read."""


class Message(NamedTuple):
    """A message of a file."""

    topic: str
    time_ns: int
    """When it was recorded [ns]."""
    data: bytes


class McapFile:
    """A complete MCAP file.

    Args:
        path: The file.

    Attributes:
        path: As given.
        types: Type of each topic, such as `nav_msgs/msg/Odometry`.
        counts: Number of messages of each topic.
        begin_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].
        metadata: Entries of each metadata record, by its name.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a complete MCAP file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            _check_ends(file, path)
            try:
                reader = make_reader(file)
                summary = reader.get_summary()
                if summary is None or summary.statistics is None or not summary.chunk_indexes:
                    raise ValueError(_mended(path, "it has no index"))
                self.metadata = {entry.name: entry.metadata for entry in reader.iter_metadata()}
            except (McapError, EOFError) as error:
                raise ValueError(_mended(path, f"its index is damaged: {error}")) from None
        self._chunks = sorted(summary.chunk_indexes, key=lambda chunk: chunk.chunk_start_offset)
        if not all(chunk.message_index_offsets for chunk in self._chunks):
            raise ValueError(_mended(path, "its messages have no index"))
        statistics, channels = summary.statistics, summary.channels.values()
        self.begin_ns, self.end_ns = statistics.message_start_time, statistics.message_end_time
        self.types = {
            channel.topic: summary.schemas[channel.schema_id].name
            for channel in channels
            if channel.schema_id in summary.schemas and channel.message_encoding == "cdr"
        }
        self._topics = {channel.id: channel.topic for channel in channels}
        self.counts = dict.fromkeys(self.types, 0)
        for number, count in statistics.channel_message_counts.items():
            if self._topics.get(number) in self.counts:
                self.counts[self._topics[number]] += count

    @property
    def goes_back(self) -> bool:
        """Whether recorded times go back, by more than other programs mix them."""
        ends = np.maximum.accumulate([chunk.message_end_time for chunk in self._chunks])
        starts = np.array([chunk.message_start_time for chunk in self._chunks])
        return bool((starts[1:] < ends[:-1] - 500_000_000).any())

    def messages(
        self,
        topics: Mapping[str, Choice | None],
        begin_ns: int = 0,
        end_ns: int | None = None,
    ) -> Iterator[Message]:
        """Read the messages of some topics, chunk by chunk, each in the order of their times.

        Args:
            topics: The topics, each with what chooses among its messages; None: all.
            begin_ns: Time of the first one [ns].
            end_ns: Time of the last one [ns]; by default, to the end.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is damaged.
        """
        last = self.end_ns if end_ns is None else end_ns
        wanted = {number: topic for number, topic in self._topics.items() if topic in topics}
        with self.path.open("rb") as file:
            for chunk in self._chunks:
                if chunk.message_start_time > last or chunk.message_end_time < begin_ns:
                    continue
                found = []
                for number, place in chunk.message_index_offsets.items():
                    if number in wanted:
                        times, offsets = _entries(file, place)
                        mask = (times >= begin_ns) & (times <= last)
                        if (choose := topics[wanted[number]]) is not None and mask.any():
                            mask[mask] = choose(times[mask])
                        found += [
                            (time, offset, wanted[number])
                            for time, offset in zip(times[mask].tolist(), offsets[mask].tolist())
                        ]
                if found:
                    data = _unpacked(file, chunk, self.path)
                    for time_ns, offset, topic in sorted(found):
                        yield Message(topic, time_ns, _message_at(data, offset, self.path))


def every(period_ns: int) -> Choice:
    """Return a choice of one message in each period [ns]."""
    latest = -1

    def choose(times: np.ndarray) -> np.ndarray:
        nonlocal latest
        periods = times // period_ns
        mask = np.diff(periods, prepend=latest) != 0
        latest = int(periods[-1])
        return mask

    return choose


def after_silence(silence_ns: int) -> Choice:
    """Return a choice of the messages before which there were none for a while [ns]."""
    latest = -silence_ns

    def choose(times: np.ndarray) -> np.ndarray:
        nonlocal latest
        mask = np.diff(times, prepend=latest) >= silence_ns
        latest = int(times[-1])
        return mask

    return choose


def _check_ends(file: BinaryIO, path: Path) -> None:
    """Raise ValueError if a file does not begin and end as it should."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError(f"{path} is not an MCAP file")
    size = file.seek(0, 2)
    file.seek(max(size - len(_MAGIC), 0))
    if file.read() != _MAGIC or size < _SMALLEST:
        raise ValueError(_mended(path, "it has no end: its recorder was killed, or still writes"))
    file.seek(0)


def _mended(path: Path, why: str) -> str:
    return (
        f"{path}: not a complete MCAP file ({why}); "
        f"`mcap recover {path} -o mended.mcap` writes one that can be read"
    )


def _entries(file: BinaryIO, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Return times [ns] and offsets of the messages of an index."""
    file.seek(place)
    size = int.from_bytes(file.read(_INDEX)[-4:], "little")
    entries = np.frombuffer(file.read(size // 16 * 16), "<i8").reshape(-1, 2)
    return entries[:, 0], entries[:, 1]


def _unpacked(file: BinaryIO, index: ChunkIndex, path: Path) -> memoryview:
    if index.uncompressed_size > _LARGEST_CHUNK:
        raise ValueError(f"{path}: a chunk of {index.uncompressed_size} bytes is too large")
    file.seek(index.chunk_start_offset + _RECORD)
    try:
        stream, size = get_chunk_data_stream(Chunk.read(ReadDataStream(file)), validate_crc=True)
        return memoryview(stream.read(size))
    except Exception as error:  # of three libraries that unpack
        raise ValueError(f"{path} is damaged: {error}") from None


def _message_at(data: memoryview, offset: int, path: Path) -> bytes:
    length = int.from_bytes(data[offset + 1 : offset + _RECORD], "little")
    end = offset + _RECORD + length
    if not 0 <= offset <= end - _MESSAGE <= len(data) - _MESSAGE:
        raise ValueError(f"{path} is damaged: a message lies outside its chunk")
    return bytes(data[offset + _MESSAGE : end])
