"""Start the simulator, and PX4 for each of its drones.

    ros2 launch crazyflow_ros px4.launch.py n_drones:=2 build:=PX4-Autopilot/build/px4_sitl_default

With `door_drones:=[cf1]` PX4 flies some of the drones only. All arguments of `sim.launch.py` are
passed to the simulator.
"""

from __future__ import annotations

import shutil

from launch import Action, LaunchDescription
from launch.actions import ExecuteProcess

from crazyflow_ros.ros.launch_autopilots import LaunchedAutopilot, autopilot_description
from crazyflow_ros.ros.launch_support import flag

PX4 = LaunchedAutopilot("px4", "build/px4_sitl_default in PX4-Autopilot", 4560)
AGENT = "MicroXRCEAgent"
ARGUMENTS = {"agent": ("false", f"true or false: also start {AGENT}, for PX4's topics in ROS")}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the simulator starts PX4 once its ports are open."""
    return autopilot_description(__file__, PX4, ARGUMENTS, start=_agent)


def _agent(given: dict[str, str]) -> list[Action]:
    if not flag(given, "agent"):
        return []
    if shutil.which(AGENT) is None:
        raise RuntimeError(
            f"agent: there is no {AGENT}; build it from eProsima/Micro-XRCE-DDS-Agent"
        )
    return [ExecuteProcess(cmd=[AGENT, "udp4", "-p", "8888"], output="screen")]
