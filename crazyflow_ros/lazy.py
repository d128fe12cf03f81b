"""Public names that a package imports on first use, because not all of its users need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any
from warnings import warn


def lazy(
    package: str, modules: Mapping[str, str], moved: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package.

    Args:
        package: Name of the package.
        modules: The module that defines a name, for each name: one below the package, or that of an
            extension, with its whole name.
        moved: The package that has a name now, for names that this package has given away.
    """
    elsewhere = moved or {}

    def get(name: str) -> Any:
        if name in elsewhere:
            text = f"{name} has moved from {package} to {elsewhere[name]}"
            warn(text, DeprecationWarning, stacklevel=2)
            return getattr(import_module(elsewhere[name]), name)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        whole = module if module.startswith("crazyflow_ros.") else f"{package}.{module}"
        return getattr(import_module(whole), name)

    return get
