"""Identification of the fitted models, `so_rpy` and those with rotors and drag, from flights."""

from crazyflow_ros.identification.drone_folder import write_drone
from crazyflow_ros.identification.fit import Fit, identify
from crazyflow_ros.identification.flight import RecordedFlight, read_flight

__all__ = ["Fit", "RecordedFlight", "identify", "read_flight", "write_drone"]
