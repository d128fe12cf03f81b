"""Public names that are imported on first use: not all users need them, or they have moved."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
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


def moved(old: str, new: str) -> None:
    """Let programs import public names of a module from where it was, with a `DeprecationWarning`.

    Args:
        old: Its name of before. There is no such file any more.
        new: The module that has its names now.
    """
    former = ModuleType(old, f"Moved to `{new}`.")

    def get(name: str) -> Any:
        if name.startswith("__"):  # Python asks for its own, such as __path__
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        found = getattr(import_module(new), name)
        warnings.warn(f"{old}.{name} is now {new}.{name}", DeprecationWarning, stacklevel=2)
        return found

    former.__getattr__ = get  # type: ignore[method-assign]
    sys.modules[old] = former
