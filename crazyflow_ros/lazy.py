"""Public names that are imported on first use: not all users need them, or they have moved."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


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
