"""Damaged and malicious logs are refused with a message, within the memory they deserve."""

from __future__ import annotations

import lzma
import struct
import tracemalloc
import zlib
from pathlib import Path

import flight_writers as writers
import mcap_files
import numpy as np
import pytest

from crazyflow_ros.flight_logs import FlightLog, TimedValues, read, read_flight_log, recordings

TINY = b"\nMSG: nav_msgs/Tiny\nuint8 a\n"
HEADER = struct.pack("<BHH", 0xBC, 2, 1) + struct.pack("<H", 7) + b"name\0"


@pytest.fixture(scope="module")
def short() -> FlightLog:
    return writers.flight(0.05)


def sealed(content: bytes) -> bytes:
    """An SD card's log with the right checksum."""
    return content + struct.pack("<I", zlib.crc32(content))


def refused(path: Path, content: bytes, message: str, clock: float | None = 1.0) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_flight_log(path, clock=clock)


def read_or_refused(path: Path, content: bytes, clock: float | None) -> bool:
    """Read what may be damaged; a refusal names the file."""
    path.write_bytes(content)
    message = None
    try:
        read_flight_log(path, clock=clock)
    except ValueError as error:
        message = str(error)
    assert message is None or message.startswith(f"{path}: ")
    return message is None


def test_an_sd_card_that_ends_anywhere(short: FlightLog, tmp_path: Path) -> None:
    """Without its checksum it is refused; with one, unless it ends between two records."""
    whole = writers.sd_card(writers.sd_events(short, 1.0))
    header = whole.index(struct.pack("<HQ", writers.PERIODIC, 100_000_000))
    path = tmp_path / "log"
    for size in range(1, len(whole), 7):
        refused(path, whole[:size], "checksum|header is not complete|not a log of the firmware")
    record = header + 10  # bytes of the first one, before its variables
    for size in [*range(1, record), *range(record, len(whole) - 4, 61)]:
        is_read = read_or_refused(path, sealed(whole[:size]), 1.0)
        assert not is_read or size > record
    assert read_or_refused(path, whole, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_an_sd_card_with_any_byte_changed(short: FlightLog, tmp_path: Path, seed: int) -> None:
    content = writers.sd_card(writers.sd_events(short, 1.0))
    rng = np.random.default_rng(seed)
    for _ in range(100):
        changed = bytearray(content[:-4])
        end = 700 if rng.random() < 0.7 else len(changed)  # mostly in the header
        changed[rng.integers(1, end)] = rng.integers(256)
        read_or_refused(tmp_path / "log", sealed(bytes(changed)), None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (sealed(struct.pack("<BHH", 0xBC, 3, 1)), "version .*3"),
        (sealed(struct.pack("<BHH", 0xBC, 2, 60000)), "events, got 60000"),
        (sealed(HEADER + struct.pack("<H", 65535)), "'name' .*65535"),
        (sealed(HEADER + struct.pack("<H", 1) + 200 * b"x"), "100 bytes"),
        (sealed(HEADER + struct.pack("<H", 1) + b"a.b(d)\0"), r"'a.b\(d\)'"),
        (sealed(HEADER + struct.pack("<H", 1) + b"(f)\0"), "'name' .*twice"),
        (sealed(HEADER + struct.pack("<H", 2) + 2 * b"a.b(f)\0"), "'name' .*twice"),
        (sealed(HEADER + struct.pack("<HH", 0, 9) + bytes(8)), "byte 14 of 24: the event"),
        (sealed(HEADER + struct.pack("<H", 0)), "no pose"),
        (HEADER + struct.pack("<H", 0) + bytes(4), "checksum"),
        (b"\xbc", "checksum|header"),
    ],
)
def test_impossible_sd_cards(content: bytes, message: str, tmp_path: Path) -> None:
    refused(tmp_path / "log", content, message)


def test_times_and_numbers_of_an_sd_card(short: FlightLog, tmp_path: Path) -> None:
    path = tmp_path / "log"
    (number, name, time, columns), captured = writers.sd_events(short, 1.0)
    for part, variable in ((0, "gyro.x"), (0, "stateEstimate.qx"), (1, "locSrv.qw")):
        events = [(number, name, time, columns), captured]
        lost = events[part][3][variable][1].copy()
        lost[7] = np.nan
        events[part] = (*events[part][:3], events[part][3] | {variable: ("f", lost)})
        refused(path, writers.sd_card(events), "(gyro|pose|estimate) must be 25 x .* finite")
    same = [(number, name, 0 * time + 100, columns), captured]
    refused(path, writers.sd_card(same), "time .*0 s after sample 0")
    refused(path, writers.sd_card(writers.sd_events(short, 85 / 84)), "clock", None)
    odd = writers.flight(2.0)
    other = {name: TimedValues(p.time * 1.03, p.values) for name, p in odd.quantities.items()}
    unknown = writers.sd_card(writers.sd_events(FlightLog("other", **other), 1.0))
    for clock, named in ((None, "clock"), (np.nan, "clock"), (0, "time")):
        refused(path, unknown, named, clock)


