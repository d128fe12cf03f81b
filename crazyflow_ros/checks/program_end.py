"""How programs end: on signals, and without a word when nobody reads their output."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals of Ctrl-C, of other programs, and of a terminal that is closed."""
UNREAD = 1
"""Exit code of a program whose output nobody has read to its end."""


def ending() -> tuple[signal.Signals, ...]:
    """Return the signals that are to end this program: with nohup it survives its terminal."""
    survives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return tuple(n for n in ENDING if not (survives and n == signal.SIGHUP))


def on_end(end: Callable[[], object]) -> None:
    """Call `end` for each of these signals, in the main thread, which calls this."""
    for number in ending():
        signal.signal(number, lambda *_: end())


def quiet_if_unread(main: Callable[[], int | None]) -> int:
    """Run a program, and return its exit code; it ends without a word if its output is not read.

    Its reader may have ended first, as in `topics | head`. That goes for what it has printed last,
    too, which Python would otherwise write when the process ends.
    """
    try:
        try:
            return main() or 0
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        return UNREAD


def in_words(error: Exception) -> str:
    """Return the text of an error; one of a file says which, and no number of the system."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
