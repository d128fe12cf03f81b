"""A child of this process."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

_SIGNALLED = 128  # added to the number of a signal in exit codes of a shell
_PATIENCE = 3.0  # s for a child to end after it was asked to
_ASK, _NO_RANDOM_ADDRESSES = 0xFFFFFFFF, 0x0040000  # arguments of personality(2)


class Child:
    """A program that runs as a child of this process. The constructor starts it.

    It receives all signals, even those that this process blocks, and may use all memory, even if
    this process may not. Its objects have the same addresses each time.

    Args:
        command: Program and arguments.
        environment: All its environment variables.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        with _fixed_addresses():
            self._number = os.posix_spawnp(
                command[0],
                [*command],
                environment,
                setsigmask=(),
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # which Python ignores
            )
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.prlimit(self._number, resource.RLIMIT_DATA, (most, most))
        self._descriptor = os.pidfd_open(self._number)
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end of the program. Only one thread may wait.

        Args:
            timeout: For how long [s]; None: for as long as it takes.

        Returns:
            Its exit code, as a shell gives it: 128 and the number of the signal that ended it.
            None if it still runs.
        """
        if self._code is None and select.select([self._descriptor], [], [], timeout)[0]:
            code = os.waitstatus_to_exitcode(os.waitpid(self._number, 0)[1])
            self._code = code if code >= 0 else _SIGNALLED - code
        return self._code

    def send(self, number: int) -> None:
        """Send a signal, from any thread; after the end of the program, do nothing."""
        with suppress(OSError):
            signal.pidfd_send_signal(self._descriptor, number)

    def stop(self) -> None:
        """End the program, whatever it does, and wait for its end."""
        self.send(signal.SIGTERM)
        if self.wait(_PATIENCE) is None:
            self.send(signal.SIGKILL)
            self.wait()

    def close(self) -> None:
        """Free the descriptor of a program that has ended."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


@contextmanager
def _fixed_addresses() -> Iterator[None]:
    """Let processes that the calling thread starts have objects at the same addresses each time.

    The order of a set of objects depends on them. Where the system does not allow it, that order is
    another one each time.
    """
    personality = ctypes.CDLL(None).personality
    before = personality(_ASK)
    personality(before | _NO_RANDOM_ADDRESSES)
    try:
        yield
    finally:
        personality(before)
