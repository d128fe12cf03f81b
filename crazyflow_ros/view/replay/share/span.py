"""The part of a recording that is shared, and the file that it becomes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.ros.messages import NS
from crazyflow_ros.view.recording import Recording

LONGEST = 600.0
"""Longest flight that is shared [s]."""


class Span(NamedTuple):
    """A part of a recording: its first and last time in the file [ns]."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its duration [s]."""
        return (self.end_ns - self.begin_ns) / NS


def span_of(recording: Recording, begin: float | None = None, end: float | None = None) -> Span:
    """Return a part of a recording.

    Args:
        recording: The recording.
        begin: First time, as the page shows it [s]; by default that of the recording.
        end: Last time, likewise.

    Raises:
        ValueError: The part is empty, not in the recording, or longer than `LONGEST`.
    """
    first, last = ((t - recording.zero_ns) / NS for t in (recording.begin_ns, recording.end_ns))
    begin, end = (first if begin is None else begin), (last if end is None else end)
    has = f"{shown_path(recording.file.path)} has {first:.2f} to {last:.2f} s"
    if not (math.isfinite(begin) and math.isfinite(end) and begin < last and end > first):
        raise ValueError(f"there is nothing from {begin:g} to {end:g} s: {has}")
    begin, end = max(begin, first), min(end, last)
    if begin >= end:
        raise ValueError(f"the end must be after the beginning, got {begin:g} to {end:g} s; {has}")
    if end - begin > LONGEST:
        raise ValueError(
            f"{end - begin:.0f} s are too long to share, at most {LONGEST:g} s: choose a part with "
            f"--begin and --end; {has}"
        )
    return Span(*(recording.zero_ns + round(t * NS) for t in (begin, end)))


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A context for writing a file, which appears in its place only once it is complete.

    Yields:
        The path to write to, with the same suffix.

    Raises:
        FileExistsError: The file exists, and `overwrite` is not set.
        OSError: Its folder does not exist, or nothing can be written there.
    """
    if path.exists() and not (overwrite and path.is_file()):
        how = "--overwrite replaces it" if path.is_file() else "it is no file"
        raise FileExistsError(f"{shown_path(path)} exists: {how}")
    with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=path.suffix, delete=False) as file:
        part = Path(file.name)
    try:
        yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
