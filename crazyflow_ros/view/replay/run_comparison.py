"""Comparison of two runs: their common time, and their first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from crazyflow_ros.ros.messages import NS
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.messages import FrameReader
from crazyflow_ros.view.recording import Recording, every
from crazyflow_ros.view.replay.run import Run

_PERIOD = NS // 100  # ns between two states that are compared


class Alignment(StrEnum):
    """The instant that is the same time in both runs."""

    START = "start of the recording"
    TAKEOFF = "first take-off"


class Difference(NamedTuple):
    """Where two runs first differ by more than a limit."""

    time_ns: int
    """In the file of the first run [ns]."""
    drone: str
    distance: float
    """Between the places of the drone [m]."""


def shift_ns(first: Run, second: Run, alignment: Alignment) -> int | None:
    """Return the shift from times of the first run to times of the second run [ns].

    None if one of the runs has no such instant.
    """
    if alignment is Alignment.START:
        return second.recording.begin_ns - first.recording.begin_ns
    times = first.takeoff_ns(), second.takeoff_ns()
    return None if times[0] is None or times[1] is None else times[1] - times[0]


def first_difference(
    first: Recording,
    second: Recording,
    shift_ns: int,
    limit: float,
    go_on: Callable[[], bool] = lambda: True,
) -> Difference | None:
    """Find the first time at which drones of the same name are further apart than a limit.

    States of the second run are interpolated at the times of the first.

    Args:
        first: The first run.
        second: The second run.
        shift_ns: Shift from times of the first run to times of the second run [ns].
        limit: Distance [m].
        go_on: Called once a second of the flight; False ends the search.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file is damaged.
    """
    others = _states(second, max(first.begin_ns + shift_ns, 0))
    before, after = None, next(others, None)
    told = first.begin_ns
    for time_ns, frame in _states(first, max(second.begin_ns - shift_ns, 0)):
        if time_ns > told + NS:
            told = time_ns
            if not go_on():
                return None
        other_ns = time_ns + shift_ns
        while after is not None and after[0] < other_ns:
            before, after = after, next(others, None)
        if after is None:
            return None
        if before is None and after[0] > other_ns:
            continue
        names, places = _between(before or after, after, other_ns)
        found = _furthest(frame, names, places)
        if found is not None and found[1] > limit:
            return Difference(time_ns, *found)
    return None


def _states(recording: Recording, begin_ns: int) -> Iterator[tuple[int, Frame]]:
    reader = FrameReader()
    topics = {recording.states: every(_PERIOD)}
    for message in recording.file.messages(topics, begin_ns):
        yield message.time_ns, reader.read(message.data, None)


def _between(
    before: tuple[int, Frame], after: tuple[int, Frame], time_ns: int
) -> tuple[tuple[str, ...], np.ndarray]:
    """Interpolate between two states: return drones and their positions (M, 3) [m]."""
    (begin, old), (end, new) = before, after
    if old.names != new.names or end <= begin:
        return new.names, new.position
    share = (time_ns - begin) / (end - begin)
    return new.names, old.position + share * (new.position - old.position)


def _furthest(frame: Frame, names: tuple[str, ...], places: np.ndarray) -> tuple[str, float] | None:
    """Return the drone whose positions in both runs are furthest apart, and their distance [m]."""
    rows = {name: row for row, name in enumerate(names)}
    both = [(row, rows[name]) for row, name in enumerate(frame.names) if name in rows]
    if not both:
        return None
    here, there = map(list, zip(*both))
    distances = np.linalg.norm(frame.position[here] - places[there], axis=1)
    worst = int(np.argmax(distances))
    return frame.names[here[worst]], float(distances[worst])
