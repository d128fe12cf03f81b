"""Records of MCAP files, whose sizes are checked before anything is read or unpacked."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from struct import Struct
from struct import error as StructError
from typing import Any, BinaryIO, NamedTuple

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.extras import extra

with extra("record"):
    import lz4.frame
    import zstandard
    from mcap.data_stream import ReadDataStream
    from mcap.exceptions import McapError
    from mcap.opcode import Opcode
    from mcap.records import Channel, Chunk, Schema

MAGIC = b"\x89MCAP0\r\n"
"""First bytes of a file, and last ones of one that is complete."""
RECORD = Struct("<BQ")
"""Kind and size of a record, before its content."""
MESSAGE = Struct("<HIQQ")
"""Channel, sequence number, times of recording and publication, before the data of a message."""

_CHUNK_BYTES = 1 << 29  # unpacked; the usual ones have a megabyte
_MOST = {
    Opcode.SCHEMA: 1 << 20,
    Opcode.CHANNEL: 1 << 20,
    Opcode.MESSAGE: _CHUNK_BYTES,
    Opcode.CHUNK: _CHUNK_BYTES + 1024,
    Opcode.MESSAGE_INDEX: 1 << 26,
    Opcode.METADATA: 1 << 22,
    Opcode.DATA_END: 4,
}
"""Bytes of records that are read; others may have any size."""
_KNOWN_BYTES = 1 << 26  # of all schemas and channels
_PIECE = 1 << 20  # bytes


class Message(NamedTuple):
    """A message of a file."""

    topic: str
    time_ns: int
    """When it was recorded [ns]."""
    data: bytes
    channel: Channel
    schema: Schema | None


class CutOff(ValueError):
    """The last record does not end where it should."""


def records(
    read: Callable[[int, int], bytes | memoryview], place: int, end: int
) -> Iterator[tuple[int, int, int]]:
    """Yield kind, place and size of the content of each record.

    Args:
        read: Returns a number of bytes from a place on.
        place: Byte at which the first record begins.
        end: Byte at which the last record ends.

    Raises:
        CutOff: The last record does not end there.
        ValueError: A record is too large.
    """
    while place < end:
        head = read(place, min(RECORD.size, end - place))
        kind, size = RECORD.unpack(head) if len(head) == RECORD.size else (0, 0)
        place += RECORD.size
        if kind == 0 or size > end - place:
            raise CutOff("a record is cut off")
        if size > (most := _MOST.get(kind, size)):
            raise ValueError(f"{Opcode(kind).name} of {size} bytes, expected at most {most}")
        yield kind, place, size
        place += size


def records_in(data: memoryview) -> Iterator[tuple[int, int, int]]:
    """Yield kind, place and size of the content of each record in a chunk."""
    return records(lambda place, size: data[place : place + size], 0, len(data))


class File:
    """An open file.

    Attributes:
        size: Bytes of the file.
        place: Byte up to which the file was read last.
        is_complete: Whether the file ends as it should.

    Raises:
        ValueError: The file is empty, or not an MCAP file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.place = file, 0
        self.size = file.seek(0, os.SEEK_END)
        if not self.size:
            raise ValueError("it is empty: recorders write once a second")
        if self.read(0, len(MAGIC)) != MAGIC:
            raise ValueError("not an MCAP file")
        last = self.size - len(MAGIC)
        self.is_complete = last > len(MAGIC) and self.read(last, len(MAGIC)) == MAGIC

    def read(self, place: int, size: int) -> bytes:
        """Return bytes from a place on; fewer at the end."""
        self._file.seek(place)
        data = self._file.read(size)
        self.place = place + len(data)
        return data

    def records(self) -> Iterator[tuple[int, int, int]]:
        """Yield kind, place and size of the content of all records, as `records`.

        A file that is not complete ends with its last complete record.
        """
        end = self.size - len(MAGIC) if self.is_complete else self.size
        try:
            yield from records(self.read, len(MAGIC), end)
        except CutOff:
            if self.is_complete:
                raise

    def check(self, end: int, checksum: int) -> None:
        """Compare all bytes up to a place with their checksum; 0 means that there is none.

        Raises:
            ValueError: The bytes are damaged.
        """
        found = 0
        for place in range(0, end if checksum else 0, _PIECE):
            found = zlib.crc32(self.read(place, min(_PIECE, end - place)), found)
        check_sum(found, checksum)


