"""Entry points, by which installed packages, our own extensions among them, add to the simulator.

A package names its objects as entry points, with a group for each kind of object.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from crazyflow_ros.checks.limits import unknown


@lru_cache(maxsize=1)  # reading the metadata of all packages takes long
def _all(_path: tuple[str, ...]) -> Any:
    return entry_points()


def found(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, sorted by name."""
    return sorted(_all(tuple(sys.path)).select(group=group))


def names(group: str) -> list[str]:
    """Return the names in a group."""
    return sorted({entry.name for entry in found(group)})


def load(
    group: str, name: str, what: str, rule: str = "", fits: Callable[[Any], bool] = lambda _: True
) -> Any:
    """Return the object that an entry point names.

    Args:
        group: Group of the entry point.
        name: Name of the entry point.
        what: Word for such an object in messages.
        rule: What the object has to be, for a message.
        fits: Returns whether an object fulfils the rule.

    Raises:
        ValueError: No package offers it, several do, or it cannot be imported or does not fit; the
            message names it and the packages.
    """
    entries = [entry for entry in found(group) if entry.name == name]
    if not entries:
        known = names(group)
        raise ValueError(
            unknown(what, name, known) if known else f"no package offers the {what} {name!r}"
        )
    if len(entries) > 1:
        packages = ", ".join(map(package_of, entries))
        raise ValueError(f"several packages offer a {what} {name!r}: {packages}")
    entry, this = entries[0], f"{package_of(entries[0])}: the {what} {name!r}"
    try:
        loaded = entry.load()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise ValueError(f"{this} cannot be loaded: {cause}") from error
    if not fits(loaded):
        raise ValueError(f"{this} has to be {rule}, got {entry.value}")
    return loaded


def package_of(entry: EntryPoint) -> str:
    """Name the package of an entry point, for messages."""
    dist = entry.dist
    return f"the package {dist.name} {dist.version}" if dist else f"the module {entry.module}"
