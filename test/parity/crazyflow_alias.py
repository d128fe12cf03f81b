"""Crazyflow's name for this package, so that programs written for Crazyflow run unchanged.

`install()` makes `import crazyflow.x` give the names of `crazyflow_ros.x`. A name or module that is
absent here gives a placeholder that fails when it is used, so that one missing name fails the tests
that need it and not all tests of their file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

THEIRS, OURS = "crazyflow", "crazyflow_ros"


class AbsentError(Exception):
    """Something that Crazyflow has, and this package has not, was used."""


class Absent:
    """A name of Crazyflow's that does not exist here."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        raise AbsentError(f"{self._name} does not exist here")

    __call__ = __iter__ = __instancecheck__ = __mro_entries__ = _fail

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._fail()


class _Alias(ModuleType):
    """A module of Crazyflow's, with the content of ours of that name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        ours = OURS + self.__name__.removeprefix(THEIRS)
        if exists(ours) and hasattr(module := import_module(ours), name):
            found = getattr(module, name)
            if not isinstance(found, ModuleType):
                return found
        if exists(f"{ours}.{name}"):
            return import_module(f"{self.__name__}.{name}")
        return Absent(f"{self.__name__}.{name}")


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != THEIRS:
            return None
        package, _, last = (OURS + name.removeprefix(THEIRS)).rpartition(".")
        is_module = not package or exists(f"{package}.{last}")
        if not is_module and exists(package) and hasattr(import_module(package), last):
            return None  # a class or function; `unittest.mock.patch` tries to import them
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Alias(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        del module


def exists(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package does not exist
        return False


def install() -> None:
    """Give this package Crazyflow's name in this process."""
    sys.meta_path.insert(0, _Finder())
    import_module(OURS)
    import_module(f"{OURS}.envs.crazyflow").register()  # as an import of Crazyflow does


def main(arguments: Sequence[str]) -> None:
    """Run a script under the alias: `crazyflow_alias.py SCRIPT [ARGUMENTS]`."""
    from runpy import run_path

    sys.argv = list(arguments)
    install()
    run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
