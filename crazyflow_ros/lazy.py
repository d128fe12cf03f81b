"""Public names that a package imports on first use, because not all of its users need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any
from warnings import warn


def lazy(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package.

    Args:
        package: Name of the package.
        modules: The module below the package that defines a name, for each name.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return get


def moved(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package that has given names away.

    Args:
        package: Name of the package.
        places: The package that has a name now, for each name.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        text = f"{name} has moved from {package} to {places[name]}"
        warn(text, DeprecationWarning, stacklevel=2)
        return getattr(import_module(places[name]), name)

    return get