def test_more_records_than_allowed(
    short: FlightLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crazyflow_ros.flight_logs import sd_card

    monkeypatch.setattr(sd_card, "SAMPLES", 10)
    content = writers.sd_card(writers.sd_events(short, 1.0))
    refused(tmp_path / "log", content, "unexpected record at byte .* more than 20 records")


CSV = b"Timestamp,stateEstimate.x,stateEstimate.y\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", CSV + b"1,2\n", "3 numbers, got 2"),
        ("a.csv", CSV + b"1,2,3\n4,5\n", "from 3 to 2"),
        ("a.csv", CSV, "no lines"),
        ("a.csv", CSV + b"1,2,x\n", "'x'"),
        ("a.csv", b"Timestamp,gyro.x,gyro.x\n1,2,3\n", "'gyro.x' twice"),
        ("a.csv", CSV + b"1,2,3\n", "no pose"),
        ("a.csv", 70000 * b"a,", "65536 bytes"),
        ("a.csv", b"time,x\n1,2\n", "y, z, qx"),
        ("a.csv", b"\xff\xfe", "can't decode"),
        ("a.csv.xz", lzma.compress(CSV + b"1,2,3\n")[:-5], ".xz file: it has no end"),
        ("a.xz", b"\xfd7zXZ\0" + 50 * b"x", ".xz file"),
        ("a.csv.xz", b"Timestamp", "no lines"),
        ("a", b"1 2 3", ".npz, .csv or .mcap"),
        ("a.txt", b"", ".npz, .csv or .mcap"),
        ("a.mcap", recordings.MAGIC, "no messages"),
        ("a.mcap", b"x" * 100, "MCAP file"),
        ("a.npz", b"PK\3\4" + 100 * b"x", "NPZ file"),
        ("a.npz", b"", "NPZ file"),
    ],
)
def test_other_files(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    refused(tmp_path / name, content, message, None)


def test_times_of_log_blocks(short: FlightLog, tmp_path: Path) -> None:
    columns = dict.fromkeys(writers.POSE_BY_RADIO, np.zeros(3))
    path = tmp_path / "a.csv"
    for change, message in (
        ({"Timestamp": [10, 20, 20]}, "time .*0 s after sample 1"),
        ({"Timestamp": [10, 20, 15]}, "time .*-0.005 s after sample 1"),
        ({"Timestamp": [10, np.nan, 20]}, "time .*3 finite"),
        ({"stateEstimate.x": [0, np.inf, 0]}, "pose .*3 x 7 finite"),
    ):
        table = {"Timestamp": np.arange(3.0)} | columns
        writers.write_csv(path, table | {name: np.array(x) for name, x in change.items()})
        refused(path, path.read_bytes(), message, None)


def test_folders(short: FlightLog, tmp_path: Path) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    with pytest.raises(ValueError, match=r"CSV files .*got 0"):
        read_flight_log(empty)
    writers.write_radio(short, other)
    (other / "notes.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"notes\.csv"):
        read_flight_log(other)
    with pytest.raises(OSError, match="No such file"):
        read_flight_log(tmp_path / "none.csv")


def test_a_clock_is_for_crazyflies(short: FlightLog, tmp_path: Path) -> None:
    path = writers.write_nanobench(short, tmp_path / "a.csv")
    refused(path, path.read_bytes(), "only logs of a Crazyflie .* got clock=1", 1.0)


def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of `xz` that would become a hundred takes the memory of the limit."""
    limit = 4 << 20
    monkeypatch.setattr(read, "_CONTENT_BYTES", limit)
    content = lzma.compress(bytes(100 << 20), preset=0)
    assert len(content) < limit
    tracemalloc.start()
    try:
        refused(tmp_path / "a.csv.xz", content, "at most 4194304 decompressed bytes", None)
        assert tracemalloc.get_traced_memory()[1] < 4 * limit
    finally:
        tracemalloc.stop()
    path = tmp_path / "a.npz"
    np.savez_compressed(path, time=np.zeros(limit))
    with pytest.raises(ValueError, match=r"arrays of \d+ bytes, expected at most 4194304"):
        read_flight_log(path)
    path = tmp_path / "a.csv"
    path.write_bytes(bytes(limit + 1))
    with pytest.raises(ValueError, match="too large: 4194305 bytes, expected at most 4194304"):
        read_flight_log(path)


def test_large_messages_in_recordings(short: FlightLog, tmp_path: Path) -> None:
    """Whose elements, each a byte of the file, would take hundreds."""
    pytest.importorskip("mcap.writer", reason="the extra record is not installed")
    path = tmp_path / "a.mcap"
    odom = mcap_files.schema(1, "nav_msgs/msg/Odometry", b"Tiny[] x\n" + b"=" * 80 + TINY)
    data = mcap_files.message(1, 0, b"\0\1\0\0" + b"\0\0\x40\0" + bytes(1 << 22))
    start = odom + mcap_files.channel(1, "/cf0/odom")
    path.write_bytes(mcap_files.complete(start, mcap_files.chunk(data)))
    with pytest.raises(ValueError, match="a message on /cf0/odom has 4194312 bytes, expected at"):
        read_flight_log(path)


def test_recordings_with_any_byte_changed(short: FlightLog, tmp_path: Path) -> None:
    mcap = pytest.importorskip("mcap.writer", reason="the extra record is not installed")
    path, rng = tmp_path / "a.mcap", np.random.default_rng(0)
    none = mcap.CompressionType.NONE
    writers.write_mcap(path, writers.entries(short), "{}", compression=none, chunk_size=2000)
    content = path.read_bytes()
    for _ in range(60):
        changed = bytearray(content)
        changed[rng.integers(len(changed))] = rng.integers(256)
        read_or_refused(path, bytes(changed), None)
    for size in rng.integers(8, len(content), 40):
        read_or_refused(path, content[:size], None)
    assert read_or_refused(path, content[: 3 * len(content) // 4], None)
