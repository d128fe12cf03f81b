"""The environments by name, for `gymnasium.make` and `gymnasium.make_vec`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import gymnasium

from crazyflow_ros.envs.carry import Carry
from crazyflow_ros.envs.gates import Race
from crazyflow_ros.envs.recovery import Recovery
from crazyflow_ros.envs.single import QuadrotorEnv
from crazyflow_ros.envs.task import Task
from crazyflow_ros.envs.tasks import FigureEight, Hover, Landing, Reach, Velocity
from crazyflow_ros.envs.vector import QuadrotorVectorEnv

_KINDS = (Hover, Reach, Velocity, Landing, FigureEight, Recovery, Race, Carry)
TASKS: dict[str, type[Any]] = {task.__name__: task for task in _KINDS}

_OF_CRAZYFLOW = {
    "DroneReachPos": "ReachPosEnv",
    "DroneReachVel": "ReachVelEnv",
    "DroneLanding": "LandingEnv",
    "DroneFigureEightTrajectory": "FigureEightEnv",
}
"""Environments of an extension, which is imported when one of them is made."""


def register() -> None:
    """Register an environment for each kind of task with Gymnasium, and those of Crazyflow."""
    for name, env in _OF_CRAZYFLOW.items():
        entry_point = f"crazyflow_ros.compat.crazyflow.envs:{env}"
        gymnasium.register(id=f"crazyflow_ros/{name}-v0", vector_entry_point=entry_point)
    for kind in TASKS:
        gymnasium.register(
            id=f"crazyflow_ros/{kind}-v0",
            entry_point="crazyflow_ros.envs.registration:make_one",
            vector_entry_point="crazyflow_ros.envs.registration:make",
            kwargs={"kind": kind},
        )


def make(num_envs: int, kind: str, **options: Any) -> QuadrotorVectorEnv:
    """Return an environment with a kind of task.

    Args:
        num_envs: Number of worlds.
        kind: Name of the task's class.
        **options: Fields of the task, or the `task`, and arguments of `QuadrotorVectorEnv`.

    Raises:
        ValueError: An option is out of range, or the task is of another kind.
    """
    return QuadrotorVectorEnv(num_envs, _task_of(kind, options), **options)


def make_one(kind: str, **options: Any) -> QuadrotorEnv:
    """Return an environment of one world; see `make`."""
    return QuadrotorEnv(_task_of(kind, options), **options)


def _task_of(kind: str, options: dict[str, Any]) -> Task:
    """Remove the fields of the task from the options, and return the task.

    Raises:
        ValueError: One is out of range, or the task is of another kind.
    """
    names = [f.name for f in fields(TASKS[kind])]
    own = {name: options.pop(name) for name in names if name in options}
    task = options.pop("task", None)
    if task is None:
        task = TASKS[kind](**own)
    elif own or not isinstance(task, TASKS[kind]):
        other = f" and {sorted(own)}" if own else ""
        raise ValueError(f"task must be a {kind}, or its fields: got {task!r}{other}")
    return task
