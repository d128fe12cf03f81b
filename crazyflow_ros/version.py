"""The version of this package, which `package.xml` states."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from xml.etree import ElementTree

from crazyflow_ros.resources import resource


def package_version() -> str:
    """The version of the installed package, or, if none is installed, of this checkout."""
    try:
        return version("crazyflow_ros")
    except PackageNotFoundError:
        return ElementTree.parse(resource("package.xml")).findtext("version", "unknown")
