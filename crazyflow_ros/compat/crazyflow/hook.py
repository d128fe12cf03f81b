"""An import hook: `import crazyflow` and its modules give those of `crazyflow_ros.compat`."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

THEIRS, OURS = "crazyflow", "crazyflow_ros.compat.crazyflow"


class _Hook(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        del path, target
        if name != THEIRS and not name.startswith(f"{THEIRS}."):
            return None
        try:
            known = find_spec(OURS + name.removeprefix(THEIRS)) is not None
        except ModuleNotFoundError:  # its package does not exist
            known = False
        return ModuleSpec(name, self) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(OURS + spec.name.removeprefix(THEIRS))
        spec.loader_state = module.__spec__  # which Python replaces before it calls exec_module
        # What our modules imported is known under their names, too: nothing is imported twice.
        for ours in [name for name in sys.modules if name.startswith(f"{OURS}.")]:
            sys.modules.setdefault(THEIRS + ours.removeprefix(OURS), sys.modules[ours])
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Let `import crazyflow` give this package's modules, in this process.

    Raises:
        RuntimeError: Crazyflow itself has been imported already.
    """
    known = sys.modules.get(THEIRS)
    if known is not None and known.__name__ != OURS:
        raise RuntimeError("Crazyflow is imported already: install the hook before it")
    if not any(isinstance(finder, _Hook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hook())
