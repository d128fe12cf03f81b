"""A thread for long tasks, which it runs one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """A thread that starts with its first task. It does not keep the process from ending.

    Args:
        name: Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()  # guards the start
        self._thread: threading.Thread | None = None
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()

    def ask(self, work: Callable[[], T]) -> Future[T]:
        """Queue a task. Thread-safe.

        Returns:
            A future with the result or exception. If it is cancelled before its turn, the task does
            not start; a running task cannot be interrupted.
        """
        future: Future[T] = Future()
        self._queue.put((work, future))
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, name=self._name, daemon=True)
                self._thread.start()
        return future

    def _main(self) -> None:
        while True:
            work, future = self._queue.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del work, future  # otherwise they would exist until the next task
