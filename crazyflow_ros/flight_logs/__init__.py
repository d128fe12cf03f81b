"""Recorded flights of real and simulated drones, in the formats in which they are logged."""

from crazyflow_ros.flight_logs.flight_log import FlightLog, TimedValues
from crazyflow_ros.flight_logs.read import read_flight_log

__all__ = ["FlightLog", "TimedValues", "read_flight_log"]