class Known:
    """The channels and schemas to which the messages of a file refer, by their numbers."""

    def __init__(self) -> None:
        self.channels: dict[int, Channel] = {}
        self.schemas: dict[int, Schema | None] = {0: None}  # 0: a channel has none
        self._left = _KNOWN_BYTES

    def note(self, kind: int, content: bytes) -> None:
        """Note a schema or a channel, which may be repeated.

        Raises:
            ValueError: The record is damaged, or there are too many.
        """
        kept: dict[int, Any] = self.schemas if kind == Opcode.SCHEMA else self.channels
        found = parsed(Schema if kind == Opcode.SCHEMA else Channel, content)
        if found.id not in kept:
            self._left -= len(content)
            if self._left < 0:
                raise ValueError(f"schemas and channels of more than {_KNOWN_BYTES} bytes")
            kept[found.id] = found

    def message(self, content: bytes | memoryview) -> Message:
        """Return a message.

        Raises:
            ValueError: It is damaged.
        """
        number, time_ns = message_head(content)
        channel = self.channels.get(number)
        if channel is None:
            raise ValueError(f"there is no channel {number}")
        schema, data = self.schemas.get(channel.schema_id), bytes(content[MESSAGE.size :])
        return Message(channel.topic, time_ns, data, channel, schema)


def message_head(content: bytes | memoryview) -> tuple[int, int]:
    """Return number of the channel and time [ns] of a message.

    Raises:
        ValueError: It is damaged.
    """
    if len(content) < MESSAGE.size:
        raise ValueError(f"a message of {len(content)} bytes, expected at least {MESSAGE.size}")
    number, _, time_ns, _ = MESSAGE.unpack_from(content)
    if time_ns >= 1 << 63:
        raise ValueError(f"the time of a message is {time_ns} ns")
    return number, time_ns


def parsed(kind: Any, content: bytes) -> Any:
    """Parse the content of a record of a kind in `mcap.records`.

    Raises:
        ValueError: It is damaged.
    """
    try:
        return kind.read(ReadDataStream(BytesIO(content)))
    except (McapError, OverflowError, StructError, UnicodeDecodeError) as error:
        raise ValueError(f"a {kind.__name__} cannot be read: {shown(str(error))}") from None


def unpacked(content: bytes) -> memoryview:
    """Unpack the records in a chunk, to no more bytes than it declares.

    Raises:
        ValueError: The chunk is damaged, or too large.
    """
    chunk = parsed(Chunk, content)
    size, data, compression = chunk.uncompressed_size, chunk.data, chunk.compression
    if size > _CHUNK_BYTES:
        raise ValueError(f"a chunk of {size} bytes, expected at most {_CHUNK_BYTES}")
    try:
        if compression == "lz4":
            data = lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size)
        elif compression == "zstd":
            if zstandard.frame_content_size(data) > size:  # which would be allocated
                raise ValueError(f"a chunk says that it has {size} bytes, and has more")
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
        elif compression:
            raise ValueError(f"the compression of a chunk is unknown: {shown(compression)!r}")
    except (RuntimeError, zstandard.ZstdError) as error:
        raise ValueError(f"a chunk cannot be unpacked: {shown(str(error))}") from None
    if len(data) != size:
        raise ValueError(f"a chunk says that it has {size} bytes, and has {len(data)}")
    check_sum(zlib.crc32(data), chunk.uncompressed_crc)
    return memoryview(data)


def check_sum(found: int, expected: int) -> None:
    """Compare a checksum with the expected one; 0 means that there is none.

    Raises:
        ValueError: The checksums differ.
    """
    if expected not in (0, found):
        raise ValueError(f"the checksum is {expected:08x}, expected {found:08x}")
