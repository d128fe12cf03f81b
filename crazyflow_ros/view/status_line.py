"""The line on top of the page of a simulator, and the start page without a simulator."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from crazyflow_ros.view.alarms import Alarm
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.page_log import Log
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.shell import Shell

_PERIOD = 0.1  # s of wall time between two updates
_SILENT = 5.0  # s of wall time; a simulator reports once a second
_LINES = 3  # of the log, while a simulator starts
_PACKAGE = "crazyflow_ros"
_LONGEST, _MOST_OTHERS = 300, 8  # characters of a text, and names


class StatusLine:
    """Tells the tabs the state of the simulation, its alarms, and what the page waits for.

    Args:
        shell: The page's shell, whose scripts `status.js` and `start.js` show it.
        follower: The connection to the simulator.
        state: What the page knows of the simulator.
        log: The log of the page.
        records: Returns whether the page records.
    """

    def __init__(
        self,
        shell: Shell,
        follower: Follower,
        state: SimulatorState,
        log: Log,
        records: Callable[[], bool],
    ) -> None:
        self._shell, self._follower, self._state = shell, follower, state
        self._log, self._records = log, records
        self._due, self._since = 0.0, time.monotonic()
        self._began = time.time()  # that the page waits, by the clock of the log
        self._was_there = self._started = False
        self.update(None, "")

    def update(self, frame: Frame | None, drone: str) -> None:
        """Show the latest state.

        Args:
            frame: The drones; None without a simulator, or before its first message.
            drone: Name of the selected drone.
        """
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _PERIOD
        is_there = frame is not None
        if is_there != self._was_there:
            self._was_there, self._since, self._began = is_there, now, time.time()
        if (starts := self._follower.graph.starts) != self._started:
            self._started, self._since = starts, now  # how long it starts, as its log predicts
        if frame is None:
            self._show_waiting(now - self._since)
        else:
            self._show_running(frame, drone)

    def _show_running(self, frame: Frame, drone: str) -> None:
        state, show = self._state, self._shell.show
        self._show_start(0.0)
        paused, factor = state.paused, state.factor
        alarms = state.alarms.now()
        if time.monotonic() > state.heard + _SILENT:
            alarms.insert(0, Alarm("silent", ("silent",), None, "the simulator does not answer"))
        show(
            "status",
            {
                **self._named(),
                "word": "crash" if state.alarms.crashed else "paused" if paused else "",
                "state": "paused" if paused else "running",
                "factor": round(factor, 2)
                if factor > 0 and isfinite(factor) and not paused
                else None,
                "drones": len(frame.names),
                "drone": self._described(drone) if drone in frame.names else None,
                "records": self._records() or bool(self._follower.parameters.get("record")),
            },
        )
        show("time", round(frame.time_ns * 1e-9, 3 if paused else 1))
        show("alarms", list(map(_as_content, alarms)))

    def _described(self, drone: str) -> dict[str, Any]:
        battery = self._state.batteries.get(drone)
        is_known = battery is not None and isfinite(battery.charge)
        return {
            "name": drone[:_LONGEST],
            "state": self._state.flight.get(drone, "")[:_LONGEST],
            "battery": round(100 * battery.charge) if battery and is_known else None,
        }

    def _show_waiting(self, seconds: float) -> None:
        follower, show = self._follower, self._shell.show
        ended, graph = follower.ended_ns, follower.graph
        state = "starting" if graph.starts else "waiting" if ended is None else "ended"
        status = {"word": state, "state": state, "factor": None, "drones": None, "drone": None}
        show("status", {**self._named(), **status, "records": False})
        show("alarms", [])
        if ended is None:
            show("time", None)
        self._show_start(seconds)

    def _show_start(self, seconds: float) -> None:
        """Show what the page waits for, and for how many seconds it has waited."""
        follower = self._follower
        graph, ended, name = follower.graph, follower.ended_ns, _short(self._full_name())
        lines = [line.text[:_LONGEST] for line in self._log.lines() if line.time >= self._began]
        self._shell.show(
            "start",
            {
                "is_there": follower.is_there,
                "name": name,
                "domain": follower.domain,
                "seconds": int(seconds),
                "starts": graph.starts,
                "ended": None if ended is None or self._was_there else round(ended * 1e-9, 1),
                "lines": lines[:_LINES][::-1] if graph.starts else [],
                "start": command_of() if name == "crazyflow" else "",
                "others": [page_of(other) for other in graph.others[:_MOST_OTHERS]],
            },
        )

    def _named(self) -> dict[str, Any]:
        others = [_short(other) for other in self._follower.graph.others[:_MOST_OTHERS]]
        return {"name": _short(self._full_name()), "others": others, "other": page_of("NAME")}

    def _full_name(self) -> str:
        return self._follower.topic(self._follower.name)


def _as_content(alarm: Alarm) -> dict[str, Any]:
    parts, remedy = alarm.parts, alarm.remedy
    whom = parts[0][:_LONGEST] if len(parts) == 1 else f"{len(parts)} drones"
    return {
        "kind": alarm.kind,
        "ids": [key[:_LONGEST] for key in alarm.ids],
        "time": None if alarm.time_ns is None else round(alarm.time_ns * 1e-9, 1),
        "text": alarm.text[:_LONGEST],
        "button": f"{remedy} {whom}" if remedy else "",
    }


def _short(name: str) -> str:
    """Return a full name as a user writes it: without the root namespace."""
    return name.removeprefix("/")


def command_of(program: str = "") -> str:
    """Return the command that starts a program of this package, by default the simulator.

    It works in the folder where the page was started, in an environment that is activated or not.
    """
    if Path(sys.argv[0]).parent.parts[-2:] == ("lib", _PACKAGE):  # where `ros2 run` looks
        return f"ros2 run {_PACKAGE} {program or 'simulator'}"
    python = Path(sys.orig_argv[0])
    if python.is_relative_to(here := Path.cwd()):
        python = python.relative_to(here)
    return shlex.join(filter(None, [os.fspath(python), "-m", _PACKAGE, program]))


def page_of(name: str) -> str:
    """Return the command that shows the simulator with a full name on a page."""
    namespace, _, node = name.rpartition("/")
    where = ["--namespace", namespace] if namespace else []
    return f"{command_of('view')} {shlex.join(['--node', node, *where])}"
