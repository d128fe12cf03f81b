"""Onboard control in JAX: control modes, and the controllers of the Crazyflie firmware."""

from crazyflow_ros.control.modes import Control, Controller

__all__ = ["Control", "Controller"]
