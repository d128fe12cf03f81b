"""Environments of quadrotors, as pure functions and for Gymnasium; requires the extra `gym`."""

from crazyflow_ros.envs import crazyflow, registration
from crazyflow_ros.envs.carry import Carry
from crazyflow_ros.envs.crazyflow import (
    DroneEnv,
    FigureEightEnv,
    LandingEnv,
    NormalizeActions,
    ReachPosEnv,
    ReachVelEnv,
)
from crazyflow_ros.envs.environment import Environment, Timestep
from crazyflow_ros.envs.environment_options import Autoreset, Configuration
from crazyflow_ros.envs.eyes import EyeErrors
from crazyflow_ros.envs.gates import Race
from crazyflow_ros.envs.recovery import Recovery
from crazyflow_ros.envs.single import QuadrotorEnv
from crazyflow_ros.envs.tasks import (
    CourseTask,
    FigureEight,
    Flight,
    FurnishedTask,
    Hover,
    Landing,
    Reach,
    Start,
    Task,
    Velocity,
    Verdict,
)
from crazyflow_ros.envs.vector import QuadrotorVectorEnv

__all__ = [
    "Autoreset",
    "Carry",
    "Configuration",
    "CourseTask",
    "DroneEnv",
    "Environment",
    "EyeErrors",
    "FigureEight",
    "FigureEightEnv",
    "Flight",
    "FurnishedTask",
    "Hover",
    "Landing",
    "LandingEnv",
    "NormalizeActions",
    "QuadrotorEnv",
    "QuadrotorVectorEnv",
    "Race",
    "Reach",
    "ReachPosEnv",
    "ReachVelEnv",
    "Recovery",
    "Start",
    "Task",
    "Timestep",
    "Velocity",
    "Verdict",
]

registration.register()
crazyflow.register("crazyflow_ros/")
