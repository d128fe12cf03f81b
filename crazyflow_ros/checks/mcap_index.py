"""Where the messages of an MCAP file are, according to its records.

A summary at the end of a file says the same, but may be missing, or wrong like everything else in
an untrusted file. Looking at the head of each record takes a second for a flight of hours.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from struct import Struct

import numpy as np

from crazyflow_ros.checks.mcap_records import (
    MESSAGE,
    RECORD,
    File,
    Known,
    message_head,
    parsed,
    records_in,
    unpacked,
)
from crazyflow_ros.extras import extra

with extra("record"):
    from mcap.opcode import Opcode
    from mcap.records import Metadata

_METADATA = "crazyflow_ros"  # name of ours
_LOOSE_BYTES = 1 << 20  # of messages outside of chunks that are read together
_MOST_TOGETHER = 1 << 20  # messages that are read together
_MOST_LISTED = 1 << 25  # messages that are in no index of the file
_SPAN = Struct("<QQ")  # times of the first and last message, at the begin of a chunk
_INDEX = Struct("<HI")  # channel of an index of messages, and bytes of its entries
_ENTRY = 16  # bytes of an entry: time and offset
_ROW = 3  # numbers: channel, time [ns] and offset of a message


class Chunk:
    """Messages that are read together: those of a chunk, or some that lie one after the other.

    Args:
        place: Byte at which the content of the chunk, or the first record, begins.
        size: Number of bytes.
        span: Times of the first and last message [ns]; None if there is no chunk.

    Attributes:
        span: As given, or as found later.
        entries: For each channel, times [ns] and offsets of the messages, shape (N, 2), or place
            and size of their index.
    """

    def __init__(self, place: int, size: int, span: tuple[int, int] | None = None) -> None:
        self._place, self._size, self._is_chunk = place, size, span is not None
        self.span = span or (0, 0)
        self.entries: dict[int, np.ndarray | tuple[int, int]] = {}

    def put(self, rows: array[int], first: int = 0) -> None:
        """Set all messages by channel, time [ns] and place, of which `first` becomes offset 0."""
        numbers = np.array(rows, np.int64).reshape(-1, _ROW) - (0, 0, first)
        numbers = numbers[numbers[:, 0].argsort(kind="stable")]
        channels, starts = np.unique(numbers[:, 0], return_index=True)
        self.entries = dict(zip(channels.tolist(), np.split(numbers[:, 1:], starts[1:])))
        if rows:
            self.span = int(numbers[:, 1].min()), int(numbers[:, 1].max())

    def count(self, channel: int) -> int:
        """Return the number of messages of a channel."""
        found = self.entries[channel]
        return len(found) if isinstance(found, np.ndarray) else (found[1] - _INDEX.size) // _ENTRY

    def messages(self, channels: Collection[int], source: File) -> Iterator[tuple[int, np.ndarray]]:
        """Yield times [ns] and offsets (N, 2) of the messages of some channels.

        Raises:
            ValueError: There are too many messages.
        """
        wanted = [channel for channel in self.entries if channel in channels]
        if (n := sum(map(self.count, wanted))) > _MOST_TOGETHER:
            raise ValueError(f"{n} messages in a chunk, expected at most {_MOST_TOGETHER}")
        for channel in wanted:
            found = self.entries[channel]
            if isinstance(found, tuple):
                size = 2 * self.count(channel)
                found = np.frombuffer(source.read(*found), "<i8", size, _INDEX.size).reshape(-1, 2)
            yield channel, found

    def data(self, source: File) -> memoryview:
        """Return the records.

        Raises:
            ValueError: The chunk is damaged, or too large.
        """
        content = source.read(self._place, self._size)
        return unpacked(content) if self._is_chunk else memoryview(content)

    def look(self, known: Known, source: File, *, always: bool) -> None:
        """Unpack a chunk and note its content, unless its indices name known channels only.

        Args:
            known: Channels and schemas that are known so far; the chunk's are added.
            source: The file.
            always: Whether to unpack the chunk whatever its indices name.

        Raises:
            ValueError: The chunk is damaged.
        """
        is_known = bool(self.entries) and self.entries.keys() <= known.channels.keys()
        if not self._is_chunk or (is_known and not always):
            return
        data, rows = self.data(source), array("q")
        for kind, place, size in records_in(data):
            if kind == Opcode.MESSAGE:
                rows.extend((*message_head(data[place : place + size]), place - RECORD.size))
                if len(rows) > _ROW * _MOST_TOGETHER:
                    raise ValueError(f"a chunk of more than {_MOST_TOGETHER} messages")
            elif kind in (Opcode.SCHEMA, Opcode.CHANNEL):
                known.note(kind, bytes(data[place : place + size]))
        self.put(rows)


class Index:
    """Where the messages of a file are; few of its chunks are unpacked for that.

    Args:
        source: The file.

    Attributes:
        known: The channels and schemas.
        blocks: The messages, in the order of the file.
        span: Times of the first and last message [ns].
        metadata: Entries of this package's metadata; empty if there are none.

    Raises:
        ValueError: The file is damaged.
    """

    def __init__(self, source: File) -> None:
        self.known, self.metadata = Known(), dict[str, str]()
        self.blocks: list[Chunk] = []
        self._loose = array("q")  # messages outside of chunks, with their places
        for kind, place, size in source.records():
            if kind in (Opcode.DATA_END, Opcode.FOOTER):
                break
            self._take(kind, place, size, source)
        self._end_loose()
        self._look(source, always=False)
        schemas = {channel.schema_id for channel in self.known.channels.values()}
        if not schemas <= self.known.schemas.keys():  # they are in other chunks than the channels
            self._look(source, always=True)
        self.blocks = [block for block in self.blocks if block.entries]
        begins, ends = zip(*(block.span for block in self.blocks)) if self.blocks else ((0,), (0,))
        self.span = min(begins), max(ends)

    def _look(self, source: File, *, always: bool) -> None:
        listed = 0
        for i, block in enumerate(self.blocks):
            is_cut = not source.is_complete and i == len(self.blocks) - 1  # after some indices
            block.look(self.known, source, always=always or is_cut)
            rows = (rows for rows in block.entries.values() if isinstance(rows, np.ndarray))
            listed += sum(map(len, rows))
            if listed > _MOST_LISTED:
                raise ValueError(f"more than {_MOST_LISTED} messages without an index")

    def _take(self, kind: int, place: int, size: int, source: File) -> None:
        match kind:
            case Opcode.MESSAGE:
                if self._loose and place - self._loose[_ROW - 1] > _LOOSE_BYTES:
                    self._end_loose()
                head = source.read(place, min(size, MESSAGE.size))
                self._loose.extend((*message_head(head), place - RECORD.size))
                self._loose_end = place + size
            case Opcode.CHUNK:
                self._end_loose()
                if size < _SPAN.size:
                    raise ValueError(f"a chunk of {size} bytes")
                span = _SPAN.unpack(source.read(place, _SPAN.size))
                self.blocks.append(Chunk(place, size, span))
            case Opcode.MESSAGE_INDEX if self.blocks and size >= _INDEX.size:
                channel, _ = _INDEX.unpack(source.read(place, _INDEX.size))
                self.blocks[-1].entries[channel] = place, size
            case Opcode.SCHEMA | Opcode.CHANNEL:
                self.known.note(kind, source.read(place, size))
            case Opcode.METADATA:
                found = parsed(Metadata, source.read(place, size))
                if found.name == _METADATA:
                    self.metadata |= found.metadata

    def _end_loose(self) -> None:
        if self._loose:
            begin = self._loose[_ROW - 1]
            self.blocks.append(Chunk(begin, self._loose_end - begin))
            self.blocks[-1].put(self._loose, begin)
            self._loose = array("q")


def message_at(data: memoryview, offset: int, channel: int) -> memoryview:
    """Return the content of the message of a channel at an offset in a block.

    Raises:
        ValueError: There is no such message.
    """
    kind, place, size = next(records_in(data[max(offset, 0) :]), (0, 0, 0))
    content = data[offset + place : offset + place + size]
    if offset < 0 or kind != Opcode.MESSAGE or message_head(content)[0] != channel:
        raise ValueError(f"there is no message of channel {channel} where its index says")
    return content
