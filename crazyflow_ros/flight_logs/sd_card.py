"""Logs that the Crazyflie's firmware writes to its micro SD card.

Format: `src/deck/drivers/src/usddeck.c` of the firmware. A header names the events and their
variables, each with the type character of Python's `struct`; records of an event's number, a time
and its values follow; a CRC-32 of all ends the file.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.flight_logs import firmware
from crazyflow_ros.flight_logs.firmware import Table
from crazyflow_ros.flight_logs.flight_log import SAMPLES, FlightLog

MAGIC = b"\xbc"
PERIODIC = "fixedFrequency"
"""Event of the variables that are logged at a fixed rate."""
SLOW_CLOCK = 85 / 84
"""Seconds per second of the microsecond timer, before its divider was corrected.

It divided by one more than what it was given, until pull request 1684 of the firmware, of August
2026.
"""
_TIMES = {1: ("u4", 1e-3), 2: ("u8", 1e-6)}  # of a version: type, and its unit [s]
_TYPES = {
    "B": "u1", "b": "i1", "H": "u2", "h": "i2", "I": "u4", "i": "i4", "f": "f4", "e": "f2",
}  # fmt: skip
_CRC_BYTES = 4
_MOST_EVENTS = 100  # the firmware has 20
_MOST_VARIABLES = 1000  # of an event
_MOST_NAME = 100  # bytes
_CYCLES = 4000  # of the periodic event; enough to tell its rate within 1 / 4000
_CLOSE = 0.004  # relative difference of the rate of the IMU, which paces the loop
_COHERENT = 0.5


def flight_log(name: str, content: bytes, clock: float | None = None) -> FlightLog:
    """Return the flight.

    Args:
        name: Its name.
        content: The log.
        clock: Seconds per second of the log's clock; None: as `clock_scale` finds.

    Raises:
        ValueError: It is not such a log, has no pose, does not tell its clock, or a value is out of
            its limits.
    """
    tables = read_tables(content)
    scale = clock_scale(tables) if clock is None else clock
    first = min((time[0] for time, _ in tables.values()), default=0.0)
    corrected = [Table(scale * (time - first), columns) for time, columns in tables.values()]
    return replace(firmware.flight_log(name, corrected), clock=scale)


class _Event(NamedTuple):
    name: str
    variables: list[str]
    record: np.dtype


def read_tables(content: bytes) -> dict[str, Table]:
    """Return a table of each event that was logged, by its name.

    Raises:
        ValueError: It is not such a log, is damaged, or was not completed.
    """
    if not content.startswith(MAGIC):
        raise ValueError("not a log of the firmware's SD card")
    if zlib.crc32(content[:-_CRC_BYTES]) != int.from_bytes(content[-_CRC_BYTES:], "little"):
        raise ValueError(
            "the checksum is wrong: the file is damaged, or the drone was switched off while it "
            "logged"
        )
    try:
        version, events, start = _header(content)
    except (struct.error, IndexError):
        raise ValueError("the header is not complete") from None
    bytes_ = np.frombuffer(content, np.uint8)
    _, unit = _TIMES[version]
    tables = {}
    sizes = {event: record.itemsize for event, (_, _, record) in events.items()}
    for event, found in _records(content, start, sizes):
        name, variables, record = events[event]
        rows = np.lib.stride_tricks.sliding_window_view(bytes_, record.itemsize)[found]
        values = np.ascontiguousarray(rows).view(record)[:, 0]
        with np.errstate(invalid="ignore"):  # NaN that signal; they are refused later
            columns = {variable: values[variable].astype(float) for variable in variables}
        tables[name] = Table(unit * values["time"], columns)
    return tables


def _header(content: bytes) -> tuple[int, dict[int, _Event], int]:
    """Return the version, the events by number, and where the records start."""
    version, count = struct.unpack_from("<HH", content, 1)
    if version not in _TIMES:
        raise ValueError(f"version must be {' or '.join(map(str, _TIMES))}, got {version}")
    if count > _MOST_EVENTS:
        raise ValueError(f"expected at most {_MOST_EVENTS} events, got {count}")
    at, events = 5, dict[int, _Event]()
    for _ in range(count):
        (event,) = struct.unpack_from("<H", content, at)
        name, at = _name(content, at + 2)
        (variables,) = struct.unpack_from("<H", content, at)
        if variables > _MOST_VARIABLES:
            most = f"at most {_MOST_VARIABLES} variables"
            raise ValueError(f"the event {shown(name)!r} has {variables}, expected {most}")
        at += 2
        fields = [("event", "<u2"), ("time", f"<{_TIMES[version][0]}")]
        for _ in range(variables):
            text, at = _name(content, at)
            variable, kind = text[:-3], text[-3:]
            if kind[1:2] not in _TYPES or kind != f"({kind[1:2]})":
                raise ValueError(f"the variable {shown(text)!r} does not end with its type")
            fields.append((variable, f"<{_TYPES[kind[1]]}"))
        names = [field for field, _ in fields]
        if event in events or len(set(names)) < len(names) or not all(names):
            raise ValueError(f"the event {shown(name)!r} or one of its variables is there twice")
        events[event] = _Event(name, names[2:], np.dtype(fields))
    return version, events, at


def _name(content: bytes, at: int) -> tuple[str, int]:
    """Return the text that starts there, and where it ends."""
    end = content.find(b"\0", at, at + _MOST_NAME + 1)
    if end < 0:
        raise ValueError(f"a name in the header has more than {_MOST_NAME} bytes or no end")
    return content[at:end].decode(errors="replace"), end + 1


def _records(content: bytes, at: int, sizes: dict[int, int]) -> list[tuple[int, np.ndarray]]:
    """Return the numbers of the events that occurred, each with where its records start."""
    end = len(content) - _CRC_BYTES
    found: dict[int, list[int]] = {event: [] for event in sizes}
    left = 2 * SAMPLES
    while at < end:
        event = content[at] | content[at + 1] << 8
        if event not in sizes or at + sizes[event] > end or not left:
            what = f"the event {event}" if left else f"more than {2 * SAMPLES} records"
            raise ValueError(f"unexpected record at byte {at} of {end}: {what}")
        found[event].append(at)
        at += sizes[event]
        left -= 1
    return [(event, np.array(starts)) for event, starts in found.items() if starts]


def clock_scale(tables: dict[str, Table]) -> float:
    """Return how many seconds passed during a second of the log's clock.

    The clock was slow (`SLOW_CLOCK`) and has been corrected, and a log does not say by which
    firmware it was written. Its periodic records tell: the loop that writes them is paced by the
    IMU or by the operating system, to whole milliseconds of their own oscillators. In 115 real logs
    for 500 Hz, they come 500.4 to 500.7 times a second once the clock is corrected.

    Args:
        tables: The log, at least one second of it.

    Raises:
        ValueError: There is no periodic record, or their rate fits neither clock.
    """
    time = tables[PERIODIC].time[:_CYCLES] if PERIODIC in tables else np.zeros(0)
    if len(time) > 1:
        period = max(1.0, round(float(np.median(np.diff(time))) * 1e3)) * 1e-3
        close = np.linspace(1 - _CLOSE, 1 + _CLOSE, 161)
        fits = {
            scale: max(
                abs(np.exp(2j * np.pi * scale / period * part * time).mean()) for part in close
            )
            for scale in (1.0, SLOW_CLOCK)
        }
        best = max(fits, key=lambda scale: fits[scale])
        if len(time) * period > 1 and fits[best] > _COHERENT:
            return best
    raise ValueError(
        f"the log does not tell which clock it has: expected records {PERIODIC} of at least 1 s in "
        "steps of whole milliseconds; give the clock: 1, or 85/84 for firmware before August 2026"
    )
