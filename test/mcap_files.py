"""MCAP files put together by hand, with nothing of the library that reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import lz4.frame
import zstandard

MAGIC = b"\x89MCAP0\r\n"
SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, METADATA, DATA_END = 3, 4, 5, 6, 7, 12, 15
END = 8  # bytes of a footer's places


def record(kind: int, content: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(content)) + content


def text(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(content)) + content


def table(values: Mapping[str, str]) -> bytes:
    return text(b"".join(text(key) + text(value) for key, value in values.items()))


def schema(number: int, name: str = "std_msgs/msg/String", content: bytes = b"") -> bytes:
    fields = struct.pack("<H", number) + text(name) + text("ros2msg") + text(content)
    return record(SCHEMA, fields)


def channel(number: int, topic: str = "/chatter", of: int = 1) -> bytes:
    fields = struct.pack("<HH", number, of) + text(topic) + text("cdr") + table({})
    return record(CHANNEL, fields)


def message(number: int, time_ns: int, data: bytes = b"\0\1\0\0\1\0\0\0\0") -> bytes:
    return record(MESSAGE, struct.pack("<HIQQ", number, 0, time_ns, time_ns) + data)


def chunk(
    data: bytes, compression: str = "", *, size: int | None = None, span: tuple[int, int] = (0, 9)
) -> bytes:
    """A chunk of records that are compressed already, and a size that may be wrong."""
    head = struct.pack("<QQQI", *span, len(data) if size is None else size, 0)
    return record(CHUNK, head + text(compression) + struct.pack("<Q", len(data)) + data)


def index(number: int, entries: Iterable[tuple[int, int]]) -> bytes:
    """Times and offsets of the messages of a channel in the chunk before."""
    content = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    return record(MESSAGE_INDEX, struct.pack("<H", number) + text(content))


def metadata(values: Mapping[str, str], name: str = "crazyflow_ros") -> bytes:
    return record(METADATA, text(name) + table(values))


def complete(*records: bytes) -> bytes:
    """A file without a summary."""
    footer = record(2, bytes(8 + 8 + 4))
    return MAGIC + b"".join(records) + record(DATA_END, bytes(4)) + footer + MAGIC


def zeros(size: int, compression: str) -> bytes:
    """So many zeros, compressed; with `zstd`, their number is in it, and with `zstd-` it is not."""
    piece, left = bytes(1 << 24), size
    if compression == "lz4":
        packer = lz4.frame.LZ4FrameCompressor()
        packed = [packer.begin()]
    else:
        packer = zstandard.ZstdCompressor(1).compressobj(size if compression == "zstd" else -1)
        packed = []
    while left:
        packed.append(packer.compress(piece[:left]))
        left -= min(left, len(piece))
    return b"".join([*packed, packer.flush()])
