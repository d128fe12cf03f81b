"""Features that a node may lack: their message package is missing, or another package has them.

Those of other packages are entry points of the group `crazyflow_ros.features`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crazyflow_ros.checks.entry_points import found, names, package_of
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.doors.settings import GROUP as DOORS

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_GROUP = "crazyflow_ros.features"

PREFIXES = tuple(f"{name}." for group in (_GROUP, DOORS) for name in names(group))
"""With what the names of the parameters of other packages begin."""

_missing: dict[str, str] = {}  # features that are off, and the package that each needs


@contextmanager
def if_installed(feature: str) -> Iterator[None]:
    """A context for the imports of a feature whose message package may be missing, or old."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if not package.endswith(("_msgs", "_interfaces")):
            raise
        _missing[feature] = package


def is_on(feature: str, log: ThrottledLogger) -> bool:
    """Return whether the imports of a feature have succeeded; warn if not."""
    package = _missing.get(feature)
    if package is not None:
        log.warning(
            f"{feature} is off: the package {package} is missing. On a ROS machine, 'rosdep "
            "install --from-paths src --ignore-src' and 'colcon build' in the workspace add it; "
            "without ROS installed, 'python -m crazyflow_ros build-messages'"
        )
    return package is None


def add_external_features(host: Host) -> None:
    """Add the features of all installed packages.

    The simulator flies without one that is broken, and says so, because nobody has asked for it in
    so many words.

    Raises:
        ParameterError: A feature refuses a parameter that it was given.
    """
    for entry in found(_GROUP):
        try:
            entry.load()(host)
        except ParameterError:
            raise
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            host.log.error(f"the feature {entry.name} of {package_of(entry)} is off: {cause}")
