"""Messages that are serialised once, and whose numbers are then overwritten in place.

Building a ROS message in Python and serialising it costs some ten times as much as sending it. A
simulator sends the same few messages over and over, with other numbers. Where a number is in the
serialised message is not derived from the rules of CDR, but seen from where a marker shows up.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message

XYZ = ("x", "y", "z")
XYZW = ("x", "y", "z", "w")

_WORD = 4  # bytes; CDR aligns all numbers to it, and XCDR2 doubles to nothing more
_MARKER_SEED = 0


def below(path: str, names: Sequence[str]) -> list[str]:
    """Paths of the fields `names` of the field at `path`."""
    return [f"{path}.{name}" for name in names]


class SerialisedMessages:
    """Messages of one type that change in the same fields, for example one per drone.

    A path names a field in a message: `pose.position.x`, `position.2`.

    Args:
        prototypes: The N messages, with everything that does not change.
        stamps: Paths of the times in each message, all the same.
        numbers: Paths of the numbers (float64) in each message.
        floats: Paths of the numbers of type float32 in each message.

    Raises:
        ValueError: A path is not that of a field of the right type.
    """

    def __init__(
        self,
        prototypes: Sequence[Any],
        stamps: Sequence[str],
        numbers: Sequence[str],
        floats: Sequence[str] = (),
    ) -> None:
        times = [path for stamp in stamps for path in below(stamp, ("sec", "nanosec"))]
        found = [find_numbers(p, numbers, times, floats) for p in prototypes]
        places = np.array(found, dtype=np.intp)
        payloads = [serialize_message(prototype) for prototype in prototypes]
        # All messages are in one array, in which each starts at a word.
        starts = np.cumsum([0] + [-(-len(payload) // _WORD) for payload in payloads])
        self._words = np.zeros(starts[-1], np.uint32)
        memory = self._words.data.cast("B")
        self._payloads = [
            memory[start : start + len(payload)]
            for start, payload in zip((starts * _WORD).tolist(), payloads)
        ]
        for place, payload in zip(self._payloads, payloads):
            place[:] = payload
        places = places // _WORD + starts[:-1, None]
        ends = np.cumsum([len(numbers), len(floats)])
        doubles, singles, integers = np.split(places, ends, axis=1)
        self._numbers = np.stack((doubles, doubles + 1), axis=-1).reshape(len(payloads), -1)
        self._floats, self._n_doubles = singles, len(numbers)
        self._times = integers.reshape(-1, 2)

    def update(self, time_ns: int, values: np.ndarray) -> None:
        """Set all times [ns], and the numbers, from an array of shape (N, numbers + floats)."""
        self._words[self._times] = divmod(time_ns, 1_000_000_000)
        doubles = values
        if self._floats.size:
            doubles, singles = np.split(values, [self._n_doubles], axis=1)
            doubles = np.ascontiguousarray(doubles)
            self._words[self._floats] = singles.astype(np.float32).view(np.uint32)
        self._words[self._numbers] = doubles.view(np.uint32)

    def payload(self, index: int) -> bytes:
        """One message, to be published as it is."""
        return bytes(self._payloads[index])


def find_numbers(
    prototype: Any,
    float64_paths: Sequence[str],
    int32_paths: Sequence[str],
    float32_paths: Sequence[str] = (),
) -> list[int]:
    """Where numbers are in a serialised message.

    Args:
        prototype: The message; left as it is.
        float64_paths: Paths of fields of type float64.
        int32_paths: Paths of fields of type int32 or uint32.
        float32_paths: Paths of fields of type float32.

    Returns:
        Their offsets in bytes: those of type float64, float32, then int32.

    Raises:
        ValueError: There is no such field, or it is of another type.
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
    payload = serialize_message(marked)
    offsets = []
    for path, marker in zip(paths, markers):
        offset = payload.find(marker.tobytes())
        if offset < 0 or offset % _WORD or payload.count(marker.tobytes()) > 1:
            name = f"{type(prototype).__name__}.{path}"
            raise ValueError(f"{name}: not found as a number of {marker.nbytes} bytes")
        offsets.append(offset)
    return offsets


def _assign(message: Any, path: str, number: float) -> None:
    """Set a field that holds a number of the same type."""
    *parents, last = path.split(".")
    try:
        parent = message
        for name in parents:
            parent = parent[int(name)] if name.isdecimal() else getattr(parent, name)
        present = parent[int(last)] if last.isdecimal() else getattr(parent, last)
    except (AttributeError, IndexError):
        raise ValueError(f"{type(message).__name__}.{path}: there is no such field") from None
    if type(present) is not type(number):
        kind, expected = type(message).__name__, type(number).__name__
        raise ValueError(f"{kind}.{path}: expected a {expected}, got {present!r}")
    if last.isdecimal():
        parent[int(last)] = number
    else:
        setattr(parent, last, number)
