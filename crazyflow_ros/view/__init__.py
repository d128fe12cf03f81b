"""Pages in a browser that show a simulation; that of the node, a separate process, controls it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crazyflow_ros.extras import extra

if TYPE_CHECKING:
    from crazyflow_ros.view.physics_view import PhysicsView
    from crazyflow_ros.view.sim_view import SimView

__all__ = ["PhysicsView", "SimView"]

_MODULES = {"PhysicsView": "physics_view", "SimView": "sim_view"}


def __getattr__(name: str) -> Any:
    """Import a page on first access: each needs other packages."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("view"):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
