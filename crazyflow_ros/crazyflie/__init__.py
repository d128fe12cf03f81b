"""Crazyflies for their own programs: CRTP, as cflib and cfclient speak it, over UDP. No ROS."""

from crazyflow_ros.crazyflie.link import FIRST_PORT, LinkConfig
from crazyflow_ros.crazyflie.server import CrazyflieServer

__all__ = ["FIRST_PORT", "CrazyflieServer", "LinkConfig"]
