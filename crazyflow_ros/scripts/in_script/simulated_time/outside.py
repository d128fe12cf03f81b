"""Waits for what happens outside of the simulation: other programs and the keyboard.

Time stands still while the main thread waits for them, and runs while other threads do.
"""

from __future__ import annotations

import _multiprocessing
import builtins
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from .descriptors import READ, Descriptors
from .kernel import Kernel, ScriptThread, select_poll
from .locks import nanoseconds, replace

_STANDARD_INPUT = 0
_LOOK_NS = 10_000_000  # between two looks at another process
_read, _input = os.read, builtins.input


class Outside:
    """Waits for what happens outside.

    Args:
        kernel: The threads.
        descriptors: Waits for descriptors.
    """

    def __init__(self, kernel: Kernel, descriptors: Descriptors) -> None:
        self._kernel, self._descriptors = kernel, descriptors

    def await_(self, descriptor: int, deadline: int | None, *, own: bool = False) -> bool:
        """Wait before an operation that would block.

        Args:
            descriptor: Descriptor that is read.
            deadline: Latest time; while time stands still, the operation itself has to keep it.
            own: Whether it waits for other threads of the script, or for anyone who connects.

        Returns:
            False if the deadline has passed.
        """
        task = self._kernel.task()
        if task is None or _is_ready(descriptor):
            return True
        if task is self._kernel.main and not own:
            self._kernel.settle(task)
            return True
        return bool(self._descriptors.wait(task, {descriptor: READ}, deadline))

    @contextmanager
    def section(self, task: ScriptThread, *, settled: bool = True) -> Iterator[None]:
        """Let the calling thread live in wall time, while time stands still.

        Args:
            task: The thread.
            settled: Whether other threads first run until they wait.
        """
        if settled:
            self._kernel.settle(task)
        task.outside += 1
        try:
            yield
        finally:
            task.outside -= 1

    def install(self) -> None:
        """Replace functions of Python that wait for other programs."""

        def read(descriptor: int, size: int, /) -> bytes:
            if self._kernel.task() is not None and os.get_blocking(descriptor):
                self.await_(descriptor, None)
            return _read(descriptor, size)

        def input_(prompt: object = "", /) -> str:
            print(prompt, end="", flush=True)
            self.await_(_STANDARD_INPUT, None)
            return _input()

        replace(os, read=read)
        replace(builtins, input=input_)
        self._install_subprocess()
        self._install_semaphores()

    def _install_subprocess(self) -> None:
        begin, wait = subprocess.Popen.__init__, subprocess.Popen.wait
        communicate = subprocess.Popen.communicate

        def in_section(function: Callable[..., Any], *, always: bool) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                task = self._kernel.task()
                if task is None or not (always or task is self._kernel.main):
                    return function(*args, **kwargs)
                with self.section(task):
                    return function(*args, **kwargs)

            return call

        def wait_(this: Any, timeout: float | None = None) -> int:
            task = self._kernel.task()
            if task is None or task is self._kernel.main:
                return int(in_section(wait, always=False)(this, timeout))
            deadline = None if timeout is None else self._kernel.now + nanoseconds(timeout)
            while this.poll() is None:
                if deadline is not None and self._kernel.now >= deadline:
                    raise subprocess.TimeoutExpired(this.args, timeout or 0.0)
                self._kernel.sleep(task, _LOOK_NS)
            return int(this.returncode)

        replace(subprocess.Popen, __init__=in_section(begin, always=True), wait=wait_)
        replace(subprocess.Popen, communicate=in_section(communicate, always=False))

    def _install_semaphores(self) -> None:
        """Let threads that wait for another process not keep the others from running."""
        kernel = self._kernel

        class SemLock(_multiprocessing.SemLock):  # type: ignore[misc]
            def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
                task = kernel.task()
                if task is None or not block:
                    return bool(super().acquire(block, timeout))
                deadline = inf if timeout is None else kernel.now + nanoseconds(max(0.0, timeout))
                while not super().acquire(False):
                    if kernel.now >= deadline:
                        return False
                    kernel.sleep(task, _LOOK_NS)
                return True

            def __enter__(self) -> bool:
                return self.acquire()

        replace(_multiprocessing, SemLock=SemLock)


def _is_ready(descriptor: int) -> bool:
    poll = select_poll()
    poll.register(descriptor, READ)
    return bool(poll.poll(0))
