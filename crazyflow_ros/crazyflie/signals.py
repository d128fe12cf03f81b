"""Signals of the simulator, and a program of a user that runs as its child."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from crazyflow_ros.checks.program_end import ending

_ENDING = frozenset(ending())
_ALL = _ENDING | {signal.SIGCHLD}
_SIGNALLED = 128  # added to the number of a signal in exit codes of a shell


class _Signal(NamedTuple):
    number: int
    is_everyones: bool
    """Whether it comes from the terminal, which sends it to all programs that run there."""


class Signals:
    """Receives signals in a thread of its own. It begins before there are other threads.

    Until `keep` is called, a signal that ends programs ends the process at once, whatever the main
    thread does.

    Args:
        exits_with_signal: Whether the exit code then has the number of the signal; otherwise 0.
    """

    def __init__(self, *, exits_with_signal: bool) -> None:
        self._base = _SIGNALLED if exits_with_signal else None
        self._kept: queue.SimpleQueue[_Signal] = queue.SimpleQueue()
        self._keeps = threading.Event()
        # All other threads inherit this mask, so that this one receives every signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)
        threading.Thread(target=self._receive, name="signals", daemon=True).start()

    def keep(self) -> None:
        """Keep signals for `wait` and `run` from now on."""
        self._keeps.set()

    def wait(self) -> None:
        """Wait for a signal that ends programs."""
        while self._kept.get().number not in _ENDING:
            pass

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run a program until it ends, and pass on the signals that have not reached it.

        Args:
            command: The program and its arguments.
            environment: Variables that are added to those of this process.

        Returns:
            The exit code of the program; 128 and the number of the signal that ended it, as of a
            shell.

        Raises:
            OSError: It cannot be run.
        """
        variables = {**os.environ, **environment}
        child = os.posix_spawnp(command[0], [*command], variables, setsigmask=[])
        while True:
            came = self._kept.get()
            if came.number == signal.SIGCHLD:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended == child:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else _SIGNALLED - code
            elif not came.is_everyones:
                os.kill(child, came.number)

    def pass_on(self, send: Callable[[int], object]) -> None:
        """Pass the signals that have not reached a program on to `send`, in a thread of its own."""

        def main() -> None:
            while True:
                came = self._kept.get()
                if came.number in _ENDING and not came.is_everyones:
                    send(came.number)

        threading.Thread(target=main, name="passing signals on", daemon=True).start()

    def _receive(self) -> None:
        while True:
            came = signal.sigwaitinfo(_ALL)
            if self._keeps.is_set():
                self._kept.put(_Signal(came.si_signo, not came.si_pid))
            elif came.si_signo in _ENDING:
                os._exit(0 if self._base is None else self._base + came.si_signo)
