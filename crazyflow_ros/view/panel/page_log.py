"""The log of the page, with messages of the simulator and of the page itself."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

from rcl_interfaces.msg import Log as Rosout
from rclpy.qos import DurabilityPolicy, QoSProfile

from crazyflow_ros.view.follower import Follower

INFO, WARNING, ERROR = 20, 30, 40  # of rcl_interfaces/msg/Log, whose type varies with versions
_LINES = 200
_LONGEST = 2000  # characters of a line
_COLORS = {INFO: "inherit", WARNING: "var(--warn)", ERROR: "var(--bad)"}
# With what a simulator that starts has said before it was discovered.
_MANY = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Line(NamedTuple):
    """A line of the log."""

    time: float
    """Wall time [s] since 1970."""
    level: int
    text: str
    times: int
    """How many times in a row the line was logged."""


class Log:
    """The latest lines. All methods are thread-safe."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=_LINES)
        self._changes = 0
        self._listeners: list[Callable[[str], None]] = []
        self._lock = threading.Lock()

    def listen(self, follower: Follower) -> None:
        """Add the simulator's messages on /rosout."""
        logger = follower.topic(follower.name).removeprefix("/").replace("/", ".")

        def subscribe() -> None:
            follower.node.create_subscription(Rosout, "/rosout", note_line, _MANY)

        def note_line(message: Any) -> None:
            if message.name == logger:
                self.add(message.msg, message.level)

        follower.in_thread(subscribe)

    def on_warning(self, callback: Callable[[str], None]) -> None:
        """Call a function with the text of each warning and error, in the thread that adds it."""
        self._listeners.append(callback)

    def add(self, text: str, level: int = INFO) -> None:
        """Add a line."""
        text = text[:_LONGEST]
        with self._lock:
            times, self._changes = 1, self._changes + 1
            if self._lines and self._lines[-1][1:3] == (level, text):
                times += self._lines.pop().times
            self._lines.append(Line(time.time(), level, text, times))
        if level >= WARNING:
            for listener in self._listeners:
                listener(text)

    @property
    def changes(self) -> int:
        """Number of lines added so far."""
        return self._changes

    def lines(self) -> list[Line]:
        """Return the lines, the latest first."""
        with self._lock:
            return list(reversed(self._lines))


def as_html(lines: list[Line]) -> str:
    """Return lines as HTML; their text is escaped."""
    return "".join(map(_line_as_html, lines)) or "<i>nothing yet</i>"


def _line_as_html(line: Line) -> str:
    color = _COLORS[ERROR if line.level >= ERROR else max(line.level // 10 * 10, INFO)]
    clock = time.strftime("%H:%M:%S", time.localtime(line.time))
    times = f" <b>×{line.times}</b>" if line.times > 1 else ""
    text = escape(line.text)
    return f'<div style="color:{color}"><small>{clock}</small> {text}{times}</div>'
