"""Read a flight, in whatever format it was logged."""

from __future__ import annotations

from pathlib import Path

from crazyflow_ros.checks.limits import read_bytes, shown_path
from crazyflow_ros.flight_logs import nanobench, sd_card
from crazyflow_ros.flight_logs.flight_log import FlightLog
from crazyflow_ros.flight_logs.tables import read_table

_SUFFIXES = (".csv", ".csv.xz")
_FILE_BYTES = 1 << 30


def read_flight_log(path: str | Path, clock: float | None = None) -> FlightLog:
    """Read a flight.

    Args:
        path: Log of the firmware's SD card, or CSV of NanoBench, also compressed by `xz`.
        clock: Seconds per second of the log's clock; None of an SD card's tells it itself, see
            `sd_card.clock_scale`.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file, or not such a flight.
    """
    name = Path(path).name
    for suffix in _SUFFIXES:
        if name.lower().endswith(suffix):
            table, name = read_table(path), name[: -len(suffix)]
            break
    else:
        content = read_bytes(path, _FILE_BYTES)
        if content.startswith(sd_card.MAGIC):
            try:
                return sd_card.flight_log(name, content, clock)
            except ValueError as error:
                raise ValueError(f"{shown_path(path)}: {error}") from None
        raise ValueError(f"a flight must be a file {', '.join(_SUFFIXES)}, got {shown_path(path)}")
    if table.keys() >= nanobench.COLUMNS:
        return nanobench.flight_log(name, table)
    raise ValueError(f"{shown_path(path)}: unknown columns {', '.join([*table][:20])}")
