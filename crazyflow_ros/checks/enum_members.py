"""Members of enumerations by their names, also those that installed packages add."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Self, TypeVar

from crazyflow_ros.checks import entry_points
from crazyflow_ros.checks.limits import unknown

E = TypeVar("E", bound=StrEnum)


class OpenEnum(StrEnum):
    """An enumeration whose members name objects: entry points of `group`, which packages add to.

    Members of this package are attributes of the class.
    """

    @classmethod
    def group(cls) -> str:
        """Group of the entry points."""
        raise NotImplementedError

    @classmethod
    def known(cls) -> list[str]:
        """Names of all members, those of this package first."""
        own = list(map(str, cls))
        return own + [name for name in entry_points.names(cls.group()) if name not in own]

    @property
    def is_own(self) -> bool:
        """Whether the member belongs to this package."""
        return self.name in type(self).__members__

    def load(self, rule: str, fits: Callable[[Any], bool]) -> Any:
        """Return the object that the member names, see `entry_points.load`."""
        return entry_points.load(self.group(), self.value, type(self).__name__.lower(), rule, fits)

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if value not in entry_points.names(cls.group()):
            return None
        added = str.__new__(cls, value)
        added._name_ = added._value_ = str(value)
        return added


def member(enum: type[E], name: str) -> E:
    """Return the member of `enum` whose name is `name`.

    Raises:
        ValueError: There is no such member; the message lists the known names.
    """
    try:
        return enum(name)
    except ValueError:
        known = enum.known() if issubclass(enum, OpenEnum) else enum
        raise ValueError(unknown(enum.__name__.lower(), name, known)) from None
