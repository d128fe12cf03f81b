"""Onboard control in JAX: control modes, and the controllers of the Crazyflie firmware."""

from typing import TYPE_CHECKING

from crazyflow_ros.control.acceleration import GRAVITY, attitude_command
from crazyflow_ros.control.modes import Control, Controller
from crazyflow_ros.control.power_distribution import PowerDistribution
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.control.cascades import Cascade
    from crazyflow_ros.control.memory import Memory

__getattr__ = lazy(__name__, {"Cascade": "cascades", "Memory": "memory"})

__all__ = [
    "GRAVITY",
    "Cascade",
    "Control",
    "Controller",
    "Memory",
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
