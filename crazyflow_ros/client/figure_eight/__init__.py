"""Figure-eights: a path from take-off to landing, and a flight of all drones along it.

The path, `plan_flight`, needs no ROS. `python -m crazyflow_ros.client.figure_eight` flies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.client.figure_eight.flight_path import SHORTEST, FlightPath, plan_flight
    from crazyflow_ros.client.figure_eight.flight_record import ALLOWED_ERROR, FlightRecord, Track
    from crazyflow_ros.client.figure_eight.formation import fly

__all__ = ["ALLOWED_ERROR", "SHORTEST", "FlightPath", "FlightRecord", "Track", "fly", "plan_flight"]

__getattr__ = lazy(
    __name__,
    {
        "ALLOWED_ERROR": "flight_record",
        "SHORTEST": "flight_path",
        "FlightPath": "flight_path",
        "FlightRecord": "flight_record",
        "Track": "flight_record",
        "fly": "formation",
        "plan_flight": "flight_path",
    },
)
