"""Prevents two threads from using the same simulation at the same time."""

from __future__ import annotations

import threading
from types import TracebackType


class OneThread:
    """A context that only one thread may be in; a second one does not wait, but raises an error.

    A step donates the arrays that it starts from, so a second thread would find them deleted.

    Raises:
        RuntimeError: Another thread is within the context.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = 0  # the identifier of the thread

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            owner = names.get(self._owner, "that has ended")
            raise RuntimeError(
                f"the thread {owner!r} is using this Sim, so the thread "
                f"{threading.current_thread().name!r} cannot: give each thread a Sim of its own, "
                "or let them take turns with a lock"
            )
        self._owner = threading.get_ident()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
