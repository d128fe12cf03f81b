"""Messages that are serialised once, and whose numbers are then overwritten in place.

Building a ROS message in Python and serialising it costs some ten times as much as sending it. A
simulator sends the same few messages over and over, with other numbers. Where a number is in the
serialised message is not derived from the rules of CDR, but seen from where a marker shows up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Messages of one type with the same fields, for example one per drone.

    A path names a number in a message: `pose.position.x`, `position.2`.

    Args:
        prototypes: The N messages, with everything that does not change.
        stamps: Paths of the times in each message.
        blocks: Name of a block, and the paths of its K float64 in each message.

    Raises:
        ValueError: A path is not that of a number of the right type.
    """

    def __init__(
        self,
        prototypes: Sequence[Any],
        stamps: Sequence[str],
        blocks: Mapping[str, Sequence[str]],
    ) -> None:
        stamp_paths = [path for stamp in stamps for path in below(stamp, ("sec", "nanosec"))]
        block_paths = [path for paths in blocks.values() for path in paths]
        payloads = [serialize_message(prototype) for prototype in prototypes]
        starts = np.cumsum([0] + [-(-len(payload) // _WORD) for payload in payloads])
        self._words = np.zeros(starts[-1], np.uint32)
        bytes_ = self._words.data.cast("B")
        self._payloads: list[memoryview] = []
        for start, payload in zip(starts * _WORD, payloads):
            bytes_[start : start + len(payload)] = payload
            self._payloads.append(bytes_[start : start + len(payload)])

        places = np.array(
            [find_numbers(p, block_paths, stamp_paths) for p in prototypes], dtype=np.intp
        )
        places = places // _WORD + starts[:-1, None]
        doubles, times = np.split(places, [len(block_paths)], axis=1)
        doubles = np.stack((doubles, doubles + 1), axis=-1).reshape(len(prototypes), -1)
        ends = np.cumsum([2 * len(paths) for paths in blocks.values()])
        self._blocks = dict(zip(blocks, np.split(doubles, ends, axis=1)))
        self._seconds, self._nanoseconds = times[:, 0::2].ravel(), times[:, 1::2].ravel()

    def stamp(self, time_ns: int) -> None:
        """Set all times [ns]."""
        seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
        self._words[self._seconds] = seconds
        self._words[self._nanoseconds] = nanoseconds

    def write(self, block: str, values: np.ndarray) -> None:
        """Set the numbers of a block in all messages, from an array of shape (N, K)."""
        self._words[self._blocks[block]] = np.ascontiguousarray(values, float).view(np.uint32)

    def payload(self, index: int) -> bytes:
        """One message, to be published as it is."""
        return bytes(self._payloads[index])


def find_numbers(
    prototype: Any, float64_paths: Sequence[str], int32_paths: Sequence[str]
) -> list[int]:
    """Where numbers are in a serialised message.

    Args:
        prototype: The message; left as it is.
        float64_paths: Paths of fields of type float64.
        int32_paths: Paths of fields of type int32 or uint32.

    Returns:
        Their offsets in bytes, in the order of the paths.

    Raises:
        ValueError: A marker set at a path does not show up exactly once.
    """
    generator = np.random.default_rng(_MARKER_SEED)
    doubles = generator.uniform(1.0, 2.0, len(float64_paths))
    integers = generator.integers(1 << 24, 1 << 30, len(int32_paths), dtype=np.int32)
    marked = deepcopy(prototype)
    markers: list[bytes] = []
    for paths, values in ((float64_paths, doubles), (int32_paths, integers)):
        for path, value in zip(paths, values):
            _assign(marked, path, value.item())
            markers.append(value.tobytes())
    payload = serialize_message(marked)
    for path, marker in zip([*float64_paths, *int32_paths], markers):
        found = payload.count(marker)
        if found != 1 or payload.find(marker) % _WORD:
            kind = type(prototype).__name__
            raise ValueError(f"{kind}.{path}: no number of the expected type, {found} places")
    return [payload.find(marker) for marker in markers]


def _assign(message: Any, path: str, value: float) -> None:
    *parents, last = path.split(".")
    for name in parents:
        message = message[int(name)] if name.isdecimal() else getattr(message, name)
    if last.isdecimal():
        message[int(last)] = value
    else:
        setattr(message, last, value)
