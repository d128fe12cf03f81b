"""A line that shows the progress of the flight."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections import deque
from typing import TextIO


class ProgressLine:
    """A progress line: rewritten in place on a terminal, otherwise printed periodically."""

    REFRESH = 0.1  # s of wall time between updates of a terminal
    SPARSE = 5.0  # s of wall time between lines in other streams
    WINDOW = 1.0  # s of wall time, shortest window of the real-time factor

    def __init__(self, stream: TextIO | None = None) -> None:
        """Start counting.

        Args:
            stream: Output stream, `sys.stdout` if None.
        """
        self._stream = stream or sys.stdout
        self._terminal = self._stream.isatty()
        self._interval = self.REFRESH if self._terminal else self.SPARSE
        self._history: deque[tuple[float, float]] = deque()  # wall and simulated time, s
        self._length = 0

    def show(self, simulated: float, duration: float, status: str) -> None:
        """Show the progress.

        Args:
            simulated: Simulated time since the start of the flight, s.
            duration: Duration of the flight, s.
            status: Phase of the flight in a few words.
        """
        now = time.monotonic()
        history = self._history
        if history and now - history[-1][0] < self._interval:
            return
        history.append((now, simulated))
        while len(history) > 2 and now - history[1][0] >= self.WINDOW:
            history.popleft()
        wall, before = history[0]
        factor = (simulated - before) / (now - wall) if len(history) > 1 else math.nan
        seconds = min(max(simulated, 0.0), duration)
        self._write(
            f"{seconds:5.1f} of {duration:.1f} s"
            f"   real-time factor {'  --' if math.isnan(factor) else f'{factor:4.2f}'}"
            f"   {status}"
        )

    def close(self) -> None:
        """End the line."""
        if self._terminal and self._length:
            self._stream.write("\n")
            self._length = 0

    def _write(self, line: str) -> None:
        if self._terminal:
            # What reaches the edge would go on in the next line, which \r does not come back from.
            line = line[: shutil.get_terminal_size().columns - 1]
            self._stream.write(f"\r{line:<{self._length}}")
            self._length = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()
