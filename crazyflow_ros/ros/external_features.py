"""Features of other packages: entry points of the group `crazyflow_ros.features`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.doors.settings import GROUP as DOORS
from crazyflow_ros.doors.settings import package_of

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_GROUP = "crazyflow_ros.features"

_FOUND = entry_points()  # once: it reads the metadata of all installed packages

PREFIXES = tuple(f"{e.name}." for group in (_GROUP, DOORS) for e in _FOUND.select(group=group))
"""With what the names of the parameters of other packages begin."""


def add_external_features(host: Host) -> None:
    """Add the features of all installed packages.

    The simulator flies without one that is broken, and says so, because nobody has asked for it in
    so many words.

    Raises:
        ParameterError: A feature refuses a parameter that it was given.
    """
    for entry in sorted(_FOUND.select(group=_GROUP)):
        try:
            entry.load()(host)
        except ParameterError:
            raise
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            host.log.error(f"the feature {entry.name} of {package_of(entry)} is off: {cause}")
