"""A page in a browser that shows and controls a simulation, in a separate process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crazyflow_ros.extras import extra

if TYPE_CHECKING:
    from crazyflow_ros.view.sim_view import SimView

__all__ = ["SimView"]


def __getattr__(name: str) -> Any:
    """Import `SimView` on first access: other pages need no `Sim`."""
    if name != "SimView":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("view"):
        from crazyflow_ros.view.sim_view import SimView

    return SimView
