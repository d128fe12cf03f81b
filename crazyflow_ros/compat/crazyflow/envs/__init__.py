"""Crazyflow's environments for Gymnasium, with arrays of JAX and its ids without a prefix."""

import sys
from typing import Any

import gymnasium

from crazyflow_ros.compat.crazyflow.envs import tasks
from crazyflow_ros.compat.crazyflow.envs.norm_actions_wrapper import NormalizeActions
from crazyflow_ros.compat.crazyflow.envs.tasks import (
    FigureEightEnv,
    LandingEnv,
    ReachPosEnv,
    ReachVelEnv,
)

__all__ = ["FigureEightEnv", "LandingEnv", "NormalizeActions", "ReachPosEnv", "ReachVelEnv"]

_ENVIRONMENTS: dict[str, Any] = {
    "DroneReachPos-v0": ReachPosEnv,
    "DroneReachVel-v0": ReachVelEnv,
    "DroneLanding-v0": LandingEnv,
    "DroneFigureEightTrajectory-v0": FigureEightEnv,
}
for _id, _env in _ENVIRONMENTS.items():
    gymnasium.register(id=_id, vector_entry_point=_env)

# Crazyflow's names of the modules of the environments.
for _name in ("reach_pos_env", "reach_vel_env", "landing_env", "figure_8_env"):
    sys.modules[f"{__name__}.{_name}"] = tasks
