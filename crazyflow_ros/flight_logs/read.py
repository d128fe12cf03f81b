"""Read a flight, in whatever format it was logged."""

from __future__ import annotations

from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.flight_logs import nanobench
from crazyflow_ros.flight_logs.flight_log import FlightLog
from crazyflow_ros.flight_logs.tables import read_table

_SUFFIXES = (".csv", ".csv.xz")


def read_flight_log(path: str | Path) -> FlightLog:
    """Read a flight.

    Args:
        path: CSV of NanoBench, also compressed by `xz`.

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
        raise ValueError(f"a flight must be a file {', '.join(_SUFFIXES)}, got {shown_path(path)}")
    if table.keys() >= nanobench.COLUMNS:
        return nanobench.flight_log(name, table)
    raise ValueError(f"{shown_path(path)}: unknown columns {', '.join([*table][:20])}")
