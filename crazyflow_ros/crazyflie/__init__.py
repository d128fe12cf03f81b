"""Crazyflies for cflib and cfclient: the protocol CRTP over UDP. No ROS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crazyflow_ros.crazyflie.link import FIRST_PORT, LinkConfig

if TYPE_CHECKING:
    from crazyflow_ros.crazyflie.server import CrazyflieServer

__all__ = ["FIRST_PORT", "CrazyflieServer", "LinkConfig"]


def __getattr__(name: str) -> Any:
    """Import the server on first use: ports are open before that takes its seconds."""
    if name != "CrazyflieServer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from crazyflow_ros.crazyflie.server import CrazyflieServer

    return CrazyflieServer
