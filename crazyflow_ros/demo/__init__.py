"""Demonstration: several drones fly a figure eight together, over ROS topics.

The flight itself, without ROS, is `plan_flight`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.demo.trajectory import SHORTEST, FlightPath, plan_flight

__all__ = ["SHORTEST", "FlightPath", "plan_flight"]

__getattr__ = lazy(
    __name__, {"SHORTEST": "trajectory", "FlightPath": "trajectory", "plan_flight": "trajectory"}
)
