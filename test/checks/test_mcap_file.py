"""MCAP files of others: what is right is read, and nothing else takes memory or time."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mcap_files as files
import numpy as np
import pytest
from paths import ROOT

mcap = pytest.importorskip("mcap.writer", reason="the extra record is not installed")
from mcap.reader import make_reader  # noqa: E402

from crazyflow_ros.checks.mcap_file import McapFile, recorded  # noqa: E402
from crazyflow_ros.checks.mcap_records import Message  # noqa: E402

START = files.schema(1) + files.channel(1)
BOMB = 5 << 28
MOST = 700 << 20  # bytes of memory, of which a chunk may take 512 MiB


def write(path: Path, n: int = 300, chunk: int = 2000, **options: object) -> Path:
    """A file of two topics, one of which begins late, with a kind of its own."""
    with path.open("wb") as file:
        writer = mcap.Writer(file, chunk_size=chunk, **options)
        writer.start("ros2")
        writer.add_metadata("crazyflow_ros", {"parameters": "{}"})
        channels = []
        for k in range(n):
            for i, topic in enumerate(("/a", "/b")):
                if len(channels) <= i and k >= i * n // 2:
                    kind = writer.register_schema(f"std_msgs/msg/Kind{i}", "ros2msg", b"int8 x")
                    channels.append(writer.register_channel(topic, "cdr", kind))
                if len(channels) > i:
                    writer.add_message(channels[i], 10 * k + i, b"%d %d" % (i, k) * (k % 7), k)
        writer.finish()
    return path


def read_by_library(path: Path) -> list[tuple[str, int, bytes]]:
    with path.open("rb") as file:
        found = make_reader(file).iter_messages(log_time_order=False)
        return [(channel.topic, m.log_time, m.data) for _, channel, m in found]


def in_order(file: io.BufferedIOBase) -> list[tuple[str, int, bytes]]:
    return [(m.topic, m.time_ns, m.data) for m in recorded(file) if isinstance(m, Message)]


def chosen(path: Path, *topics: str) -> list[tuple[str, int, bytes]]:
    file = McapFile(path)
    found = file.messages(dict.fromkeys(topics or file.types))
    return [(m.topic, m.time_ns, m.data) for m in found]


OPTIONS = {
    **{kind.name: {"compression": kind} for kind in mcap.CompressionType},
    "no chunks": {"use_chunking": False},
    "no index": {"index_types": mcap.IndexType.NONE},
    "only chunks": {"index_types": mcap.IndexType.CHUNK},
    "only messages": {"index_types": mcap.IndexType.MESSAGE},
    "no summary": {
        "use_statistics": False,
        "use_summary_offsets": False,
        "repeat_channels": False,
        "repeat_schemas": False,
        "index_types": mcap.IndexType.NONE,
    },
    "checksums": {"enable_data_crcs": True},
    "no checksums": {"enable_crcs": False},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_way_to_write_a_file_is_read(tmp_path: Path, options: dict[str, object]) -> None:
    path = write(tmp_path / "a.mcap", **options)
    expected = read_by_library(path)
    assert len(expected) == 450
    with path.open("rb") as opened:
        assert in_order(opened) == expected
    assert chosen(path) == expected  # whose times increase
    assert chosen(path, "/b") == [entry for entry in expected if entry[0] == "/b"]
    file = McapFile(path)
    assert file.types == {"/a": "std_msgs/msg/Kind0", "/b": "std_msgs/msg/Kind1"}
    assert dict(file.counts) == {"/a": 300, "/b": 150}
    assert (file.begin_ns, file.end_ns, file.is_complete) == (0, 2991, True)
    assert file.metadata == {"parameters": "{}"}
    some = [m.time_ns for m in file.messages({"/a": lambda times: times % 20 == 0}, 1000, 1100)]
    assert some == list(range(1000, 1101, 20))


@pytest.mark.parametrize("name", ["LZ4", "NONE", "no chunks", "no index"])
def test_a_file_that_ends_anywhere_is_read_up_to_there(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.mcap", n=60, chunk=400, **OPTIONS[name])
    content, expected = path.read_bytes(), read_by_library(path)
    lengths = set()
    for size in [*range(8, len(content) - 8, 37), len(content) - 1]:
        path.write_bytes(content[:size])
        with path.open("rb") as opened:
            found = in_order(opened)
        assert found == expected[: len(found)]
        assert chosen(path) == found
        assert not McapFile(path).is_complete
        lengths.add(len(found))
    assert max(lengths) == len(expected) and len(lengths) > 4


def test_times_that_go_back_keep_their_order_in_the_file(tmp_path: Path) -> None:
    data = START + b"".join(files.message(1, time, b"%d" % time) for time in (5, 7, 2, 3))
    content = files.complete(files.chunk(data, span=(2, 7)))
    assert [time for _, time, _ in in_order(io.BytesIO(content))] == [5, 7, 2, 3]
    path = tmp_path / "a.mcap"
    path.write_bytes(content)
    assert [time for _, time, _ in chosen(path)] == [2, 3, 5, 7]


def refused(path: Path, content: bytes, message: str) -> None:
    """Both ways to read it refuse it, with the same words."""
    path.write_bytes(content)
    with path.open("rb") as opened, pytest.raises(ValueError, match=message):
        in_order(opened)
    with pytest.raises(ValueError, match=message) as caught:
        chosen(path)
    assert str(caught.value).startswith(f"{path}: ")


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", ["lz4", "zstd", "zstd-"])
@pytest.mark.parametrize("says", [None, 1000, BOMB])
def test_a_chunk_becomes_no_larger_than_the_limit(
    tmp_path: Path, compression: str, says: int | None
) -> None:
    """Whatever it says; alone, cut off, or with an index that says something else."""
    packed = files.zeros(BOMB, compression)
    assert len(packed) < 30 << 20
    bomb = files.chunk(packed, compression.rstrip("-"), size=says)
    for content in (
        files.complete(bomb),
        files.MAGIC + bomb,
        files.complete(START, bomb, files.index(1, [(0, 0)])),
    ):
        with little_memory():
            refused(tmp_path / "a.mcap", content, "damaged before byte .*(chunk|cut off)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\x89MCAP1\r\n" + bytes(100), "not an MCAP file"),
        (files.complete(files.record(files.SCHEMA, bytes(2))), "a Schema cannot be read"),
        (files.complete(files.record(files.CHUNK, bytes(5))), "hunk"),
        (files.complete(files.record(files.MESSAGE, bytes(5))), "a message of 5 bytes"),
        (files.complete(files.schema(1, content=bytes(2 << 20))), "SCHEMA of .* at most 1048576"),
        (files.complete(files.channel(1, "a" * (2 << 20))), "CHANNEL of .* at most 1048576"),
        (files.complete(files.metadata({"a": "b" * (5 << 20)})), "METADATA of .* 4194304"),
        (files.complete(files.chunk(b"abc", "gz")), "compression of a chunk is unknown: 'gz'"),
        (files.complete(files.chunk(b"abc", "zstd", size=3)), "a chunk cannot be unpacked"),
        (files.complete(files.chunk(b"abc", "lz4", size=3)), "a chunk says that it has 3 bytes"),
        (files.complete(files.chunk(START, size=12)), "says that it has 12 bytes"),
        (files.complete(files.chunk(START + b"\5")), "a record is cut off"),
        (files.complete(START, files.message(1, 0), files.message(1, 1 << 62)), "4611686018 s"),
        (files.complete(START, files.message(1, 1 << 63)), "9223372036854775808 ns"),
        (
            files.complete(files.chunk(START + files.message(1, 1 << 60) + files.message(1, 0))),
            "1152921505 s from the first one, expected at most 1000000 s",
        ),
        (files.MAGIC + files.record(files.DATA_END, bytes(9)), "DATA_END of 9 bytes"),
    ],
)
def test_impossible_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    refused(tmp_path / "a.mcap", content, message)


@pytest.mark.parametrize("wrap", [files.chunk, bytes])
def test_a_message_of_no_channel_is_damage(wrap: Callable[[bytes], bytes]) -> None:
    content = files.complete(START, wrap(files.message(3, 0)))
    with pytest.raises(ValueError, match=r"damaged before byte .*: there is no channel 3"):
        in_order(io.BytesIO(content))


def test_many_schemas_and_channels_are_refused(tmp_path: Path) -> None:
    """Some megabytes of compressed schemas that would be gigabytes."""
    each = b"".join(files.schema(i, content=bytes(1 << 19)) for i in range(1, 700))
    packed = files.zstandard.compress(each)
    with little_memory():
        content = files.complete(files.chunk(packed, "zstd", size=len(each)))
        refused(tmp_path / "a.mcap", content, "schemas and channels of more than 67108864 bytes")


def test_many_messages_without_an_index_are_refused(tmp_path: Path) -> None:
    """A list of those in a small file would take gigabytes."""
    many = START + files.message(1, 0, b"") * (1 << 20) + files.message(1, 1)
    packed = files.zstandard.compress(many)
    path = tmp_path / "a.mcap"
    path.write_bytes(files.complete(files.chunk(packed, "zstd", size=len(many))))
    with pytest.raises(ValueError, match="a chunk of more than 1048576 messages"):
        McapFile(path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([(3, 10**15)], "no message of channel 1 where its index says"),
        ([(3, 2**63 - 1)], "no message of channel 1 where its index says"),
        ([(3, 2**64 - 8)], "no message of channel 1 where its index says"),
        ([(3, 1)], "index says|cut off"),
        ([(3, len(START) + 40)], "no message of channel 1 where its index says"),
    ],
)
def test_an_index_that_leads_elsewhere_is_refused(
    tmp_path: Path, entries: list[tuple[int, int]], message: str
) -> None:
    data = files.message(1, 3) + files.channel(2) + files.message(2, 4)
    path = tmp_path / "a.mcap"
    path.write_bytes(files.complete(START, files.chunk(data), files.index(1, entries)))
    with pytest.raises(ValueError, match=message):
        chosen(path, "/chatter")


def test_a_large_index_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    entries = files.record(files.MESSAGE_INDEX, bytes((64 << 20) + 1))
    path.write_bytes(files.complete(START, files.chunk(files.message(1, 3)), entries))
    with pytest.raises(ValueError, match="MESSAGE_INDEX of 67108865 bytes, expected at most"):
        McapFile(path)


def test_a_summary_that_lies_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mcap")
    content, expected = path.read_bytes(), read_by_library(path)
    (start,) = struct.unpack_from("<Q", content, len(content) - 8 - 20)
    rng = np.random.default_rng(1)
    for _ in range(20):
        noise = rng.integers(0, 256, len(content) - 8 - start, np.uint8).tobytes()
        path.write_bytes(content[:start] + noise + files.MAGIC)
        assert chosen(path) == expected


def test_files_that_are_none_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, why in (
        (empty, "must have one file .mcap, it has none"),
        (tmp_path / "fifo", "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
    ):
        with pytest.raises(ValueError, match=why):
            McapFile(path)
    with pytest.raises(FileNotFoundError):
        McapFile(tmp_path / "nothing.mcap")


@pytest.mark.parametrize("name", ["NONE", "ZSTD", "no chunks", "no checksums"])
def test_any_byte_may_change(tmp_path: Path, name: str) -> None:
    """It is read or refused, and never anything else."""
    path = write(tmp_path / "a.mcap", n=40, chunk=500, **OPTIONS[name])
    content, rng = path.read_bytes(), np.random.default_rng(2)
    counts = {"read": 0, "refused": 0}
    for _ in range(150):
        changed = bytearray(content)
        for place in rng.integers(8, len(content), rng.choice([1, 1, 3])):
            changed[place] = rng.integers(256)
        path.write_bytes(changed)
        for is_chosen in (False, True):
            try:
                chosen(path) if is_chosen else in_order(io.BytesIO(changed))
                counts["read"] += 1
            except ValueError:
                counts["refused"] += 1
    assert min(counts.values()) > 10, counts


def test_only_one_module_reads_them() -> None:
    """Nobody else imports what reads MCAP, of the library or its decompressors."""
    words = ("mcap.reader", "mcap.stream_reader", "mcap.records", "lz4", "zstandard")
    found = {
        path.stem
        for path in (ROOT / "crazyflow_ros").rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith(("import ", "from ")) and any(w in line for w in words)
    }
    assert found == {"mcap_file", "mcap_index", "mcap_records"}
