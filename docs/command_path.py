"""Traces a pose from `PhysicsThread.command` to the tick that takes it up.

python -m docs.command_path writes the table of files in docs/concepts/architecture.md.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import crazyflow_ros
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig

PACKAGE = Path(crazyflow_ros.__file__).parent
PAGE = Path(__file__).with_name("concepts") / "architecture.md"
BEGIN, END = "<!-- Written by command_path.py. -->", "<!-- Until here. -->"
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # are no functions
_TIMEOUT = 120.0  # s

Trace = dict[Path, dict[str, None]]  # functions of each file, both in the order of first calls


class Tracer:
    """Notes the functions of the package that are called, in this thread and in later ones."""

    def __init__(self) -> None:
        self._calls: dict[CodeType, None] = {}
        self._thread: str | None = None
        sys.setprofile(self._profile)
        threading.setprofile(self._profile)

    def close(self) -> None:
        """Stop, in this thread and for later ones."""
        sys.setprofile(None)
        threading.setprofile(None)

    @contextmanager
    def record(self, thread: str) -> Iterator[Trace]:
        """Fill the result at the end, with what the thread of that name has called meanwhile."""
        trace: Trace = {}
        self._calls, self._thread = {}, thread
        try:
            yield trace
        finally:
            self._thread = None
        for code in self._calls:
            file = Path(code.co_filename)
            if file.is_relative_to(PACKAGE) and code.co_name not in _COMPREHENSIONS:
                trace.setdefault(file.relative_to(PACKAGE), {})[code.co_qualname] = None

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and threading.current_thread().name == self._thread:
            self._calls[frame.f_code] = None


def trace_pose() -> tuple[Trace, Trace]:
    """Fly to a pose, and trace the next one.

    Returns:
        What the caller of `command` runs, and what the physics thread runs for the next tick.
    """
    tracer = Tracer()
    config = SimulationConfig(real_time_factor=0.0, start_paused=True)
    physics = PhysicsThread(config, ("cf0", "cf1"))
    try:
        physics.start()
        x, y, _ = physics.snapshot.pos[0]
        physics.command("cf0", Pose((x, y, 1.0), 0.0))
        physics.step(3 * physics.freq).result(_TIMEOUT)
        with tracer.record(threading.current_thread().name) as posted:
            physics.command("cf0", Pose((x + 1.0, y, 1.0), 0.0))
        with tracer.record("physics") as taken_up:
            physics.step(1).result(_TIMEOUT)
    finally:
        tracer.close()
        physics.stop()
    return posted, taken_up


def counts(trace: Trace) -> str:
    """Functions and files of a trace, in words."""
    return f"{sum(map(len, trace.values()))} functions in {len(trace)} files"


def table(trace: Trace) -> str:
    """Files, what their first line says, and their functions, as Markdown."""
    rows = ["| file | what it is | functions |", "|---|---|---|"]
    for file, names in trace.items():
        text = ast.get_docstring(ast.parse((PACKAGE / file).read_text())) or ""
        about = re.sub(r"\s+", " ", text.partition("\n\n")[0])
        called = ", ".join(f"`{name.replace('.<locals>', '')}`" for name in names)
        rows.append(f"| [{file}](../../crazyflow_ros/{file}) | {about} | {called} |")
    return "\n".join(rows)


def main() -> None:
    """Replace the table in the page."""
    posted, taken_up = trace_pose()
    before, _, rest = PAGE.read_text().partition(BEGIN)
    text = f"""
Posting a pose calls {counts(posted)}:

{table(posted)}

The tick that takes it up calls {counts(taken_up)}, in this order:

{table(taken_up)}
"""
    PAGE.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])
    print(f"posting: {counts(posted)}; the tick that takes it up: {counts(taken_up)}")


if __name__ == "__main__":
    main()
