"""Messages that are serialised once and whose numbers are then overwritten in place.

Building a ROS message in Python and serialising it takes about ten times as long as sending it, and
a simulator sends the same few messages over and over with new numbers. The position of a number in
the serialised message is found with marker values, not derived from the rules of CDR.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.ros.messages.serialisation import serialised

XYZ = ("x", "y", "z")
XYZW = ("x", "y", "z", "w")

_WORD = 4  # bytes; CDR aligns all numbers to it, and XCDR2 doubles to nothing more
_MARKER_SEED = 0


def below(path: str, names: Sequence[str]) -> list[str]:
    """Return the paths of the fields `names` of the field at `path`."""
    return [f"{path}.{name}" for name in names]


class Layout(NamedTuple):
    """Concatenated serialised messages, and the positions of their variable fields in words."""

    words: np.ndarray
    """All messages, uint32; each starts at a word boundary."""
    messages: list[slice]
    """Byte range of each message."""
    times: np.ndarray
    """Positions of seconds and nanoseconds, shape (T, 2)."""
    numbers: np.ndarray
    """Positions of the numbers, block by block, shape (K,)."""
    doubles: np.ndarray
    """Whether each number takes two words, shape (K,)."""


def layout(
    prototypes: Sequence[Any],
    stamps: Sequence[str],
    numbers: Sequence[Sequence[str]],
    floats: Sequence[Sequence[str]] = (),
) -> Layout:
    """Serialise messages of one type with the same variable fields, for example one per drone.

    A path names a field in a message: `pose.position.x`, `position.2`. A block of paths has the
    fields that are filled from one array.

    Args:
        prototypes: The N messages with their constant fields.
        stamps: Paths of the times in each message.
        numbers: Blocks of paths of float64 fields in each message.
        floats: Blocks of paths of float32 fields in each message.

    Raises:
        ValueError: A path does not lead to a field of the right type.
    """
    times = [path for stamp in stamps for path in below(stamp, ("sec", "nanosec"))]
    doubles, singles = list(chain(*numbers)), list(chain(*floats))
    found = [find_numbers(prototype, doubles, times, singles) for prototype in prototypes]
    payloads = [serialised(prototype) for prototype in prototypes]
    padded = [payload.ljust(-(-len(payload) // _WORD) * _WORD, b"\0") for payload in payloads]
    starts = np.cumsum([0] + [len(payload) for payload in padded])[:-1]
    ends = np.cumsum([len(block) for block in (*numbers, *floats)])
    blocks = np.split((np.array(found, np.intp) + starts[:, None]) // _WORD, ends, axis=1)
    return Layout(
        words=np.frombuffer(b"".join(padded), np.uint32),
        messages=[slice(i, i + len(p)) for i, p in zip(starts.tolist(), payloads)],
        times=blocks.pop().reshape(-1, 2),
        numbers=np.concatenate([block.ravel() for block in blocks] or [np.zeros(0, np.intp)]),
        doubles=np.repeat([True, False], [len(found) * len(doubles), len(found) * len(singles)]),
    )


def joined(layouts: Sequence[Layout]) -> Layout:
    """Join layouts of several types for a common update."""
    starts = np.cumsum([0] + [part.words.size for part in layouts])[:-1].tolist()
    return Layout(
        words=np.concatenate([part.words for part in layouts]),
        messages=[
            slice(message.start + start * _WORD, message.stop + start * _WORD)
            for part, start in zip(layouts, starts)
            for message in part.messages
        ],
        times=np.concatenate([part.times + start for part, start in zip(layouts, starts)]),
        numbers=np.concatenate([part.numbers + start for part, start in zip(layouts, starts)]),
        doubles=np.concatenate([part.doubles for part in layouts]),
    )


class SerialisedMessages:
    """Serialised messages whose times and numbers are overwritten together in a few operations.

    Attributes:
        words: All messages, uint32 of shape (W,).
        places: Byte range of each message.
    """

    def __init__(self, layout: Layout) -> None:
        size = layout.words.size
        # Two spare words at the end receive the doubles that are float32 in the messages.
        self.words = np.concatenate((layout.words, np.zeros(2, np.uint32)))
        self.places = layout.messages
        self._times = layout.times
        places = np.where(layout.doubles, layout.numbers, size)
        self._numbers = np.stack((places, places + 1), axis=-1).ravel()
        self._singles = np.flatnonzero(~layout.doubles)
        self._floats = layout.numbers[self._singles]

    def update(self, time_ns: int, blocks: Sequence[np.ndarray]) -> None:
        """Set all times [ns] and numbers.

        Args:
            time_ns: Time of all messages.
            blocks: One float64 array for each block of paths, shape (N, paths).
        """
        self.words[self._times] = divmod(time_ns, 1_000_000_000)
        if blocks:
            values = np.concatenate([block.ravel() for block in blocks])
            self.words[self._numbers] = values.view(np.uint32)
            if self._singles.size:
                floats = values[self._singles].astype(np.float32)
                self.words[self._floats] = floats.view(np.uint32)

    def series(self, times_ns: np.ndarray, blocks: Sequence[np.ndarray]) -> np.ndarray:
        """Return the messages at several times, without changing `words`.

        Args:
            times_ns: Times [ns], int: shape (T, 1), or one for each time in the messages, message
                by message, shape (T, K).
            blocks: As for `update`, but T times as large; the values of one time are contiguous.

        Returns:
            The value of `words` at each time, shape (T, W).
        """
        words = np.repeat(self.words[None], len(times_ns), axis=0)
        words[:, self._times] = np.stack(np.divmod(times_ns, 1_000_000_000), axis=-1)
        if blocks:
            rows = [block.reshape(len(times_ns), -1) for block in blocks]
            values = np.ascontiguousarray(np.concatenate(rows, axis=1))
            words[:, self._numbers] = values.view(np.uint32)
            if self._singles.size:
                floats = values.take(self._singles, axis=1).astype(np.float32)
                words[:, self._floats] = floats.view(np.uint32)
        return words


def find_numbers(
    prototype: Any,
    float64_paths: Sequence[str],
    int32_paths: Sequence[str],
    float32_paths: Sequence[str] = (),
) -> list[int]:
    """Find the positions of numbers in a serialised message.

    Args:
        prototype: The message; not modified.
        float64_paths: Paths of fields of type float64.
        int32_paths: Paths of fields of type int32 or uint32.
        float32_paths: Paths of fields of type float32.

    Returns:
        Offsets in bytes: first of type float64, then float32, then int32.

    Raises:
        ValueError: A field does not exist or has another type.
    """
    generator = np.random.default_rng(_MARKER_SEED)
    paths = [*float64_paths, *float32_paths, *int32_paths]
    markers = [
        *generator.uniform(1.0, 2.0, len(float64_paths)),
        *generator.uniform(1.0, 2.0, len(float32_paths)).astype(np.float32),
        *generator.integers(1 << 24, 1 << 30, len(int32_paths), dtype=np.int32),
    ]
    marked = deepcopy(prototype)
    for path, marker in zip(paths, markers):
        _assign(marked, path, marker.item())
    payload = serialised(marked)
    offsets = []
    for path, marker in zip(paths, markers):
        offset = payload.find(marker.tobytes())
        if offset < 0 or offset % _WORD or payload.count(marker.tobytes()) > 1:
            name = f"{type(prototype).__name__}.{path}"
            raise ValueError(f"{name}: not found as a number of {marker.nbytes} bytes")
        offsets.append(offset)
    return offsets


def _assign(message: Any, path: str, number: float) -> None:
    """Set a field that already holds a number of the same type."""
    *parents, last = path.split(".")
    try:
        parent = message
        for name in parents:
            parent = parent[int(name)] if name.isdecimal() else getattr(parent, name)
        present = parent[int(last)] if last.isdecimal() else getattr(parent, last)
    except (AttributeError, IndexError):
        raise ValueError(f"{type(message).__name__}.{path}: there is no such field") from None
    if isinstance(present, np.generic):  # of a field with a fixed number of elements
        present = present.item()
    if type(present) is not type(number):
        kind, expected = type(message).__name__, type(number).__name__
        raise ValueError(f"{kind}.{path}: expected a {expected}, got {present!r}")
    if last.isdecimal():
        parent[int(last)] = number
    else:
        setattr(parent, last, number)
