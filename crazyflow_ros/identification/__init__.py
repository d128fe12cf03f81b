"""Identification of drones from flights: `first_principles` and the `so_rpy` models."""

from crazyflow_ros.identification.drone_folder import write_drone
from crazyflow_ros.identification.fit import Fit, identify
from crazyflow_ros.identification.open_loop import (
    Judgement,
    OpenLoop,
    judged,
    leave_one_out,
    open_loop_errors,
)
from crazyflow_ros.identification.recorded_flight import RecordedFlight, read_flight
from crazyflow_ros.identification.rigid_body_fit import identify_rigid_body, with_fit

__all__ = [
    "Fit",
    "Judgement",
    "OpenLoop",
    "RecordedFlight",
    "identify",
    "identify_rigid_body",
    "judged",
    "leave_one_out",
    "open_loop_errors",
    "read_flight",
    "with_fit",
    "write_drone",
]
