"""MCAP files, read from untrusted files: complete or cut off, with or without chunks and indices.

`recorded` reads all messages in the order of the file. `McapFile` finds wanted messages by the
indices of the file, because files of hours have millions of others.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from crazyflow_ros.checks.limits import DURATION, open_file, shown, shown_path
from crazyflow_ros.checks.mcap_index import Index, message_at
from crazyflow_ros.checks.mcap_records import (
    RECORD,
    File,
    Known,
    Message,
    parsed,
    records_in,
    unpacked,
)
from crazyflow_ros.extras import extra

with extra("record"):
    from mcap.opcode import Opcode
    from mcap.records import Metadata

LONGEST = round(DURATION.most) * 1_000_000_000
"""Time between messages of a file [ns]."""

Choice = Callable[[np.ndarray], np.ndarray]
"""Takes the times [ns] of consecutive messages, and returns which of them to read."""


def recorded(file: BinaryIO) -> Iterator[Metadata | Message]:
    """Yield metadata and messages in the order of the file; a file that is cut off ends there.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not an MCAP file, or is damaged; checksums are compared.
    """
    source = File(file)
    first_ns: int | None = None
    try:
        for item in _items(source):
            if isinstance(item, Message):
                first_ns = item.time_ns if first_ns is None else first_ns
                _check_times(first_ns, item.time_ns)
            yield item
    except ValueError as error:
        raise ValueError(_damaged(source, error)) from None


def _items(source: File) -> Iterator[Metadata | Message]:
    known = Known()
    for kind, place, size in source.records():
        match kind:
            case Opcode.CHUNK:
                data = unpacked(source.read(place, size))
                for inner, at, length in records_in(data):
                    if inner == Opcode.MESSAGE:
                        yield known.message(data[at : at + length])
                    elif inner in (Opcode.SCHEMA, Opcode.CHANNEL):
                        known.note(inner, bytes(data[at : at + length]))
            case Opcode.MESSAGE:
                yield known.message(source.read(place, size))
            case Opcode.SCHEMA | Opcode.CHANNEL:
                known.note(kind, source.read(place, size))
            case Opcode.METADATA:
                yield parsed(Metadata, source.read(place, size))
            case Opcode.DATA_END:
                checksum = int.from_bytes(source.read(place, size), "little")
                source.check(place - RECORD.size, checksum)
                return
            case Opcode.FOOTER:
                return


def in_bag(path: Path) -> Path:
    """Return the MCAP file in a folder of rosbag2, or the given path if it is no folder.

    Raises:
        OSError: The folder cannot be read.
        ValueError: It has several files, or none.
    """
    if not path.is_dir():
        return path
    files = sorted(path.glob("*.mcap"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files[:4]) or "none"
        raise ValueError(f"{shown_path(path)} must have one file .mcap, it has {shown(names)}")
    return files[0]


class McapFile:
    """Reads wanted messages of an MCAP file, which may be cut off.

    Args:
        path: The file, or a folder of rosbag2 with one file.

    Attributes:
        path: As given.
        types: Type of each topic, such as `nav_msgs/msg/Odometry`.
        counts: Number of messages of each topic.
        begin_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].
        metadata: Entries of this package's metadata; empty if there are none.
        is_complete: Whether the file has its end.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not an MCAP file, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path = in_bag(path)
        with open_file(path, sys.maxsize) as file:
            try:
                source = File(file)
                index = _index(source)
            except ValueError as error:
                raise ValueError(f"{shown_path(path)}: {error}") from None
        self._blocks, self._known = index.blocks, index.known
        self.begin_ns, self.end_ns = index.span
        self.is_complete, self.metadata = source.is_complete, index.metadata
        self.types: dict[str, str] = {}
        self.counts = Counter[str]()
        for number, channel in self._known.channels.items():
            schema = self._known.schemas.get(channel.schema_id)
            if schema is not None and channel.message_encoding == "cdr":
                self.types[channel.topic] = schema.name
                found = (block.count(number) for block in self._blocks if number in block.entries)
                self.counts[channel.topic] += sum(found)

    @property
    def goes_back(self) -> bool:
        """Whether recorded times go back by more than the usual disorder of other programs."""
        starts, ends = np.array([block.span for block in self._blocks]).reshape(-1, 2).T
        return bool((starts[1:] < np.maximum.accumulate(ends)[:-1] - 500_000_000).any())

    def messages(
        self,
        topics: Mapping[str, Choice | None],
        begin_ns: int = 0,
        end_ns: int | None = None,
    ) -> Iterator[Message]:
        """Read the messages of some topics, block by block, each in the order of their times.

        Args:
            topics: The topics, each with a function that chooses messages; None chooses all.
            begin_ns: Time of the first message [ns].
            end_ns: Time of the last message [ns]; None reads to the end.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is damaged.
        """
        last = self.end_ns if end_ns is None else end_ns
        channels = self._known.channels.items()
        wanted = {number for number, channel in channels if channel.topic in topics}
        with open_file(self.path, sys.maxsize) as file:
            try:
                source = File(file)
                for block in self._blocks:
                    if block.span[0] > last or block.span[1] < begin_ns:
                        continue
                    found: list[tuple[int, int, int]] = []
                    for number, entries in block.messages(wanted, source):
                        times = entries[:, 0]
                        mask = (times >= begin_ns) & (times <= last)
                        choose = topics[self._known.channels[number].topic]
                        if choose is not None and mask.any():
                            mask[mask] = choose(times[mask])
                        found += [(*entry, number) for entry in entries[mask].tolist()]
                    if found:
                        data = block.data(source)
                        for time_ns, offset, number in sorted(found):
                            content = message_at(data, offset, number)
                            yield self._known.message(content)._replace(time_ns=time_ns)
            except ValueError as error:
                raise ValueError(f"{shown_path(self.path)}: {_damaged(source, error)}") from None


def _index(source: File) -> Index:
    """Return where the messages of a file are.

    Raises:
        ValueError: It is damaged.
    """
    try:
        index = Index(source)
        _check_times(*index.span)
        return index
    except ValueError as error:
        raise ValueError(_damaged(source, error)) from None


def _check_times(first_ns: int, time_ns: int) -> None:
    if abs(time_ns - first_ns) > LONGEST or time_ns >= 1 << 63:
        raise ValueError(
            f"a message is {(time_ns - first_ns) * 1e-9:.0f} s from the first one, expected at "
            f"most {LONGEST * 1e-9:.0f} s"
        )


def _damaged(source: File, error: ValueError) -> str:
    return f"damaged before byte {source.place} of {source.size}: {error}"
