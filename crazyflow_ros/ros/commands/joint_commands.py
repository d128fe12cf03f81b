"""~/world/joint_commands: commands of robots in the world, in the type of ~/world/joint_states.

Each array commands the joints in `name`; one that is empty commands none, nor does a NaN.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from sensor_msgs.msg import JointState

from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.ros.commands.command_topics import COMMAND_QOS
from crazyflow_ros.runtime import Door

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

TOPIC = "~/world/joint_commands"
_ARRAYS = ("position", "velocity", "effort")


def declare(simulator: Host, door: Door | None) -> None:
    """Subscribe; joints that ros2_control commands, or has until a reset, obey it alone."""
    command = partial(_command, simulator, door)
    simulator.create_subscription(JointState, TOPIC, command, COMMAND_QOS)


def _command(simulator: Host, door: Door | None, message: JointState) -> None:
    names, commands = message.name, dict[str, dict[str, float]]()
    if len(set(names)) < len(names) or not names:
        raise ValueError("name has to have each joint once, and at least one")
    if isinstance(door, SharedMemoryLink) and (taken := door.commanded_joints.intersection(names)):
        raise ValueError(f"ros2_control commands {', '.join(sorted(taken))}")
    for array in _ARRAYS:
        values = getattr(message, array)
        if len(values) not in (0, len(names)):
            expected = f"as many as names, {len(names)}, or none"
            raise ValueError(f"{array}: expected {expected}, got {len(values)}")
        pairs = zip(names, values)
        commands[array] = {name: value for name, value in pairs if not math.isnan(value)}
    simulator.physics.robots.command_joints(**commands)
