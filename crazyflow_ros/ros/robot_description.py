"""URDF of the drones: <drone>/robot_description for RViz and robot_state_publisher.

With ros2_control the URDF includes the hardware: <drone>/robot_description is for a controller
manager in the drone's namespace, ~/robot_description for one manager of all drones that it flies
and of the robots in the world, robots/robot_description for a manager of these in the namespace
robots.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from std_msgs.msg import String

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.description.robots import joined, read_robots
from crazyflow_ros.description.ros2_control import Hardware
from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.controllers.topic_hardware import COMMANDS_TOPIC, STATES_TOPIC
from crazyflow_ros.ros.topics.state_topics import LATCHED_QOS
from crazyflow_ros.runtime import Door

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


NAME = "__name__"
"""Placeholder for the name of a drone, whose name never has two underscores in a row."""


def declare(simulator: Host, door: Door | None) -> None:
    """Add the latched topics and publish them; the URDF has the hardware behind a door."""
    model = simulator.parameters.drone_model
    hardware, parameters = _hardware(simulator, door)
    by_door = simulator.parameters.by_door
    plain = urdf(model, NAME)
    if hardware is Hardware.none:
        describe_each(simulator, lambda _: plain, NAME)
        return
    carried = door.carried if isinstance(door, SharedMemoryLink) else None
    sensors = carried.components if carried else lambda _: ()
    text = urdf(model, by_door, hardware, parameters, sensors)
    if robots := simulator.parameters.ros2_control.robots:
        try:
            alone = read_robots(resolved(robots), parameters)
        except (ValueError, OSError) as error:
            raise ParameterError("ros2_control.robots", str(error)) from None
        text = joined(text, alone)
        publisher = simulator.create_publisher(String, "robots/robot_description", LATCHED_QOS)
        publisher.publish(String(data=alone))
    publisher = simulator.create_publisher(String, "~/robot_description", LATCHED_QOS)
    publisher.publish(String(data=text))
    with_hardware = "" if carried else urdf(model, NAME, hardware, parameters)

    def described(drone: str) -> str:
        if drone not in by_door:
            return plain
        return with_hardware or urdf(model, drone, hardware, parameters, sensors)

    describe_each(simulator, described, NAME)


def describe_each(simulator: Host, description: Callable[[str], str], name: str) -> None:
    """Add <drone>/robot_description.

    Args:
        simulator: The node.
        description: Returns the URDF of a drone; making it takes several milliseconds.
        name: Replaces the name of the drone.
    """

    def add(drone: str) -> None:
        publisher = simulator.create_publisher(String, f"{drone}/robot_description", LATCHED_QOS)
        publisher.publish(String(data=description(drone).replace(name, drone)))

    simulator.for_each_drone(add)


def resolved(robots: str) -> Path:
    """Return the path of a URDF file, given its path or its name in urdf_mjcf."""
    if "/" not in robots:
        with suppress(FileNotFoundError):
            return resource("urdf_mjcf", f"{robots}.urdf")
    return Path(robots).expanduser()


def _hardware(simulator: Host, door: Door | None) -> tuple[Hardware, dict[str, str]]:
    match door:
        case SharedMemoryLink(memory_name=name):
            return Hardware.native, {"shared_memory": name}
        case TopicSource():
            return Hardware.topic, {
                "joint_commands_topic": simulator.resolve_topic_name(COMMANDS_TOPIC),
                "joint_states_topic": simulator.resolve_topic_name(STATES_TOPIC),
            }
    return Hardware.none, {}
