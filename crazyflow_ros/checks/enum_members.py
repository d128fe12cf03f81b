"""Members of enumerations by their names."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from crazyflow_ros.checks.limits import unknown

E = TypeVar("E", bound=StrEnum)


def member(enum: type[E], name: str) -> E:
    """Return the member of `enum` whose name is `name`.

    Raises:
        ValueError: There is no such member; the message lists the known names.
    """
    try:
        return enum(name)
    except ValueError:
        raise ValueError(unknown(enum.__name__.lower(), name, enum)) from None
