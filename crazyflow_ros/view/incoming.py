"""Limits on what browsers may send to the page's server, and how often.

viser trusts browsers: it sets any attribute of an input that a message names, to any value, and
passes the message on to all tabs. Messages that no page sends are therefore dropped before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import msgspec
from viser import _messages as messages

from crazyflow_ros.view.access import TokenBucket

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        messages.CommandTriggerMessage,
        messages.GuiButtonHoldMessage,
        messages.GuiUpdateMessage,
        messages.SceneNodeClickMessage,
        messages.ScenePointerMessage,
        messages.ViewerCameraMessage,
    )
}
_LONGEST = 1000  # characters of a text
_RATE, _BURST = 100.0, 200.0  # messages per second, and at once

FindInput = Callable[[str], Any | None]
"""Returns the input of the panel with an id."""


def click_limit() -> TokenBucket:
    """Return a limit on the messages of one connection: no faster than people click."""
    return TokenBucket(_RATE, _BURST)


def is_welcome(content: Any, find_input: FindInput) -> bool:
    """Return whether the page may send this message, with values that its inputs can have."""
    try:
        mapping = msgspec.msgpack.decode(content)
        kind = _KINDS[mapping["type"]]
        message = msgspec.convert(mapping, kind)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError):
        return False
    known = {"type", *(field.name for field in fields(kind))}
    if not (mapping.keys() <= known and _is_tame(list(mapping.values()))):
        return False
    if not isinstance(message, messages.GuiUpdateMessage):
        return True
    control = find_input(message.uuid)
    is_value = message.updates.keys() == {"value"}
    return control is not None and is_value and _fits(control, message.updates["value"])


def _is_tame(value: Any) -> bool:
    """Return whether all numbers are finite, and all texts short."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_tame, value))
    if isinstance(value, dict):
        return all(map(_is_tame, value)) and all(map(_is_tame, value.values()))
    if isinstance(value, (str, bytes)):
        return len(value) <= _LONGEST
    return not isinstance(value, float) or math.isfinite(value)


def _fits(control: Any, value: Any) -> bool:
    """Return whether an input can have a value, by its type, its range and its options."""
    options, present = getattr(control, "options", None), control.value
    if options is not None:
        return value in options
    if isinstance(present, tuple):
        return isinstance(value, list) and _are_within(control, value, len(present))
    if isinstance(present, (bool, str)):
        return type(value) is type(present)
    if isinstance(present, int) and not isinstance(value, int):
        return False
    return _are_within(control, [value], 1)


def _are_within(control: Any, values: list[Any], count: int) -> bool:
    """Return whether the values are `count` numbers within the range of an input."""
    lowest, highest = (_as_list(getattr(control, side, None), count) for side in ("min", "max"))
    return len(values) == count and all(
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and (low is None or low <= value)
        and (high is None or value <= high)
        for value, low, high in zip(values, lowest, highest)
    )


def _as_list(bound: Any, count: int) -> list[Any]:
    return list(bound) if isinstance(bound, tuple) else [bound] * count
