"""Python's garbage collector, which stops all threads for as long as it walks through objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 1_000_000_000  # collections of the younger generations before one of the oldest


@contextmanager
def short_collections() -> Iterator[None]:
    """Avoid long collections while many lasting objects are made, for example by tracing.

    Meanwhile only young objects are collected. If the process has frozen its first objects
    (`gc.freeze`), as the node does, the new ones are also frozen at the end. Frozen objects are
    still freed when nothing refers to them.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], _NEVER)
    try:
        yield
    finally:
        if gc.get_freeze_count():
            gc.collect(1)
            gc.freeze()
        gc.set_threshold(*before)
