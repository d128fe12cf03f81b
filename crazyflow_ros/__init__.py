"""Quadrotor simulator for ROS 2, and a batched, differentiable one for plain Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crazyflow_ros.opengl import choose_opengl

if TYPE_CHECKING:
    __version__: str
    from crazyflow_ros.control import Control
    from crazyflow_ros.dynamics import Drone, Dynamics
    from crazyflow_ros.sim import Sim

__all__ = ["Control", "Drone", "Dynamics", "Sim", "__version__"]

choose_opengl()  # before anything imports MuJoCo


def __getattr__(name: str) -> Any:
    """Import public names on first use: the node starts faster without `Sim`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "__version__":
        from crazyflow_ros.version import package_version

        return package_version()
    where = {"Sim": "sim", "Control": "control"}.get(name, "dynamics")
    return getattr(import_module(f"{__name__}.{where}"), name)
