"""Signals to the simulator, some of which it passes on to a program that runs as its child."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from typing import NamedTuple

from crazyflow_ros.checks.program_end import ending

_ENDING = frozenset(ending())
_SIGNALLED = 128  # added to the number of a signal in exit codes of a shell


class _Signal(NamedTuple):
    number: int
    is_everyones: bool
    """Whether it comes from the terminal, which sends it to all programs of the terminal."""


class Signals:
    """Receives signals that end programs, in its own thread. Construct it before any other thread.

    Until `keep` is called, such a signal ends the process at once, whatever the main thread does.

    Args:
        exits_with_signal: Whether the exit code is then 128 plus the signal's number, instead of 0.
    """

    def __init__(self, *, exits_with_signal: bool) -> None:
        self._base = _SIGNALLED if exits_with_signal else None
        self._kept: queue.SimpleQueue[_Signal] = queue.SimpleQueue()
        self._keeps = threading.Event()
        # All other threads inherit this mask, so that this one receives every signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        threading.Thread(target=self._receive, name="signals", daemon=True).start()

    def keep(self) -> None:
        """Keep signals for `wait` and `pass_on` from now on."""
        self._keeps.set()

    def wait(self) -> None:
        """Wait for a signal."""
        self._kept.get()

    def pass_on(self, send: Callable[[int], object]) -> None:
        """Pass signals that did not reach a program itself to `send`, in a thread."""

        def main() -> None:
            while True:
                came = self._kept.get()
                if not came.is_everyones:
                    send(came.number)

        threading.Thread(target=main, name="passing signals on", daemon=True).start()

    def _receive(self) -> None:
        while True:
            came = signal.sigwaitinfo(_ENDING)
            if self._keeps.is_set():
                self._kept.put(_Signal(came.si_signo, not came.si_pid))
            else:
                os._exit(0 if self._base is None else self._base + came.si_signo)
