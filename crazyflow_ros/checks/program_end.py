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
    """Return the signals that end this program; with nohup, closing its terminal does not."""
    survives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return tuple(n for n in ENDING if not (survives and n == signal.SIGHUP))


def on_end(end: Callable[[], object]) -> None:
    """Call `end` on each of these signals, in the main thread. Call this there, too."""
    for number in ending():
        signal.signal(number, lambda *_: end())


def quiet_if_unread(main: Callable[[], int | None]) -> int:
    """Run a program, and return its exit code; it ends silently if nobody reads its output.

    The reader may end first, as in `topics | head`. Output that is still buffered then is dropped,
    because Python would otherwise fail to write it when the process ends.
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
    """Return the text of an error; for a file, its name and the cause, without error number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
