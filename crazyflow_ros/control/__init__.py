"""Onboard control in JAX: control modes, and the controllers of the Crazyflie firmware."""

from crazyflow_ros.control.acceleration import GRAVITY, attitude_command
from crazyflow_ros.control.modes import Control, Controller, PowerDistribution
from crazyflow_ros.control.rates import ticks_per_period

__all__ = [
    "GRAVITY",
    "Control",
    "Controller",
    "PowerDistribution",
    "attitude_command",
    "ticks_per_period",
]

MODULES = (
    "cascades",
    "commands",
    "firmware_parameters",
    "gains",
    "mellinger",
    "memory",
    "modes",
    "pid",
    "rates",
)
"""Modules that extensions may import, with all their public names."""
