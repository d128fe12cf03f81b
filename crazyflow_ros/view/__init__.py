"""Pages in a browser that show a simulation; that of the node, a separate process, controls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crazyflow_ros.extras import extra
from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.view.physics_view import PhysicsView
    from crazyflow_ros.view.sim_view import SimView

__all__ = ["PhysicsView", "SimView"]

_page = lazy(__name__, {"PhysicsView": "physics_view", "SimView": "sim_view"})


def __getattr__(name: str) -> Any:
    """Import a page on first access: each needs other packages."""
    with extra("view"):
        return _page(name)
