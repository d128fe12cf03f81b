"""A simulator whose time runs as far as a script asks, with drones that only answer; for tests."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crazyflow_ros.scripts.in_script.simulated_time.channel import (
    Advance,
    ChannelReader,
    Datagram,
    Reached,
    answer,
)
from crazyflow_ros.scripts.script import Script

PYTHON = os.environ.get("CRAZYFLOW_ROS_SCRIPT_PYTHON", sys.executable)
PORTS = (19860, 19861)
BEGIN_NS = 2_000_000
_STRETCH_NS = 10**16  # longer than a script sleeps


@dataclass
class Clockwork:
    """Lets time run; a drone answers each datagram with the same data, after a millisecond.

    Attributes:
        received: What the script has sent.
        most: Number of advances after which it ends, as a simulator that fails.
    """

    most: int = 1_000_000
    received: list[Datagram] = field(default_factory=list)

    def serve(self, stream: socket.socket) -> None:
        waiting: list[Datagram] = []
        now, advances = BEGIN_NS, 0
        with stream, stream.makefile("rb") as file:
            reader = ChannelReader(file)
            while (message := reader.request()) is not None:
                if isinstance(message, Datagram):
                    self.received.append(message)
                    waiting.append(message._replace(time_ns=message.time_ns + 1_000_000))
                    continue
                assert isinstance(message, Advance)
                advances += 1
                if advances > self.most:
                    raise RuntimeError("the simulation has failed")
                now = max(now, message.now_ns)
                until = min(message.until_ns, now + _STRETCH_NS)
                now = min([max(until, now), *(max(now, d.time_ns) for d in waiting)])
                due = [d for d in waiting if d.time_ns <= now]
                waiting = [d for d in waiting if d.time_ns > now]
                stream.sendall(answer(Reached(now, due)))


class Log:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _note(self, message: str) -> None:
        self.lines.append(message)

    info = warning = error = _note


@dataclass
class Done:
    code: int
    out: str
    err: str
    log: list[str]


def start(
    text: str, folder: Path, log: Log, arguments: Sequence[str] = (), **options: Any
) -> Script:
    """Start a script, with its outputs in files of the folder, and its input from one."""
    (folder / "script.py").write_text(text)
    (folder / "in").touch()
    shell = 'cd "$0" && exec "$@" <in >out 2>err'
    command = ["/bin/sh", "-c", shell, str(folder), PYTHON, *arguments, "script.py"]
    return Script(command, log, PORTS, **options)


def run(text: str, folder: Path, clockwork: Clockwork | None = None, **options: Any) -> Done:
    """Run a script in simulated time; its files are in a folder."""
    log = Log()
    script = start(text, folder, log, **options)
    code = script.run(clockwork or Clockwork())  # type: ignore[arg-type]
    return Done(code, (folder / "out").read_text(), (folder / "err").read_text(), log.lines)
