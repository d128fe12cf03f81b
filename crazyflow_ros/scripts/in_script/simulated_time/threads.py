"""Threads and handlers of signals of a script in simulated time."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from .kernel import Kernel, ScriptThread
from .locks import Lock, replace

_start = _thread.start_new_thread
_set_handler, _get_handler = signal.signal, signal.getsignal
_PAUSE = 100_000_000  # ns between two looks whether a signal has come


def install(kernel: Kernel) -> None:
    """Let threads that Python starts, and its handlers of signals, take turns."""
    os.register_at_fork(after_in_child=kernel.end)

    def begin(
        task: ScriptThread, function: Callable[..., Any], args: Any, kwargs: Any = None
    ) -> int:
        def body() -> None:
            task.turn.acquire()
            try:
                function(*args, **(kwargs or {}))
            finally:
                kernel.leave(task)

        task.ident = _start(body, ())
        kernel.begin(task)
        return task.ident

    def start_new_thread(
        function: Callable[..., Any], args: Any, kwargs: dict[str, Any] | None = None, /
    ) -> int:
        return begin(ScriptThread(), function, args, kwargs)

    replace(_thread, start_new_thread=start_new_thread, start_new=start_new_thread)
    if hasattr(threading, "_set_sentinel"):
        replace(threading, _start_new_thread=start_new_thread)
        _until_python_3_12(kernel)
    else:
        _since_python_3_13(kernel, begin)
    _install_signals(kernel)


def _until_python_3_12(kernel: Kernel) -> None:
    """A thread is joined by acquiring a lock, which it has until it is over."""
    set_sentinel = threading._set_sentinel  # type: ignore[attr-defined]

    def sentinel() -> Any:
        task = kernel.tasks.get(_thread.get_ident())
        if task is None:
            return set_sentinel()
        task.end = Lock()
        return task.end

    replace(threading, _set_sentinel=sentinel)
    main: Any = threading.main_thread()
    threading._shutdown_locks.discard(main._tstate_lock)  # type: ignore[attr-defined]
    main._set_tstate_lock()


def _since_python_3_13(kernel: Kernel, begin: Callable[..., int]) -> None:
    """A thread is joined by its handle."""

    class Handle:
        def __init__(self, ident: int | None = None) -> None:
            self.ident, self.end = ident, Lock()
            self.end.acquire()

        def is_done(self) -> bool:
            return not self.end.locked()

        def join(self, timeout: float | None = None) -> None:
            if self.end.acquire(timeout=-1 if timeout is None else timeout):
                self.end.release()

        def _set_done(self) -> None:
            if self.end.locked():
                self.end.release()

    def start_joinable_thread(
        function: Callable[[], Any], handle: Any = None, daemon: bool = True
    ) -> Any:
        handle, task = handle or Handle(), ScriptThread()
        task.end, task.daemon = handle.end, daemon
        handle.ident = begin(task, function, ())
        return handle

    def shutdown() -> None:
        while True:
            others = [
                task.end
                for task in tuple(kernel.tasks.values())
                if not task.daemon and task.ident != _thread.get_ident() and task.end
            ]
            for end in others:
                end.acquire()
                end.release()
            if not others:
                return

    replace(_thread, start_joinable_thread=start_joinable_thread, _ThreadHandle=Handle)
    replace(threading, _start_joinable_thread=start_joinable_thread, _ThreadHandle=Handle)
    replace(threading, _make_thread_handle=Handle, _thread_shutdown=shutdown)
    main: Any = threading.main_thread()
    main._handle = Handle(main.ident)


def _install_signals(kernel: Kernel) -> None:
    """Let handlers run in turns of the main thread."""

    class Handler:
        def __init__(self, handler: Callable[..., Any]) -> None:
            self.handler = handler

        def __call__(self, number: int, frame: FrameType | None) -> None:
            kernel.handled += 1
            if kernel.main.away:
                kernel.main.then.append(partial(self.handler, number, frame))
                kernel.call(kernel.main)
            else:
                self.handler(number, frame)

    def bare(handler: Any) -> Any:
        return handler.handler if isinstance(handler, Handler) else handler

    def set_handler(number: int, handler: Any) -> Any:
        return bare(_set_handler(number, Handler(handler) if callable(handler) else handler))

    def pause() -> None:
        task, before = kernel.task(), kernel.handled
        while task is not None and kernel.handled == before:
            kernel.sleep(task, _PAUSE)

    replace(signal, signal=set_handler, getsignal=lambda number: bare(_get_handler(number)))
    replace(signal, pause=pause)
    set_handler(signal.SIGINT, _get_handler(signal.SIGINT))
