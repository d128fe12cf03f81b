"""The running simulation: a thread that advances the drones in step with wall time. No ROS."""

from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import (
    BatteryCharge,
    Disturbance,
    MotorEfficiency,
    Wind,
)
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.engine.snapshot import DroneState, Snapshot
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.door import Door, DoorStatus, OnLoss
from crazyflow_ros.runtime.extension import Extension
from crazyflow_ros.runtime.health import Failure, Statistics
from crazyflow_ros.runtime.news import Setting
from crazyflow_ros.runtime.physics_thread import PhysicsThread
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.resets import DroneLives, Life, ResetEvent, ResetScope
from crazyflow_ros.runtime.steps import StepAborted, Steps
from crazyflow_ros.runtime.wrenches import TimedWrench

__all__ = [
    "BatteryCharge",
    "Checkpoint",
    "Disturbance",
    "Door",
    "DoorStatus",
    "DroneLives",
    "DroneState",
    "Extension",
    "Failure",
    "InvalidState",
    "Level",
    "Life",
    "MotorEfficiency",
    "OnLoss",
    "PhysicsThread",
    "ResetEvent",
    "ResetScope",
    "Setting",
    "SimulationConfig",
    "Snapshot",
    "Statistics",
    "StepAborted",
    "Steps",
    "TimedWrench",
    "Wind",
]

MODULES = (
    "checkpoint_content",
    "door_commands",
    "door_patience",
    "door_settings",
    "drone_commands",
    "mirror_inputs",
    "requests",
    "state_changes",
    "steps",
    "wrenches",
)
"""Modules that extensions may import, with all their public names."""
