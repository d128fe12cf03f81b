"""Crazyflies for their own programs: CRTP, as cflib and cfclient speak it, over UDP. No ROS."""

from crazyflow_ros.crazyflie.server import FIRST_PORT, CrazyflieServer, LinkConfig

__all__ = ["FIRST_PORT", "CrazyflieServer", "LinkConfig"]
