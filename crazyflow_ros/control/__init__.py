"""Onboard control in JAX: control modes, and the controllers of the Crazyflie firmware."""

from crazyflow_ros.control.acceleration import GRAVITY, attitude_command
from crazyflow_ros.control.modes import Control, Controller, PowerDistribution

__all__ = ["GRAVITY", "Control", "Controller", "PowerDistribution", "attitude_command"]
