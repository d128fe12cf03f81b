"""The cores of the CPU: each steps a part of the worlds."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache

LEAST = 8192
"""Drones of a part; fewer are stepped in less time than it takes to wake another thread."""


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parts_of(n_worlds: int, n_drones: int) -> list[slice]:
    """Divide worlds evenly among the cores.

    Args:
        n_worlds: Number of worlds.
        n_drones: Number of drones in each world.

    Returns:
        The worlds of each part. There is one part if the worlds are few.
    """
    most = min(n_cores(), n_worlds * n_drones // LEAST)
    n_parts = next((n for n in range(most, 1, -1) if n_worlds % n == 0), 1)
    size = n_worlds // n_parts
    return [slice(i * size, (i + 1) * size) for i in range(n_parts)]


def on_each_core(function: Callable[[int], None], n_parts: int) -> None:
    """Call a function with the number of each part, at the same time.

    Returns, or raises an error of the function or KeyboardInterrupt, after all calls have ended.
    """
    with _interrupts_postponed():
        others = [_threads().submit(function, i) for i in range(1, n_parts)]
        try:
            function(0)  # here, because new arrays cost more time in other threads
        finally:
            wait(others)
    for other in others:
        other.result()


@contextmanager
def _interrupts_postponed() -> Iterator[None]:
    """Delay SIGINT to the end of the context: KeyboardInterrupt would lose results of a call."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            signal.raise_signal(signal.SIGINT)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, n_cores() - 1), thread_name_prefix="worlds")


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork
