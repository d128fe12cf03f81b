"""Reports what a script waits for if that takes long."""

from __future__ import annotations

import _thread
import os
import sys
import threading
from types import FrameType

from .clocks import wall_sleep
from .kernel import Kernel, ScriptThread

_start = _thread.start_new_thread
_HERE = os.path.dirname(__file__)
_LIBRARY = os.path.dirname(threading.__file__)


class Watch:
    """A thread in wall time that watches the others.

    Args:
        kernel: The threads.
        patience: Wall time before the first report [s]; it doubles with each report.
    """

    def __init__(self, kernel: Kernel, patience: float) -> None:
        self._kernel, self._patience = kernel, patience

    def start(self) -> None:
        """Start looking."""
        _start(self._main, ())

    def _main(self) -> None:
        kernel, patience = self._kernel, self._patience
        while True:
            running, main = kernel.running, kernel.main
            before, now, waits = (running, running.waits, kernel.now), kernel.now, main.waits
            wall_sleep(patience)
            if not kernel.tasks:
                return
            if before == (kernel.running, kernel.running.waits, kernel.now):
                self._say(f"has stood still for {patience:g} s: {self._cause(running)}")
            elif main.since_ns is not None and waits == main.waits:
                waited = (kernel.now - main.since_ns) * 1e-9
                self._say(
                    f"runs, {(kernel.now - now) * 1e-9:.3f} s in the last {patience:g} s; "
                    f"the main thread has waited for {waited:.3f} s of it {_place(main)}"
                )
            else:
                patience = self._patience
                continue
            patience *= 2

    def _cause(self, running: ScriptThread) -> str:
        kernel = self._kernel
        if kernel.idle:
            waiting = [f"{_name(task)} {_place(task)}" for task in tuple(kernel.tasks.values())]
            return f"all threads wait, and nothing can end that: {'; '.join(waiting)}"
        if running.since_ns is not None:
            return "the simulator has not let time run"
        return (
            f"{_name(running)} runs, or waits for something outside of the simulation, "
            f"{_place(running)}"
        )

    def _say(self, text: str) -> None:
        seconds = self._kernel.now * 1e-9
        print(f"lock-step: simulated time {seconds:.3f} s {text}", file=sys.__stderr__, flush=True)


def _name(task: ScriptThread) -> str:
    """Return a thread's name."""
    thread = threading._active.get(task.ident)  # type: ignore[attr-defined]
    return str(task.ident) if thread is None else str(thread.name)


def _place(task: ScriptThread) -> str:
    """Say where in the user's code a thread is."""
    frame: FrameType | None = sys._current_frames().get(task.ident)
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return "outside of the script"
    name = os.path.basename(frame.f_code.co_filename)
    return f"in {frame.f_code.co_name} ({name}, line {frame.f_lineno})"


def _is_library(path: str) -> bool:
    inside = path.startswith((_HERE, _LIBRARY, "<frozen"))
    return inside and "site-packages" not in path
