"""The simulator as a process of the demonstration's, which never outlives it.

Run as a program, this module is the simulator itself (`python -m crazyflow_ros`), which ends when
its standard input does. That holds whatever happens to the process that started it, and needs
nothing of the operating system but a pipe.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

GRACE = 1.5  # s that a process has to end after it was asked to


def choose_domain() -> None:
    """Keep off other ROS programs, unless a domain was asked for. Before rclpy is imported."""
    if not os.environ.get("ROS_DOMAIN_ID"):
        os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


class SimulatorError(RuntimeError):
    """The simulator has ended on its own."""


class SimulatorProcess:
    """A running simulator; a context manager that ends it.

    It is in a session of its own, so that Ctrl-C reaches it only through us.
    """

    def __init__(
        self, parameters: dict[str, str], log: Path, environment: dict[str, str] | None = None
    ) -> None:
        """Start the process.

        Args:
            parameters: ROS parameters of the node, as they are written on a command line.
            log: File that gets what the process prints.
            environment: Variables to set for it, besides our own.
        """
        self.log = log
        arguments = [word for item in parameters.items() for word in ("-p", ":=".join(item))]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, "--ros-args", *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        self.pid = self._process.pid

    def check(self) -> None:
        """Raise if the process has ended.

        Raises:
            SimulatorError: With the end of its log.
        """
        code = self._process.poll()
        if code is not None:
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise SimulatorError(f"the simulator ended {how}; the end of {self.log}:\n{tail}")

    def wait(self, timeout: float) -> None:
        """Wait until the process has ended, for `timeout` seconds at most."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def stop(self) -> bool:
        """End the process.

        Returns:
            Whether it ended when asked to; otherwise it was killed.
        """
        self._process.terminate()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        finally:
            if self._process.stdin:
                self._process.stdin.close()
        return True

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
    """Be the simulator until the standard input ends."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    runpy.run_module("crazyflow_ros", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
