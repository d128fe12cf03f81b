"""The points of a plot: for the browser, and as a file."""

from __future__ import annotations

import csv
import io
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

_MOST = 600  # points, a minute at ten in a second
_DIGITS = 7  # of a value in a plot, after the point

Values = tuple[float | None, ...]
"""Numbers at one time; None where there is none."""


@dataclass
class Series:
    """Some numbers over simulated time.

    Attributes:
        title: What they are, and of which drone.
        labels: Their labels, with units.
        colors: A colour for each, as in CSS.
        setpoint: Whether it is a setpoint, which looks different.
        least: Smallest range of the axis, up and down, so that it does not magnify noise.
    """

    title: str
    labels: Sequence[str]
    colors: Sequence[str]
    setpoint: Sequence[bool]
    least: float = 0.0
    _rows: deque[tuple[int, Values]] = field(default_factory=lambda: deque(maxlen=_MOST))
    _new: list[tuple[int, Values]] = field(default_factory=list)
    _is_gap: bool = False

    @property
    def time_ns(self) -> int:
        """Simulated time of the last point; -1 if there is none."""
        return self._rows[-1][0] if self._rows else -1

    def add(self, time_ns: int, values: Iterable[float]) -> None:
        """Add the numbers at a time, unless that time is the last one.

        The series starts anew if the time is earlier, as after a reset.

        Args:
            time_ns: Simulated time.
            values: A number for each label; one that is not finite is a gap.
        """
        last = self.time_ns
        if time_ns == last:
            return
        if time_ns < last:
            self.clear()
        row = tuple(float(value) if math.isfinite(value) else None for value in values)
        if self._is_gap and self._rows:
            self._append(((last + time_ns) // 2, (None,) * len(self.labels)))
        self._is_gap = False
        self._append((time_ns, row))

    def interrupt(self) -> None:
        """Leave a gap before the next point, because nothing was measured in between."""
        self._is_gap = True

    def clear(self) -> None:
        """Remove all points."""
        self._rows.clear()
        self._new.clear()
        self._is_gap = False

    def _append(self, row: tuple[int, Values]) -> None:
        self._rows.append(row)
        self._new.append(row)

    def change(self) -> Any:
        """Return the points since the last call for the browser; None without new points."""
        rows, self._new = self._new, []
        return {"rows": list(map(_for_browser, rows))} if rows else None

    def everything(self) -> Any:
        """Return everything for the browser."""
        return {
            "title": self.title,
            "labels": list(self.labels),
            "colors": list(self.colors),
            "setpoint": list(self.setpoint),
            "least": self.least,
            "most": _MOST,
            "rows": list(map(_for_browser, self._rows)),
        }

    def as_csv(self) -> str:
        """Return all points as CSV with units in the header and times in nanoseconds' precision."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("time [s]", *self.labels))
        for time_ns, values in tuple(self._rows):
            seconds, nanoseconds = divmod(time_ns, 10**9)
            cells = ("" if value is None else repr(value) for value in values)
            writer.writerow((f"{seconds}.{nanoseconds:09d}", *cells))
        return file.getvalue()


def _for_browser(row: tuple[int, Values]) -> list[float | None]:
    time_ns, values = row
    return [time_ns / 1e9, *(None if value is None else round(value, _DIGITS) for value in values)]
