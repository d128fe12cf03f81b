"""The commander: take-off, landing, bounded courses, states and falls of drones. No ROS."""

from crazyflow_ros.flight.commander import Commander, Order
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.plan import FlightConfig, FlightState, Plan, Rules, Start
from crazyflow_ros.flight.planner import PolynomialTrajectory
from crazyflow_ros.flight.setpoints import (
    Arm,
    Brake,
    Emergency,
    FlyTrajectory,
    Goal,
    GoTo,
    Land,
    NotifySetpointsStop,
    Pose,
    Raw,
    SetGroups,
    Setpoint,
    Stop,
    Takeoff,
    Trajectory,
    Velocity,
)
from crazyflow_ros.flight.streamed import AttitudeThrust, FullState, Hover, HoverOn, LevelOut
from crazyflow_ros.flight.supervisor import FlightEvent, Sight, Supervisor

__all__ = [
    "Arm",
    "AttitudeThrust",
    "Brake",
    "Commander",
    "Course",
    "Emergency",
    "Envelope",
    "FlightConfig",
    "FlightEvent",
    "FlightState",
    "FlyTrajectory",
    "FullState",
    "GoTo",
    "Goal",
    "Hover",
    "HoverOn",
    "Land",
    "LevelOut",
    "NotifySetpointsStop",
    "Order",
    "Plan",
    "PolynomialTrajectory",
    "Pose",
    "Raw",
    "Reference",
    "Rules",
    "SetGroups",
    "Setpoint",
    "Sight",
    "Start",
    "Stop",
    "Supervisor",
    "Takeoff",
    "Trajectory",
    "Velocity",
]
