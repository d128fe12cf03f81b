"""The flight commander: takeoff, landing, bounded courses, flight states, crashes. No ROS.

A command to a drone is a `Setpoint`. Checkpoints and recordings store the setpoints that this
package exports, by name.
"""

from crazyflow_ros.flight.attitude_setpoints import AttitudeThrust, LevelOut
from crazyflow_ros.flight.firmware_setpoints import FirmwareSetpoint
from crazyflow_ros.flight.high_level import FlyTrajectory, GoTo, Land, Spiral, Takeoff
from crazyflow_ros.flight.plan import FlightConfig, FlightState
from crazyflow_ros.flight.polynomial_trajectory import PolynomialTrajectory
from crazyflow_ros.flight.pose_and_velocity import Goal, Pose, Velocity
from crazyflow_ros.flight.raw import Raw
from crazyflow_ros.flight.setpoint import Brake, Setpoint
from crazyflow_ros.flight.stop_and_arm import (
    Arm,
    Emergency,
    HighLevelStop,
    NotifySetpointsStop,
    NullSetpoint,
    Recover,
    SetGroups,
    Stop,
    SwitchOff,
)
from crazyflow_ros.flight.streamed import (
    AltitudeHold,
    FullState,
    HoldHeight,
    Hover,
    HoverOn,
    Position,
    VelocityWorld,
)
from crazyflow_ros.flight.supervisor import FlightEvent
from crazyflow_ros.flight.trajectory import Trajectory

__all__ = [
    "AltitudeHold",
    "Arm",
    "AttitudeThrust",
    "Brake",
    "Emergency",
    "FirmwareSetpoint",
    "FlightConfig",
    "FlightEvent",
    "FlightState",
    "FlyTrajectory",
    "FullState",
    "GoTo",
    "Goal",
    "HighLevelStop",
    "HoldHeight",
    "Hover",
    "HoverOn",
    "Land",
    "LevelOut",
    "NotifySetpointsStop",
    "NullSetpoint",
    "PolynomialTrajectory",
    "Pose",
    "Position",
    "Raw",
    "Recover",
    "SetGroups",
    "Setpoint",
    "Spiral",
    "Stop",
    "SwitchOff",
    "Takeoff",
    "Trajectory",
    "Velocity",
    "VelocityWorld",
]

MODULES = (
    "commander",
    "course",
    "firmware_setpoints",
    "plan",
    "polynomial_trajectory",
    "streamed",
)
"""Modules that extensions may import, with all their public names."""
