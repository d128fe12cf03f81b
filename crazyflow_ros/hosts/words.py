"""Messages between simulators: a JSON text and numbers, none of which is trusted."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import convert

PROTOCOL = 1
"""Version of messages and rounds, to be raised with each change of them."""
MOST_BYTES = 128 * 1024 * 1024
"""Bytes of a message; the largest ones have a checkpoint in them."""
MOST_REQUESTS = 1000
"""Requests in a message."""
_HEAD = struct.Struct("<4sI")  # magic, bytes of the text
_MAGIC = b"cfrh"


@dataclass(frozen=True)
class Hello:
    """The data that simulators compare before they share a time."""

    protocol: int
    configuration: dict[str, Any]
    """JSON values by name; all simulators must have the same."""
    drones: tuple[str, ...]
    """Drones that the sender owns."""


@dataclass(frozen=True)
class Word:
    """The message of a simulator in a round."""

    view: str
    round: int
    tick: int
    epoch: int
    digest: str
    """Of the state at the tick."""
    paused: bool
    due: bool
    """The next tick is due."""
    until: int
    """Tick up to which the inputs hold."""
    requests: tuple[dict[str, Any], ...]
    """See `calls.encoded`."""
    inputs: bytes = b""
    """Of the sender's drones, see `Engine.inputs`; beside the text."""


_OF_WORD = {
    **dict.fromkeys(("view", "digest"), str),
    **dict.fromkeys(("round", "tick", "epoch", "until"), int),
    **dict.fromkeys(("paused", "due"), bool),
    "requests": list,
}


def packed(message: Hello | Word) -> bytes:
    """Return the bytes of a message.

    Raises:
        ValueError: It is too large.
    """
    values = dict(vars(message))
    rest = values.pop("inputs", b"")
    text = json.dumps(values, separators=(",", ":")).encode()
    size = _HEAD.size + len(text) + len(rest)
    if size > MOST_BYTES:
        raise ValueError(f"a message between simulators has at most {MOST_BYTES} bytes, got {size}")
    return _HEAD.pack(_MAGIC, len(text)) + text + rest


def unpacked(data: bytes) -> Hello | Word:
    """Return a message from its bytes.

    Raises:
        ValueError: The data is no message; the error says why.
    """
    if not _HEAD.size <= len(data) <= MOST_BYTES or data[:4] != _MAGIC:
        raise ValueError(f"not a message of crazyflow_ros: {len(data)} bytes, {shown(data[:16])}")
    _, length = _HEAD.unpack_from(data)
    end = _HEAD.size + length
    try:
        values = json.loads(data[_HEAD.size : end])
        if isinstance(values, dict) and _is_word(values):
            return Word(**values | {"requests": tuple(values["requests"]), "inputs": data[end:]})
        kind = Hello if isinstance(values, dict) and "protocol" in values else Word
        message: Hello | Word = convert(values, kind, "")
    except RecursionError:
        raise ValueError("a message is nested too deeply") from None
    except TypeError as error:
        raise ValueError(str(error)) from None
    if isinstance(message, Word):
        raise ValueError(f"at most {MOST_REQUESTS} requests, got {len(message.requests)}")
    return message


def _is_word(values: dict[str, Any]) -> bool:
    """Whether these are the values of a word; `convert` would say why not, but takes 80 us."""
    if values.keys() != _OF_WORD.keys():
        return False
    requests = values["requests"]
    are_types = all(type(values[name]) is kind for name, kind in _OF_WORD.items())
    return are_types and len(requests) <= MOST_REQUESTS and all(type(x) is dict for x in requests)


def inputs_of(word: Word, like: np.ndarray, levels: range) -> np.ndarray:
    """Return the inputs in a word.

    Args:
        word: The word.
        like: Inputs of the same drones, for shape and type.
        levels: Possible levels; their column comes before the last six.

    Raises:
        ValueError: Their size or a level is wrong.
    """
    if len(word.inputs) != like.nbytes:
        raise ValueError(f"expected {like.nbytes} bytes of inputs, got {len(word.inputs)}")
    # Numbers that are not finite cost the drone its service, as those of its own commander would.
    inputs = np.frombuffer(word.inputs, like.dtype).reshape(like.shape)
    level = inputs[:, -7]
    if not ((level >= levels[0]) & (level <= levels[-1]) & (level == np.rint(level))).all():
        raise ValueError(f"levels must be from {levels[0]} to {levels[-1]}, got {shown(level)}")
    return inputs
