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
        (sealed(struct.pack("<BHH", 0xBC, 3, 1)), "version must be 1 or 2, got 3"),
        (sealed(struct.pack("<BHH", 0xBC, 2, 60000)), "at most 100 events, got 60000"),
        (sealed(HEADER + struct.pack("<H", 65535)), "'name' has 65535, expected at most 1000"),
        (sealed(HEADER + struct.pack("<H", 1) + 200 * b"x"), "more than 100 bytes or no end"),
        (sealed(HEADER + struct.pack("<H", 1) + b"a.b(d)\0"), r"'a.b\(d\)' does not end with its"),
        (sealed(HEADER + struct.pack("<H", 1) + b"(f)\0"), "one of its variables is there twice"),
        (sealed(HEADER + struct.pack("<H", 2) + 2 * b"a.b(f)\0"), "variables is there twice"),
        (
            sealed(HEADER + struct.pack("<HH", 0, 9) + bytes(8)),
            "record at byte 14 of 24: the event",
        ),
        (sealed(HEADER + struct.pack("<H", 0)), "there is no pose: expected locSrv"),
        (HEADER + struct.pack("<H", 0) + bytes(4), "checksum is wrong: the file is damaged"),
        (b"\xbc", "checksum|header is not complete"),
    ],
)
def test_impossible_sd_cards(content: bytes, message: str, tmp_path: Path) -> None:
    refused(tmp_path / "log", content, message)


def test_times_and_numbers_of_an_sd_card(short: FlightLog, tmp_path: Path) -> None:
    path = tmp_path / "log"
    (number, name, time, columns), captured = writers.sd_events(short, 1.0)
    gyro = "gyro.x", ("f", np.full(len(time), np.nan))
    broken = [(number, name, time, columns | dict([gyro])), captured]
    refused(path, writers.sd_card(broken), "gyro must be 25 x 3 finite numbers")
    for variable, message in (
        ("stateEstimate.qx", "pose must be|estimate must be"),
        ("locSrv.qw", "pose must be 25 x 7 finite numbers"),
    ):
        row = captured if variable.startswith("loc") else broken[0]
        lost = row[3] | {variable: ("f", np.where(np.arange(25) == 7, np.nan, row[3][variable][1]))}
        kept = broken[0][3] | {"gyro.x": ("f", 0 * time)}
        events = [(*row[:3], lost), (*broken[0][:3], kept)]
        refused(path, writers.sd_card(events if row is captured else events[:1]), message)
    same = [(number, name, 0 * time + 100, columns), captured]
    refused(path, writers.sd_card(same), "time must increase, got 0 s after sample 0")
    short_log = writers.sd_card(writers.sd_events(short, 85 / 84))
    refused(path, short_log, "does not tell which clock it has: .* at least 1 s", None)
    odd = writers.flight(2.0)
    other = {name: TimedValues(p.time * 1.03, p.values) for name, p in odd.quantities.items()}
    unknown = writers.sd_card(writers.sd_events(FlightLog("other", **other), 1.0))
    refused(path, unknown, "does not tell which clock it has", None)
    for clock, message in ((np.nan, "clock must be finite"), (0, "time must increase")):
        refused(path, unknown, message, clock)


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
        ("a.csv", CSV + b"1,2\n", "lines must have 3 numbers, got 2"),
        ("a.csv", CSV + b"1,2,3\n4,5\n", "number of columns changed from 3 to 2"),
        ("a.csv", CSV, "there are no lines of numbers"),
        ("a.csv", CSV + b"1,2,x\n", "could not convert string 'x'"),
        ("a.csv", b"Timestamp,gyro.x,gyro.x\n1,2,3\n", "the name 'gyro.x' twice"),
        ("a.csv", CSV + b"1,2,3\n", "there is no pose: expected locSrv"),
        ("a.csv", 70000 * b"a,", "first line has more than 65536 bytes"),
        ("a.csv.xz", lzma.compress(CSV + b"1,2,3\n")[:-5], "not an .xz file: it has no end"),
        ("a.xz", b"\xfd7zXZ\0" + 50 * b"x", "not an .xz file"),
        ("a.csv.xz", b"Timestamp", "there are no lines of numbers"),
        ("a", b"1 2 3", "a flight must be a file .npz, .csv or .mcap, a log of"),
        ("a.mcap", recordings.MAGIC, "there are no messages of poses"),
        ("a.mcap", b"x" * 100, "not a readable MCAP file"),
        ("a.npz", b"PK\3\4" + 100 * b"x", "not an NPZ file"),
    ],
)
def test_other_files(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    refused(tmp_path / name, content, message, None)


def test_times_of_log_blocks(short: FlightLog, tmp_path: Path) -> None:
    names = ("stateEstimate.x", "stateEstimate.y", "stateEstimate.z",
             "stabilizer.roll", "stabilizer.pitch", "stabilizer.yaw")  # fmt: skip
    columns = dict.fromkeys(names, np.zeros(3))
    path = tmp_path / "a.csv"
    for times, message in (
        ([10, 20, 20], "time must increase, got 0 s after sample 1"),
        ([10, 20, 15], "time must increase, got -0.005 s after sample 1"),
        ([10, np.nan, 20], "time must be 3 finite numbers"),
    ):
        writers.write_csv(path, {"Timestamp": np.array(times)} | columns)
        refused(path, path.read_bytes(), message, None)
    lost = columns | {"stateEstimate.x": np.array([0, np.inf, 0])}
    writers.write_csv(path, {"Timestamp": np.arange(3.0)} | lost)
    refused(path, path.read_bytes(), "pose must be 3 x 7 finite numbers", None)


def test_folders(short: FlightLog, tmp_path: Path) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    with pytest.raises(ValueError, match="1 to 100 CSV files in the folder, got 0"):
        read_flight_log(empty)
    writers.write_radio(short, other)
    (other / "notes.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"notes\.csv is not a log block with a column Timestamp"):
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
