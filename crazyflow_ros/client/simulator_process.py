"""The simulator as a child process, which never outlives the program that starts it.

Run as a program, this module is the simulator (`python -m crazyflow_ros`), but ends with its
standard input. That works however the parent process ends, and needs only a pipe.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from types import FrameType, TracebackType
from typing import Any, Self

from crazyflow_ros.checks.program_end import ending
from crazyflow_ros.ros import stay_on_this_machine

GRACE = 1.5  # s for a process to end after SIGTERM
_NODES = 8  # of a domain, whose ports tell whether it is used

_ABOVE_INFO = ("[WARN]", "[ERROR]", "[FATAL]")
_OF_BUSY_MACHINES = "readings were left out"
_LOG_FORMAT = {
    "RCUTILS_CONSOLE_OUTPUT_FORMAT": "[{severity}] [{time}] [{name}]: {message}",
    "RCUTILS_COLORIZED_OUTPUT": "0",
}


def choose_domain() -> None:
    """Choose a ROS domain that has no nodes, on this machine only, unless the user has chosen.

    Call it before rclpy is imported.
    """
    if not os.environ.get("ROS_DOMAIN_ID"):
        domains = [1 + (os.getpid() + i) % 100 for i in range(100)]
        os.environ["ROS_DOMAIN_ID"] = str(next(filter(_is_unused, domains), domains[0]))
    stay_on_this_machine()


def _is_unused(domain: int) -> bool:
    """Whether the ports of a domain's first nodes on this machine are free (DDSI-RTPS, 9.6.1).

    The first node may have ended while others stay.
    """
    for node in range(_NODES):
        with socket(AF_INET, SOCK_DGRAM) as port:
            try:
                port.bind(("", 7410 + 250 * domain + 2 * node))
            except OSError:
                return False
    return True


@contextmanager
def interruptible() -> Iterator[None]:
    """Unwind and exit on a signal that ends programs, with the exit code that a shell would report.

    C code that calls Python, for example for messages, may turn the signal's exception into another
    one; the process exits for the signal in any case.
    """
    received: list[int] = []

    def unwind(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(number)
        raise KeyboardInterrupt

    handlers = {n: signal.signal(n, unwind) for n in ending()}
    try:
        yield
    except BaseException:
        if not received:
            raise
        print("\ninterrupted", file=sys.stderr)
        sys.exit(128 + received[0])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class SimulatorError(RuntimeError):
    """The simulator ended unexpectedly."""


def end(process: subprocess.Popen[Any], grace: float = GRACE) -> bool:
    """End a process.

    Args:
        process: The process.
        grace: Time for it to end after SIGTERM [s].

    Returns:
        Whether it ended on SIGTERM; otherwise it was killed.
    """
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


class SimulatorProcess:
    """A running simulator; as a context manager it ends the simulator on exit.

    The process has its own session, so that Ctrl-C reaches only the parent process.
    """

    def __init__(
        self, parameters: dict[str, str], log: Path, environment: dict[str, str] | None = None
    ) -> None:
        """Start the process.

        Args:
            parameters: ROS parameters of the node, in the syntax of a command line.
            log: File for the output of the process; its folder is created.
            environment: Environment variables to set in addition to those of this process.

        Raises:
            SimulatorError: The file cannot be written.
        """
        self.log = log
        arguments = [word for item in parameters.items() for word in ("-p", ":=".join(item))]
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = log.open("wb")
        except OSError as error:
            raise SimulatorError(
                f"cannot write {log.absolute()} ({error.strerror}): "
                "start this in a folder that you may write to"
            ) from None
        with output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, "--ros-args", *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **_LOG_FORMAT, **(environment or {})},
            )
        self.pid = self._process.pid

    def check(self) -> None:
        """Raise if the process has ended.

        Raises:
            SimulatorError: The process has ended; the message has the end of its log.
        """
        code = self._process.poll()
        if code is not None:
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise SimulatorError(f"the simulator ended {how}; the end of {self.log}:\n{tail}")

    def has_complained(self) -> bool:
        """Return whether its log has anything above INFO, and print that to standard error.

        Warnings that sensors take longer than their period are printed but do not count: the
        machine is slow or busy.
        """
        lines = self.log.read_text(errors="replace").splitlines()
        has_failed = False
        for line in (line for line in lines if line.startswith(_ABOVE_INFO)):
            is_fault = _OF_BUSY_MACHINES not in line
            print(f"{'FAILED: ' * is_fault}the simulator's log says {line}", file=sys.stderr)
            has_failed |= is_fault
        return has_failed

    def wait(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the process to end."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def stop(self) -> bool:
        """End the process.

        Returns:
            Whether it ended on SIGTERM; otherwise it was killed.
        """
        try:
            return end(self._process)
        finally:
            if self._process.stdin:
                self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def main() -> None:
    """Run the simulator until the standard input ends."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    runpy.run_module("crazyflow_ros", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
