"""CSV of what a Crazyflie logs by radio.

As the recorder of Bitcraze's client writes it (`cfclient/utils/logdatawriter.py`), a file for each
log block, or a script of cflib.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from crazyflow_ros.flight_logs import firmware
from crazyflow_ros.flight_logs.flight_log import FlightLog
from crazyflow_ros.flight_logs.tables import Table

_TIMES = ("Timestamp", "timestamp")
_UNIT = 1e-3  # s
_WRAP = 1 << 24  # ms; packets have 24 bits for the time


def is_block(columns: Iterable[str]) -> bool:
    """Whether columns are those of a log block: the time and variables of the firmware."""
    return any(name in _TIMES for name in columns) and any("." in name for name in columns)


def flight_log(
    name: str, blocks: Sequence[dict[str, np.ndarray]], clock: float | None
) -> FlightLog:
    """Return the flight.

    Args:
        name: Its name.
        blocks: Columns by name, each (n,), of the log blocks of one connection.
        clock: Seconds per second of the log's clock; None: 1, for packets have the time of the
            operating system.

    Raises:
        ValueError: There is no pose, or a value is out of its limits.
    """
    times = [next(columns[name] for name in _TIMES if name in columns) for columns in blocks]
    first = min(time[0] for time in times)
    scale = 1.0 if clock is None else clock
    tables = [
        Table(scale * _UNIT * (np.unwrap(time, period=_WRAP) - first), columns)
        for time, columns in zip(times, blocks)
    ]
    return replace(firmware.flight_log(name, tables), clock=scale)
