"""The positions of numbers in serialised messages.

They are found with marker values, not derived from the rules of CDR.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.ros.messages.serialisation import serialised

XYZ = ("x", "y", "z")
XYZW = ("x", "y", "z", "w")

HEADER = ("header.stamp",)
"""Path of the time in messages with a header."""

_WORD = 4  # bytes; CDR aligns all numbers to it, and XCDR2 doubles to nothing more
_TRIES = 4  # with other markers each time: padding is not initialised, and may look like one
_SECOND_WORD = 0x3FF00000  # of marked doubles, which makes them numbers between 1 and 2


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
    prototypes: Sequence[Any], paths: Sequence[Sequence[str]], stamps: Sequence[str] = HEADER
) -> Layout:
    """Serialise messages of one type with the same variable fields, for example one per drone.

    A path names a field in a message: `pose.position.x`, `position.2`. A block of paths has the
    fields that are filled from one array.

    Args:
        prototypes: The N messages, at least one, with their constant fields.
        paths: Blocks of paths of float64 or float32 fields in each message.
        stamps: Paths of the times in each message.

    Raises:
        ValueError: A path does not lead to a field of the right type.
    """
    numbers, ends = list(chain(*paths)), np.cumsum([0] + [len(block) for block in paths])[1:]
    times = [path for stamp in stamps for path in below(stamp, ("sec", "nanosec"))]
    found = [find_numbers(prototype, numbers, times) for prototype in prototypes]
    payloads = [serialised(prototype) for prototype in prototypes]
    padded = [payload.ljust(-(-len(payload) // _WORD) * _WORD, b"\0") for payload in payloads]
    starts = np.cumsum([0] + [len(payload) for payload in padded])[:-1]
    places = (np.array(found, np.intp) + starts[:, None]) // _WORD
    doubles = [_Field.at(prototypes[0], path, float).is_double for path in numbers]

    def by_block(columns: np.ndarray) -> np.ndarray:
        return np.concatenate([block.ravel() for block in np.split(columns, ends, axis=1)])

    return Layout(
        words=np.frombuffer(b"".join(padded), np.uint32),
        messages=[slice(i, i + len(p)) for i, p in zip(starts.tolist(), payloads)],
        times=places[:, len(numbers) :].reshape(-1, 2),
        numbers=by_block(places[:, : len(numbers)]),
        doubles=by_block(np.tile(np.array(doubles, bool), (len(prototypes), 1))),
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


def find_numbers(prototype: Any, paths: Sequence[str], times: Sequence[str] = ()) -> list[int]:
    """Find the positions of numbers in a serialised message.

    Args:
        prototype: The message; not modified.
        paths: Paths of fields of type float64 or float32.
        times: Paths of fields of type int32 or uint32.

    Returns:
        Offsets in bytes: of `paths`, then of `times`.

    Raises:
        ValueError: A field does not exist or has another type.
    """
    marked = deepcopy(prototype)
    fields = [_Field.at(marked, path, float) for path in paths]
    fields += [_Field.at(marked, path, int) for path in times]
    for seed in range(_TRIES):
        found, count = _found(marked, fields, seed)
        if (count == 1).all():
            offsets: list[int] = found.tolist()
            return offsets
    path = (*paths, *times)[int(np.flatnonzero(count != 1)[0])]
    raise ValueError(f"{type(prototype).__name__}.{path}: not found in the serialised message")


def _found(marked: Any, fields: Sequence[_Field], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mark fields of a message; return where each marker is, in bytes, and how often."""
    drawn = np.random.default_rng(seed).choice(1 << 28, len(fields), replace=False)
    markers = (drawn + (1 << 28)).astype(np.uint32)  # positive numbers of any type
    for field, marker in zip(fields, markers.tolist()):
        field.mark(marker)
    payload = serialised(marked)
    words = np.frombuffer(payload, np.uint32, len(payload) // _WORD)
    order = words.argsort()
    first, last = (np.searchsorted(words, markers, side, order) for side in ("left", "right"))
    return order[first.clip(max=len(words) - 1)] * _WORD, last - first


class _Field(NamedTuple):
    """A field or an element that holds a number."""

    parent: Any
    name: str
    """Name of the field, or index of the element."""
    ros_type: str
    """Type of the field: double, float[9], sequence<int32>, ..."""

    @classmethod
    def at(cls, message: Any, path: str, kind: type) -> _Field:
        """Find the field at a path.

        Raises:
            ValueError: There is none, or it holds something else than a number of the kind.
        """
        owner = present = parent = message
        field = ""
        try:
            for name in path.split("."):
                parent = present
                if name.isdecimal():
                    present = parent[int(name)]
                else:
                    owner, field, present = parent, name, getattr(parent, name)
        except (AttributeError, IndexError):
            raise ValueError(f"{type(message).__name__}.{path}: there is no such field") from None
        if isinstance(present, np.generic):  # of a field with a fixed number of elements
            present = present.item()
        if type(present) is not kind:
            where, expected = f"{type(message).__name__}.{path}", kind.__name__
            raise ValueError(f"{where}: expected a {expected}, got {present!r}")
        return cls(parent, name, owner.get_fields_and_field_types()[field])

    @property
    def is_double(self) -> bool:
        return "double" in self.ros_type

    def mark(self, marker: int) -> None:
        number: float = marker
        if self.is_double:
            (number,) = struct.unpack("=d", struct.pack("=II", marker, _SECOND_WORD))
        elif "float" in self.ros_type:
            (number,) = struct.unpack("=f", struct.pack("=I", marker))
        if self.name.isdecimal():
            self.parent[int(self.name)] = number
        else:
            setattr(self.parent, self.name, number)
