"""A Gymnasium vector environment of quadrotors; requires the extra `gym`."""

import gymnasium

from crazyflow_ros.envs.environment import Environment, Timestep
from crazyflow_ros.envs.registration import TASKS
from crazyflow_ros.envs.tasks import FigureEight, Landing, Reach, Task
from crazyflow_ros.envs.vector import QuadrotorVectorEnv

__all__ = [
    "Environment",
    "FigureEight",
    "Landing",
    "QuadrotorVectorEnv",
    "Reach",
    "Task",
    "Timestep",
]

for _kind in TASKS:
    gymnasium.register(
        id=f"crazyflow_ros/{_kind}-v0",
        vector_entry_point="crazyflow_ros.envs.registration:make",
        kwargs={"kind": _kind},
    )
