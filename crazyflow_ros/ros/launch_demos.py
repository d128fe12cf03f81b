"""Demos: a launch file of ours, and commands that follow once all controllers run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import yaml
from launch import Action, LaunchContext, LaunchDescription
from launch.actions import (
    ExecuteProcess,
    IncludeLaunchDescription,
    RegisterEventHandler,
    Shutdown,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_nodes import described


def demo(
    file: str,
    included: str,
    arguments: dict[str, str],
    commands: Sequence[Action],
    n_spawners: int = 1,
) -> LaunchDescription:
    """Return the description of a demo.

    Args:
        file: Path of the launch file.
        included: Name of the launch file of ours that starts simulator and controllers.
        arguments: What it is included with; the user may give the others.
        commands: What is started once all spawners have ended.
        n_spawners: Their number.
    """
    left = n_spawners

    def exited(event: ProcessExited, context: LaunchContext) -> Sequence[Action]:
        nonlocal left
        if context.is_shutdown:
            return []
        if event.returncode:
            return [Shutdown(reason="controllers could not be started")]
        left -= 1
        return [] if left else commands

    source = PythonLaunchDescriptionSource(str(resource("launch", f"{included}.launch.py")))
    return described(
        file,
        [
            RegisterEventHandler(OnProcessExit(target_action=_is_spawner, on_exit=exited)),
            IncludeLaunchDescription(source, launch_arguments=arguments.items()),
        ],
    )


def _is_spawner(action: Action) -> bool:
    return isinstance(action, Node) and action.node_executable == "spawner"


def publish(
    topic: str, kind: str, content: dict[str, Any], times: int = 1, rate: float = 1.0
) -> Action:
    """Return the command `ros2 topic pub`, which waits for a subscriber.

    Args:
        topic: Name of the topic.
        kind: Type of the message.
        content: Its fields.
        times: How often it is sent; 0 goes on until the end.
        rate: Messages per second.
    """
    often = ["-r", str(rate), *(["-t", str(times)] if times else [])]
    text = yaml.safe_dump(content, default_flow_style=True, width=math.inf)
    return ExecuteProcess(cmd=["ros2", "topic", "pub", "-w", "1", *often, topic, kind, text])


def send_to(drone: str, place: Sequence[float], controller: str = "") -> Action:
    """Return the command that sends a drone of the controller `position` to a place [m]."""
    content = {"dof_names": [f"{drone}_{axis}" for axis in "xyz"], "values": list(place)}
    topic = f"/{controller or f'{drone}_position'}/reference"
    # The first message of a new publisher may be lost.
    return publish(topic, "control_msgs/msg/MultiDOFCommand", content, times=3)


def later(seconds: float, *commands: Action) -> Action:
    """Return commands that follow after some time [s]."""
    return TimerAction(period=seconds, actions=commands)


def trajectory(
    joints: Sequence[str], path: Callable[[float], Sequence[float]], duration: float, start: float
) -> dict[str, Any]:
    """Return a JointTrajectory along a path, with ten points a second.

    Args:
        joints: Names of the joints.
        path: Returns their positions at a time [s] from its beginning.
        duration: Length of the path [s].
        start: Time until it begins, in which the joints move there [s].
    """
    points = []
    for i in range(round(10 * duration) + 1):
        # It rests at both ends: its own time, u, begins and ends slowly.
        share = i / 10 / duration
        u, rate = duration * share**2 * (3 - 2 * share), 6 * share * (1 - share)
        now, before, after = (path(x) for x in (u, u - 1e-3, u + 1e-3))
        points.append(
            {
                "positions": [round(x, 4) for x in now],
                "velocities": [round(rate * (b - a) / 2e-3, 4) for a, b in zip(before, after)],
                "time_from_start": _duration(start + i / 10),
            }
        )
    return {"joint_names": list(joints), "points": points}


def _duration(seconds: float) -> dict[str, int]:
    whole = int(seconds)
    return {"sec": whole, "nanosec": round((seconds - whole) * 1e9)}
