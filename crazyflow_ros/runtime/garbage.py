"""Python's garbage collector, which stops all threads for as long as it walks through objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 1_000_000_000  # collections of the younger generations before one of the oldest


@contextmanager
def short_collections() -> Iterator[None]:
    """Do something that makes many objects which stay, as tracing does, without long stops.

    Meanwhile only young objects are looked at. In a process that has frozen what there was at its
    start, as the node's has, those that are there at the end are frozen, too: so they are not
    looked at later. They are still freed when nothing refers to them.
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
