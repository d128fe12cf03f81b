"""Members of enumerations by their names."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)


def member(enum: type[E], name: str) -> E:
    """The member of `enum` that `name` names.

    Raises:
        ValueError: There is none; the message names those there are.
    """
    try:
        return enum(name)
    except ValueError:
        names = ", ".join(enum)
        raise ValueError(f"unknown {enum.__name__.lower()} {str(name)!r}, have {names}") from None
