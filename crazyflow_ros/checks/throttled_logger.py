"""A logger that repeats a message at most every few seconds, and then says how often it occurred.

A drone that is told to fly while it lies on its back would otherwise log every message that it
ignores, and bury everything else.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Protocol

PERIOD = 5.0
"""Wall time between the first two lines that say the same thing [s]; it doubles with each one."""
LONGEST = 60.0
"""Wall time up to which it doubles [s]."""
SILENCE = 1.0
"""Wall time after which a message counts as a new one, and is said at once [s]."""
MOST = 50
"""Different messages within `PERIOD`; others are only counted."""

# Numbers that differ do not make messages different; digits in names, such as cf0, do.
_NUMBER = re.compile(r"(?<![\w.])[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?(?!\w)|\b(nan|inf)\b")


class Logger(Protocol):
    """A logger of Python, or of a ROS node."""

    def info(self, message: str) -> object:
        """Log for information."""

    def warning(self, message: str) -> object:
        """Log a warning."""

    def error(self, message: str) -> object:
        """Log an error."""


class _Severity(IntEnum):
    info = auto()
    warning = auto()
    error = auto()


@dataclass
class _Said:
    """A message that was said."""

    severity: _Severity
    text: str
    """First line of the latest such message."""
    said: float
    """Time at which it was last said, as of the clock."""
    seen: float
    """Time at which it last occurred."""
    more: int = 0
    """How often it has occurred since it was said."""
    period: float = PERIOD
    """Time after which it is said again, if it goes on [s]."""

    @property
    def due(self) -> float:
        """Time at which it is said again, at the latest `PERIOD` after its last occurrence."""
        return min(self.said + self.period, self.seen + PERIOD)


class ThrottledLogger:
    """A logger that passes a message on at once, and its repetitions as a number.

    Messages are the same if they differ in numbers only. While one recurs faster than `SILENCE`, it
    is said again after `PERIOD`, twice that, and so on, with the number of times that it was left
    out. Messages do not suppress one another, and the last number is said even if nothing else is
    logged. Thread-safe.

    Args:
        logger: Receives the messages, from any thread.
        clock: Wall time [s].

    Attributes:
        logger: As given; may be replaced.
    """

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self.logger, self._clock = logger, clock
        self._lock = threading.Lock()  # guards everything below
        self._messages: dict[tuple[_Severity, str], _Said] = {}
        self._others, self._others_due = 0, 0.0  # messages beyond `MOST`, and when to say so
        self._worst = _Severity.info  # of these
        self._waiting = False  # whether there is a thread that says what becomes due
        self._closed = threading.Event()

    @classmethod
    def of(cls, logger: Logger) -> ThrottledLogger:
        """Return the logger itself if it is throttled, or else a throttled logger around it."""
        return logger if isinstance(logger, cls) else cls(logger)

    def info(self, message: str) -> bool:
        """Log for information, unless it was just said; return whether it is said now."""
        return self._take(_Severity.info, message)

    def warning(self, message: str) -> bool:
        """Log a warning, unless it was just said; return whether it is said now."""
        return self._take(_Severity.warning, message)

    def error(self, message: str) -> bool:
        """Log an error, unless it was just said; return whether it is said now."""
        return self._take(_Severity.error, message)

    def catch_up(self, *, everything: bool = False) -> None:
        """Say what was left out for so long that it is due, or everything that was left out."""
        with self._lock:
            lines = list(self._due(self._clock(), everything=everything))
        for severity, text in lines:
            self._say(severity, text)

    def forget(self) -> None:
        """Forget what was said: as for a new listener, each message is said at once again."""
        with self._lock:
            self._messages.clear()
            self._others, self._worst = 0, _Severity.info

    def close(self) -> None:
        """Say what was left out; from now on, say numbers only when a message recurs."""
        self._closed.set()
        self.catch_up(everything=True)

    def _take(self, severity: _Severity, text: str) -> bool:
        key, now = (severity, _NUMBER.sub("#", _ends(text))), self._clock()
        with self._lock:
            before = self._messages.get(key)
            if before is None and len(self._messages) >= MOST:
                self._forget(now)
                if len(self._messages) >= MOST:
                    self._others_due = self._others_due if self._others else now + PERIOD
                    self._others += 1
                    self._worst = max(self._worst, severity)
                    self._wake_later()
                    return False
            if before is not None and now - before.seen < SILENCE:
                before.text, before.seen = _first_line(text), now
                before.more += 1
                self._wake_later()
                return False
            if before is not None and before.more:
                text += _count(before.more, now - before.said)
            self._messages[key] = _Said(severity, _first_line(text), now, now)
        self._say(severity, text)
        return True

    def _due(self, now: float, *, everything: bool) -> Iterator[tuple[_Severity, str]]:
        """Yield what is to be said now."""
        for message in self._messages.values():
            if message.more and (everything or now >= message.due):
                count = _count(message.more, now - message.said)
                yield message.severity, f"{message.text}{count}"
                message.said, message.more = now, 0
                message.period = min(2 * message.period, LONGEST)
        self._forget(now)
        if self._others and (everything or now >= self._others_due):
            yield self._worst, f"{self._others} messages of other kinds were left out"
            self._others, self._worst = 0, _Severity.info

    def _forget(self, now: float) -> None:
        """Forget messages that have not recurred for a while."""
        kept = self._messages.items()
        self._messages = {k: m for k, m in kept if m.more or now - m.seen < PERIOD}

    def _wake_later(self) -> None:
        """Start a thread that says what was left out, unless there is one."""
        if not (self._waiting or self._closed.is_set()):
            self._waiting = True
            threading.Thread(target=self._wait, name="throttled_logger", daemon=True).start()

    def _wait(self) -> None:
        """Say what becomes due until nothing is left."""
        while (pause := self._pause()) is not None and not self._closed.wait(pause):
            self.catch_up()

    def _pause(self) -> float | None:
        """Return the time until something is due [s]; None, and end the thread, if nothing is."""
        with self._lock:
            due = [message.due for message in self._messages.values() if message.more]
            due += [self._others_due] if self._others else []
            self._waiting = bool(due)
            return max(0.0, min(due) - self._clock()) if due else None

    def _say(self, severity: _Severity, text: str) -> None:
        """Log; rclpy demands a line of code for each severity."""
        match severity:
            case _Severity.info:
                self.logger.info(text)
            case _Severity.warning:
                self.logger.warning(text)
            case _Severity.error:
                self.logger.error(text)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _ends(text: str) -> str:
    """Return the first and the last line: those of a traceback that say what failed, and why."""
    first, *_, last = text.strip().split("\n") * 2
    return f"{first}\n{last}"


def _count(more: int, seconds: float) -> str:
    return f" ({more} more in the last {max(seconds, 1.0):.0f} s)"
