"""Members of enumerations by their names."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)


def member(enum: type[E], name: str) -> E:
    """Return the member of `enum` whose name is `name`.

    Raises:
        ValueError: There is no such member; the message lists the known names.
    """
    try:
        return enum(name)
    except ValueError:
        names = ", ".join(enum)
        raise ValueError(f"unknown {enum.__name__.lower()} {str(name)!r}, have {names}") from None
