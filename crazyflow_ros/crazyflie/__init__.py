"""Crazyflies for cflib and cfclient: the protocol CRTP over UDP. No ROS.

The server is imported on first use, because that takes seconds, and ports have to open before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.crazyflie.link_config import FIRST_PORT, LinkConfig
from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.crazyflie.crtp_server import CrazyflieServer

__all__ = ["FIRST_PORT", "CrazyflieServer", "LinkConfig"]

__getattr__ = lazy(__name__, {"CrazyflieServer": "crtp_server"})
