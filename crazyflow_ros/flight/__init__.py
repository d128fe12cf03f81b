"""The flight commander: takeoff, landing, bounded courses, flight states, crashes. No ROS."""

from crazyflow_ros.flight.commander import Commander, Flight, Order
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.high_level import FlyTrajectory, GoTo, Land, Spiral, Takeoff
from crazyflow_ros.flight.plan import Advice, FlightConfig, FlightState, Plan, Rules, Start
from crazyflow_ros.flight.polynomial_trajectory import PolynomialTrajectory
from crazyflow_ros.flight.pose_and_velocity import Goal, Pose, Velocity
from crazyflow_ros.flight.raw import Raw
from crazyflow_ros.flight.setpoint import Brake, Setpoint
from crazyflow_ros.flight.stop_and_arm import (
    Arm,
    Emergency,
    NotifySetpointsStop,
    Recover,
    SetGroups,
    Stop,
    SwitchOff,
)
from crazyflow_ros.flight.streamed import (
    AltitudeHold,
    AttitudeThrust,
    FullState,
    HoldHeight,
    Hover,
    HoverOn,
    LevelOut,
    Position,
    VelocityWorld,
)
from crazyflow_ros.flight.supervisor import Ability, FlightEvent, Observation, Supervisor
from crazyflow_ros.flight.trajectory import Trajectory

__all__ = [
    "Ability",
    "Advice",
    "AltitudeHold",
    "Arm",
    "AttitudeThrust",
    "Brake",
    "Commander",
    "Course",
    "Emergency",
    "Envelope",
    "Flight",
    "FlightConfig",
    "FlightEvent",
    "FlightState",
    "FlyTrajectory",
    "FullState",
    "GoTo",
    "Goal",
    "HoldHeight",
    "Hover",
    "HoverOn",
    "Land",
    "LevelOut",
    "NotifySetpointsStop",
    "Observation",
    "Order",
    "Plan",
    "PolynomialTrajectory",
    "Pose",
    "Position",
    "Raw",
    "Recover",
    "Reference",
    "Rules",
    "SetGroups",
    "Setpoint",
    "Spiral",
    "Start",
    "Stop",
    "Supervisor",
    "SwitchOff",
    "Takeoff",
    "Trajectory",
    "Velocity",
    "VelocityWorld",
]
