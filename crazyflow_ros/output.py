"""What programs say, and to whom: to one that ends first, as in `topics | head`, nothing."""

import os
import sys
from collections.abc import Callable

UNREAD = 1
"""Exit code of a program whose output nobody has read to its end."""


def quiet_if_unread(main: Callable[[], int | None]) -> int:
    """Run a program, and return its exit code; it ends without a word if its output is not read.

    Also what it has printed last, and Python would otherwise write when the process ends.
    """
    try:
        try:
            return main() or 0
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        return UNREAD


def in_words(error: Exception) -> str:
    """Return the text of an error; one of a file says which, and no number of the system."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
