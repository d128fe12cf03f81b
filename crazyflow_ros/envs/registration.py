"""Entry points for `gymnasium.make_vec`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from crazyflow_ros.envs.tasks import FigureEight, Landing, Reach
from crazyflow_ros.envs.vector import QuadrotorVectorEnv

TASKS: dict[str, type[Reach | FigureEight | Landing]] = {
    task.__name__: task for task in (Reach, FigureEight, Landing)
}


def make(num_envs: int, kind: str, **options: Any) -> QuadrotorVectorEnv:
    """Return an environment with a given kind of task.

    Args:
        num_envs: Number of worlds.
        kind: Name of the task's class.
        **options: Fields of the task, or the `task`; and arguments of `QuadrotorVectorEnv`.

    Raises:
        ValueError: An option is out of range, or the task is of another kind.
    """
    own = {f.name: options.pop(f.name) for f in fields(TASKS[kind]) if f.name in options}
    task = options.pop("task", None)
    if task is None:
        task = TASKS[kind](**own)
    elif own or not isinstance(task, TASKS[kind]):
        other = f" and {sorted(own)}" if own else ""
        raise ValueError(f"task must be a {kind}, or its fields: got {task!r}{other}")
    return QuadrotorVectorEnv(num_envs, task, **options)
