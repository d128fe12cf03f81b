"""The reader of flights, which finds out in which format they were logged."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import BinaryIO

import numpy as np

from crazyflow_ros.checks.archive import read_arrays
from crazyflow_ros.checks.limits import Limit, number, open_file, shown_path
from crazyflow_ros.flight_logs import csv_formats, recordings, sd_card
from crazyflow_ros.flight_logs.flight_log import FlightLog

_FILE_BYTES = 2 << 30
_CONTENT_BYTES = 512 << 20  # of formats other than MCAP, which are read as a whole
_XZ_MEMORY = 256 << 20  # bytes; the largest preset of `xz` needs 65 MiB
_MOST_BLOCKS = 100  # files in a folder
_CLOCK = Limit(10, "")
_START_BYTES = 4096
_XZ = b"\xfd7zXZ\0"
_STARTS = {recordings.MAGIC: ".mcap", b"PK\3\4": ".npz", sd_card.MAGIC: ".bin"}
"""First bytes of files, and the usual suffix."""


def read_flight_log(path: str | Path, drone: str = "cf0", clock: float | None = None) -> FlightLog:
    """Read a flight; docs/guides/flight_logs.md lists the formats, which the content tells.

    Args:
        path: Log of the firmware's SD card; CSV of a log block of cflib, of NanoBench, of
            `Crazyflie-2.0-battery-data`, or of poses and attitude commands; NPZ; MCAP; all of them
            also compressed by `xz`. Or a folder of rosbag2, or with the CSV files of several log
            blocks of one connection.
        drone: Name of the drone in an MCAP file.
        clock: Seconds per second of the Crazyflie's clock in an SD card's or cflib's log; by
            default, as `sd_card.clock_scale` finds, or 1.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file, or not such a flight.
        ModuleNotFoundError: The package that reads MCAP is not installed.
    """
    path = Path(path)
    try:
        if clock is not None:
            number("clock", clock, _CLOCK)
        if path.is_dir() and any(path.glob("*.mcap")):
            from crazyflow_ros.checks.mcap_file import in_bag

            path = in_bag(path)
        if path.is_dir():
            return csv_formats.of_blocks(path.name, _blocks(path), clock)
        with _opened(path) as file:
            return _read(path.name.removesuffix(".xz"), file, drone, clock)
    except ValueError as error:
        raise ValueError(f"{shown_path(path)}: {error}") from None


def _read(name: str, file: BinaryIO, drone: str, clock: float | None) -> FlightLog:
    stem, kind = Path(name).stem, _kind(Path(name).suffix.lower(), file.read(_START_BYTES))
    file.seek(0)
    if kind == ".bin":
        return sd_card.flight_log(name, _content(file), clock)
    if kind == ".csv":
        columns = csv_formats.read_columns(_content(file))
        if csv_formats.is_block(columns):
            return csv_formats.of_blocks(stem, [columns], clock)
        _refuse(clock)
        return csv_formats.of_columns(stem, columns)
    _refuse(clock)
    if kind == ".mcap":
        return recordings.flight_log(stem, file, drone)
    if kind == ".npz":
        try:
            return csv_formats.of_arrays(
                stem, read_arrays(file, _CONTENT_BYTES, may_be_compressed=True)
            )
        except ValueError as error:
            raise ValueError(f"not an NPZ file of a flight: {error}") from None
    raise ValueError(
        "a flight must be a file .npz, .csv or .mcap, a log of the firmware's SD card, or a folder "
        "of CSV files"
    )


def _kind(suffix: str, start: bytes) -> str:
    """Return the usual suffix of files that start like this."""
    for magic, usual in _STARTS.items():
        if start.startswith(magic):
            return usual
    is_table = b"," in start.partition(b"\n")[0] and suffix not in _STARTS.values()
    return ".csv" if is_table else suffix


def _refuse(clock: float | None) -> None:
    if clock is not None:
        raise ValueError(f"only logs of a Crazyflie have a clock of their own, got clock={clock:g}")


def _opened(path: Path) -> BinaryIO:
    """Open a file, decompressed if it is compressed by `xz`."""
    file = open_file(path, _FILE_BYTES)
    try:
        is_compressed = file.read(len(_XZ)) == _XZ
        file.seek(0)
        if not is_compressed:
            return file
        compressed = _content(file)
    except BaseException:
        file.close()
        raise
    file.close()
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    try:
        content = decompressor.decompress(compressed, _CONTENT_BYTES + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"not an .xz file: {error}") from None
    if len(content) > _CONTENT_BYTES:
        raise ValueError(f"too large: expected at most {_CONTENT_BYTES} decompressed bytes")
    if not decompressor.eof:
        raise ValueError("not an .xz file: it has no end")
    return io.BytesIO(content)


def _content(file: BinaryIO) -> bytes:
    size = file.seek(0, io.SEEK_END)
    if size > _CONTENT_BYTES:
        raise ValueError(f"too large: {size} bytes, expected at most {_CONTENT_BYTES}")
    file.seek(0)
    return file.read(size)


def _blocks(folder: Path) -> list[dict[str, np.ndarray]]:
    """Return the columns of the log blocks in a folder."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".csv")
    if not 1 <= len(files) <= _MOST_BLOCKS:
        raise ValueError(f"expected 1 to {_MOST_BLOCKS} CSV files in the folder, got {len(files)}")
    blocks = []
    for file in files:
        with _opened(file) as opened:
            columns = csv_formats.read_columns(_content(opened))
        if not csv_formats.is_block(columns):
            raise ValueError(f"{shown_path(file)} is not a log block with a column Timestamp")
        blocks.append(columns)
    return blocks
