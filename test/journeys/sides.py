"""The processes beside a simulator: they come, are used, and go, some of them by `kill -9`."""

from __future__ import annotations

import multiprocessing
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from paths import ROOT
from ros_client import RosProcess

from journeys.step import Broken

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

ENDS = 60.0  # s of wall time for a process to start or to end
BAD = re.compile(r"Traceback|Segmentation|Fatal Python|\[(ERROR|FATAL)\]")
OF_A_LIFE = ("recorder", "manager")
"""Kinds of processes that do not outlive a simulator."""


class Side(Protocol):
    """A process beside the simulator."""

    def problem(self) -> str:
        """What is wrong with it, if anything is."""

    def kill(self) -> None:
        """Kill it (`kill -9`)."""

    def end(self) -> None:
        """End it as its user would."""


class Fork:
    """A function in a process, which is forked from one that has imported what it needs."""

    def __init__(self, function: Callable[..., None], *args: Any, **options: Any) -> None:
        self._process = _forks().Process(target=function, args=args, kwargs=options, daemon=True)
        self._process.start()

    def problem(self) -> str:
        code = self._process.exitcode
        return "" if code is None else f"it ended with exit code {code}"

    def kill(self) -> None:
        self._process.kill()
        self._process.join(ENDS)

    def end(self) -> None:
        self._process.terminate()
        self._process.join(ENDS)


def _forks() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["journeys.reader"])
    return context


LET_GO = -signal.SIGALRM
"""Exit code of recorders that Fast DDS does not let go; their file is whole, see its module."""


class Program:
    """A program in the ROS domain of a walk.

    Args:
        domain: ROS domain.
        words: Its command line, after Python's.
    """

    def __init__(self, domain: int, words: Sequence[str]) -> None:
        self.process = RosProcess([sys.executable, *words], domain, {"PYTHONPATH": str(ROOT)})

    @property
    def log(self) -> str:
        """What it has written."""
        return self.process.log

    def problem(self) -> str:
        code = self.process.process.poll()
        if code is not None:
            return f"it ended with exit code {code}:\n{self.log}"
        return self.log if BAD.search(self.log) else ""

    def kill(self) -> None:
        self.process.process.kill()
        self.process.process.wait()
        self.process.__exit__(None, None, None)

    def end(self) -> None:
        code, _ = self.process.end()
        log = self.log
        self.process.__exit__(None, None, None)
        if code not in (0, -signal.SIGTERM, LET_GO) or BAD.search(log):
            raise Broken(f"a program ends with {code}", log)


class Check(Program):
    """A program that ends by itself, with exit code 0."""

    def problem(self) -> str:
        code = self.process.process.poll()
        return f"exit code {code}:\n{self.log}" if code else ""


class Sides:
    """All processes beside the simulator of a walk.

    Args:
        domain: ROS domain.
    """

    def __init__(self, domain: int) -> None:
        self._domain, self._count = domain, 0
        self._running: dict[str, list[Any]] = {}

    def of(self, kind: str) -> list[Any]:
        """Those of a kind, the oldest one first."""
        return self._running.get(kind, [])

    def add(self, kind: str, side: Any) -> None:
        """A process has started."""
        self._running.setdefault(kind, []).append(side)

    def take(self, kind: str) -> Any:
        """The oldest one of a kind, which is not looked at any more."""
        return self._running[kind].pop(0)

    def read(self, *, reliable: bool, slow: bool) -> None:
        """Start a reader of all topics, and wait until it reads some."""
        from journeys.reader import read

        heard, said = _forks().Pipe(duplex=False)
        self._count += 1
        options = {"reliable": reliable, "slow": slow, "said": said}
        self.add("reader", Fork(read, self._domain, self._count, **options))
        while heard.poll(ENDS) and not heard.recv():
            pass

    def after_a_life(self) -> None:
        """End what does not outlive a simulator."""
        for kind in OF_A_LIFE:
            while self.of(kind):
                side = self.take(kind)
                side.kill() if kind == "manager" else side.end()

    def check(self) -> None:
        """See that all live, and that nothing is wrong with them.

        Raises:
            Broken: One has ended, or has written of an error.
        """
        for kind, sides in self._running.items():
            for side in sides:
                if problem := side.problem():
                    raise Broken(f"something is wrong with a {kind}", problem)

    def close(self) -> None:
        """Kill all that is left."""
        for sides in self._running.values():
            while sides:
                sides.pop().kill()
