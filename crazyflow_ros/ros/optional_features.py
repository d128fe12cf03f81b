"""Features that a node may lack, because their message package is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crazyflow_ros.checks.throttled_logger import ThrottledLogger

_missing: dict[str, str] = {}  # features that are off, and the package that each needs


@contextmanager
def if_installed(feature: str) -> Iterator[None]:
    """Context for the imports of a feature whose message package may be missing or outdated."""
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
