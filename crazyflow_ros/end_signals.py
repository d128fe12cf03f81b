"""Signals that end programs."""

from __future__ import annotations

import signal
from collections.abc import Callable

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Of Ctrl-C, of other programs, and of a terminal that is closed."""


def ending() -> tuple[signal.Signals, ...]:
    """Return the signals that are to end this program: with nohup it survives its terminal."""
    survives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return tuple(n for n in ENDING if not (survives and n == signal.SIGHUP))


def on_end(end: Callable[[], object]) -> None:
    """Call `end` for each of these signals, in the main thread, which calls this."""
    for number in ending():
        signal.signal(number, lambda *_: end())
