"""Reads the files of a recording's page in a thread, and sends its tabs what was found."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from crazyflow_ros.ros.messages import NS
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.curves import curves, rows_of
from crazyflow_ros.view.replay.events import Event
from crazyflow_ros.view.replay.player import SPEEDS
from crazyflow_ros.view.replay.run import POINTS, Run
from crazyflow_ros.view.replay.run_comparison import (
    Alignment,
    Difference,
    first_difference,
    shift_ns,
)
from crazyflow_ros.view.replay.share.flight_page import flight_page
from crazyflow_ros.view.replay.share.span import span_of
from crazyflow_ros.view.replay.why import explain
from crazyflow_ros.view.shell import Shell

OTHER = "(2)"
"""Behind the names of the drones of the second run."""

LIMITS = (0.001, 10.0)
"""Least and greatest limit of the distance of two runs that do not differ [m]."""

_FIRST_LIMIT = 0.1  # m
_SHARED = "/flight.html"  # path of the file for others
_SHARE = 0.05  # of a file, after which the events found so far are shown

Span = tuple[int, int]
"""Begin and end of a span of time in the first file [ns]."""


class Analysis:
    """Reads one or two runs in a thread; its methods return at once.

    Args:
        recordings: The runs; their reading positions do not change.
        shell: Shows the results.

    Attributes:
        runs: The runs, with the events found so far.
        shift_ns: Shift from times of the first run to times of the second run [ns].
        is_read: Whether the files have been read once.
    """

    def __init__(self, recordings: Sequence[Recording], shell: Shell) -> None:
        self.runs = [Run(recording) for recording in recordings]
        self.shift_ns, self.is_read, self._is_sharing = 0, False, False
        self._alignment, self._limit = Alignment.START, _FIRST_LIMIT
        self._first, self._shell = recordings[0], shell
        self._plotted: object = None
        self._notes = list(self._first.notes)
        if len(self.runs) > 1:
            self.shift_ns = recordings[1].begin_ns - recordings[0].begin_ns
            self._notes += [f"{self.runs[1].name}: {note}" for note in recordings[1].notes]
        self._ended = threading.Event()
        self._worker = ThreadPoolExecutor(1, "replay")
        names = " and ".join(run.name for run in self.runs)
        shell.show("status", {"word": "recording", "name": names})  # for the tab's title
        self._show_recording()
        self._show_events(0.0)

    def start(self) -> None:
        """Read the files."""
        self._begin(self._scan)

    def close(self) -> None:
        """End the work in progress."""
        self._ended.set()
        self._worker.shutdown(cancel_futures=True)

    def explain(self, run: int, number: int, drone: str) -> None:
        """Show why an event of a run happened, to `drone` if the event names no drone."""
        self._begin(self._explain, run, number, self.runs[run].events[number], drone)

    def align(self, alignment: Alignment) -> None:
        """Change the alignment of the two runs."""
        if len(self.runs) > 1:
            self._begin(self._align, alignment)

    def set_limit(self, limit: float) -> None:
        """Change the distance beyond which the runs differ [m]."""
        self._limit = limit
        self._show_recording()
        if len(self.runs) > 1:
            self._begin(self._compare)

    def plot(self, drone: str, window: Span | None) -> None:
        """Show the curves of a drone over a span of time, or over the whole flight."""
        key = drone, window, self.shift_ns
        if self.is_read and drone and key != self._plotted:
            self._plotted = key
            self._begin(self._plot, key)

    def share(self, window: Span | None) -> None:
        """Offer the first run, or a span of it [ns], as a file for others."""
        if self.is_read and not self._is_sharing:
            self._is_sharing = True
            self._begin(self._share, window)

    def note(self, text: str) -> None:
        """Show the user a problem, on the page and in the terminal."""
        if text not in self._notes:
            self._notes.append(text)
            print(text, file=sys.stderr, flush=True)
            self._show_recording()

    def seconds(self, time_ns: int, run: int = 0) -> float:
        """Return the shown time [s] of a time in the file of a run [ns]."""
        return (time_ns - self._zero_ns(run)) / NS

    # In the worker.

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        if not self._ended.is_set():
            self._worker.submit(self._try, work, *arguments)

    def _try(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as error:  # the files may hold anything; the page goes on
            self.note(str(error) or repr(error))

    def _scan(self) -> None:
        """Read the files from beginning to end."""
        for number, run in enumerate(self.runs):
            self._try(self._read, number, run)
        self.is_read = True
        self._show_events(1.0)
        if len(self.runs) > 1:
            self._compare()

    def _read(self, number: int, run: Run) -> None:
        shown = 0.0

        def tell(share: float) -> bool:
            nonlocal shown
            if share - shown > _SHARE and share < 1:
                shown = share
                self._show_events((number + share) / len(self.runs))
            return not self._ended.is_set()

        run.scan(tell)

    def _explain(self, run: int, number: int, event: Event, drone: str) -> None:
        card = explain(self.runs[run], event, drone).as_json(self._zero_ns(run))
        self._shell.show("card", card | {"run": run, "number": number, "group": event.group})

    def _align(self, alignment: Alignment) -> None:
        first, second = self.runs
        shift = shift_ns(first, second, alignment)
        if shift is None:
            self.note(
                "In one of the two runs no drone takes off, so they cannot be aligned by take-off."
            )
        else:
            self.shift_ns, self._alignment = shift, alignment
        self._show_recording()
        self._show_events(1.0)
        self._compare()

    def _compare(self) -> None:
        first, second = (run.recording for run in self.runs)
        limit = self._limit
        self._shell.show("difference", {"text": "comparing …", "t": None})
        found = first_difference(
            first, second, self.shift_ns, limit, lambda: not self._ended.is_set()
        )
        self._shell.show("difference", self._words(found, limit))

    def _words(self, found: Difference | None, limit: float) -> dict[str, Any]:
        if found is None:
            return {"text": f"The runs never differ by more than {limit:g} m.", "t": None}
        seconds = self.seconds(found.time_ns)
        text = (
            f"They first differ by more than {limit:g} m at {seconds:.2f} s: "
            f"{found.drone}, {found.distance:.3f} m"
        )
        return {"text": text, "t": seconds, "drone": found.drone}

    def _plot(self, key: tuple[str, Span | None, int]) -> None:
        """Send the curves, unless others were asked for meanwhile."""
        if key != self._plotted:
            return
        drone, window, shift = key
        content = []
        for number, run in enumerate(self.runs):
            own = shift if number else 0
            samples = run.overview
            if window is not None:
                samples = run.read(window[0] + own, window[1] + own, POINTS)
            battery = run.batteries.get(drone, [])
            content.append(curves(samples, drone, self._zero_ns(number), battery))
        self._shell.show("curves", {"drone": drone, "runs": content})

    def _share(self, window: Span | None) -> None:
        show = partial(self._shell.show, "share")
        try:
            edges = () if window is None else map(self.seconds, window)
            span, run = span_of(self._first, *edges), self.runs[0]
            page = flight_page(run, span, lambda done: show({"done": min(round(done, 2), 0.99)}))
            name = f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', run.name)}.html"
            self._shell.files[_SHARED] = name, page
            show({"done": 1, "path": _SHARED, "name": name})
        except BaseException:
            show({"done": 1})
            raise  # which is noted
        finally:
            self._is_sharing = False

    # What is shown.

    def _zero_ns(self, run: int) -> int:
        return self._first.zero_ns + (self.shift_ns if run else 0)

    def _show_recording(self) -> None:
        first = self._first
        content = {
            "names": [run.name for run in self.runs],
            "begin": self.seconds(first.begin_ns),
            "end": self.seconds(first.end_ns),
            "notes": self._notes,
            "rows": rows_of(self._first.model),
            "speeds": SPEEDS,
            "alignments": list(Alignment),
            "alignment": self._alignment,
            "limit": self._limit,
            "other": OTHER,
        }
        self._shell.show("recording", content)

    def _show_events(self, share: float) -> None:
        content = [
            [
                (
                    *(self.seconds(event.time_ns, number), event.drone, event.kind),
                    *(event.group, event.severity, event.text),
                )
                for event in run.events
            ]
            for number, run in enumerate(self.runs)
        ]
        left_out = sum(sum(run.left_out.values()) for run in self.runs)
        self._shell.show("events", {"share": share, "runs": content, "leftOut": left_out})
