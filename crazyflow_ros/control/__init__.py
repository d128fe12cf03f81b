"""Onboard control in JAX: control modes, and the controllers of the Crazyflie firmware."""

from crazyflow_ros.control.modes import Control, Controller, PowerDistribution

__all__ = ["Control", "Controller", "PowerDistribution"]
