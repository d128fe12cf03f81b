"""Messages of protocol buffers, in which XLA describes compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_SIZES = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


class BufferMessage:
    """The fields of a message, by number. Missing ones have the value 0, or are empty.

    Args:
        content: The encoded message.

    Raises:
        ValueError: It is not a message.
    """

    def __init__(self, content: bytes) -> None:
        self._fields: dict[int, list[Any]] = {}
        at = 0
        while at < len(content):
            key, at = varint(content, at)
            kind, value = key & 7, 0
            if kind == _VARINT:
                value, at = varint(content, at)
                self._fields.setdefault(key >> 3, []).append(value)
                continue
            if kind == _BYTES:
                size, at = varint(content, at)
            elif kind in _SIZES:
                size = _SIZES[kind]
            else:
                raise ValueError(f"a field of unknown kind {kind}")
            if at + size > len(content):
                raise ValueError("a field is longer than its message")
            self._fields.setdefault(key >> 3, []).append(content[at : at + size])
            at += size

    def number(self, field: int) -> int:
        """Return an integer that is not negative."""
        value: int = self._fields.get(field, [0])[-1]
        return value

    def content(self, field: int) -> bytes:
        """Return a string of bytes."""
        value: bytes = self._fields.get(field, [b""])[-1]
        return value

    def message(self, field: int) -> BufferMessage:
        """Return a message within this one."""
        return BufferMessage(self.content(field))

    def each(self, field: int) -> list[bytes]:
        """Return the values of a repeated field."""
        return self._fields.get(field, [])

    def messages(self, field: int) -> list[BufferMessage]:
        """Return the messages of a repeated field."""
        return [BufferMessage(content) for content in self.each(field)]

    def numbers(self, field: int) -> list[int]:
        """Return the integers of a repeated field, which may be packed."""
        values: list[int] = []
        for value in self._fields.get(field, []):
            at = 0
            while not isinstance(value, int) and at < len(value):
                one, at = varint(value, at)
                values.append(one)
            if isinstance(value, int):
                values.append(value)
        return values

    @property
    def fields(self) -> set[int]:
        """The numbers of the fields that are present."""
        return set(self._fields)


def varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the integer at a place, and the place after it.

    Raises:
        ValueError: The content ends before.
    """
    value = shift = 0
    while at < len(content):
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a message ends within a number")


# Of `LiteralProto`: the field of each type of numbers. Integers of 4 and 8 bytes are varints.
_LITERALS = {"b1": 2, "i4": 4, "i8": 5, "u4": 6, "u8": 7, "f4": 8, "f8": 9, "u1": 3}
_ELEMENT_TYPES = {1: "b1", 4: "i4", 5: "i8", 6: "u1", 8: "u4", 9: "u8", 11: "f4", 12: "f8"}


def literal(message: BufferMessage) -> bytes:
    """Return the memory of a constant, a `LiteralProto`.

    Raises:
        ValueError: Its type is unknown.
    """
    kind = _ELEMENT_TYPES.get(message.message(1).number(2))
    if kind is None:
        raise ValueError("a constant of unknown type")
    field = _LITERALS[kind]
    if kind in ("i4", "i8", "u4", "u8"):
        numbers = np.array(message.numbers(field), np.uint64)
        return numbers.astype(f"<u{kind[1]}").tobytes()
    if kind == "b1":
        return bytes(message.numbers(field))
    return b"".join(message.each(field))
