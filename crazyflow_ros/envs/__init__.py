"""Environments of quadrotors, as pure functions and for Gymnasium; requires the extra `gym`."""

from crazyflow_ros.envs import registration
from crazyflow_ros.envs.carry import Carry
from crazyflow_ros.envs.environment import Environment, Timestep
from crazyflow_ros.envs.environment_options import Autoreset, Configuration, Ending
from crazyflow_ros.envs.events import gust, lose_rotor
from crazyflow_ros.envs.eyes import EyeErrors
from crazyflow_ros.envs.gates import Race
from crazyflow_ros.envs.recovery import Recovery
from crazyflow_ros.envs.single import QuadrotorEnv
from crazyflow_ros.envs.task import CourseTask, Flight, FurnishedTask, Start, Task, Verdict
from crazyflow_ros.envs.tasks import FigureEight, Hover, Landing, Reach, Velocity
from crazyflow_ros.envs.terms import (
    CurriculumTerm,
    EventTerm,
    ObservationTerm,
    RewardTerm,
    TerminationTerm,
    Terms,
    TermTask,
    action_rate,
    effort,
    length,
    nearest,
    neighbours,
    on_floor,
    spin,
    tilt,
)
from crazyflow_ros.envs.vector import QuadrotorVectorEnv

__all__ = [
    "Autoreset",
    "Carry",
    "Configuration",
    "CourseTask",
    "CurriculumTerm",
    "Ending",
    "Environment",
    "EventTerm",
    "EyeErrors",
    "FigureEight",
    "Flight",
    "FurnishedTask",
    "Hover",
    "Landing",
    "ObservationTerm",
    "QuadrotorEnv",
    "QuadrotorVectorEnv",
    "Race",
    "Reach",
    "Recovery",
    "RewardTerm",
    "Start",
    "Task",
    "TermTask",
    "TerminationTerm",
    "Terms",
    "Timestep",
    "Velocity",
    "Verdict",
    "action_rate",
    "effort",
    "gust",
    "length",
    "lose_rotor",
    "nearest",
    "neighbours",
    "on_floor",
    "spin",
    "tilt",
]

registration.register()
