"""Start the simulator, and ArduPilot for each of its drones.

    ros2 launch crazyflow_ros ardupilot.launch.py n_drones:=2 build:=ardupilot/build/sitl

With `door_drones:=[cf1]` ArduPilot flies some of the drones only. All arguments of `sim.launch.py`
are passed to the simulator.
"""

from __future__ import annotations

from launch import LaunchDescription

from crazyflow_ros.ros.launch_autopilots import LaunchedAutopilot, autopilot_description

ARDUPILOT = LaunchedAutopilot("ardupilot", "build/sitl in ardupilot", 9002, ports=10)
ARGUMENTS = {"speedup": ("", "As in ArduPilot's own launch files: real_time_factor")}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the simulator starts ArduPilot once its ports are open."""
    return autopilot_description(__file__, ARDUPILOT, ARGUMENTS, configure=_speed_up)


def _speed_up(given: dict[str, str]) -> None:
    if given["speedup"]:
        given["real_time_factor"] = given["speedup"]
