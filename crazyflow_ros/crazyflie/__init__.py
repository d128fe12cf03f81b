"""Crazyflies for cflib and cfclient: the protocol CRTP over UDP. No ROS."""

from crazyflow_ros.crazyflie.link import FIRST_PORT, LinkConfig
from crazyflow_ros.crazyflie.server import CrazyflieServer

__all__ = ["FIRST_PORT", "CrazyflieServer", "LinkConfig"]
