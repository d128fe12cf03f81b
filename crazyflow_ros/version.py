"""Version of this package, defined in `package.xml`."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from xml.etree import ElementTree

from crazyflow_ros.resources import resource


def package_version() -> str:
    """Return the version of the installed package, or of this checkout if it is not installed."""
    try:
        return version("crazyflow_ros")
    except PackageNotFoundError:
        return ElementTree.parse(resource("package.xml")).findtext("version", "unknown")
