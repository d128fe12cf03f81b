"""The `<ros2_control>` blocks of a drone: its hardware component, for the controller manager."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.description.interfaces import AXES, BODY, GOAL, SENSORS, Component, rotors
from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.scene.drone_mjcf import max_rotor_speed


class Hardware(StrEnum):
    """How the controller manager communicates with the simulator."""

    native = "native"
    """Through our plugin and shared memory: all interfaces, and lock-step."""
    topic = "topic"
    """Through stock plugins and topics: commands of rotor speeds, and all states."""
    none = "none"
    """No communication: a description for RViz."""


PARAMETERS = {
    Hardware.native: {
        "shared_memory": "crazyflow",
        "timeout_ms": "1000",
    },
    Hardware.topic: {
        "joint_commands_topic": "/robot_joint_commands",
        "joint_states_topic": "/robot_joint_states",
        # Otherwise the plugin does not send commands that equal the present rotor speeds, and a
        # drone that is held while its rotors turn never resumes its flight.
        "trigger_joint_command_threshold": "-1",
    },
    Hardware.none: dict[str, str](),
}
"""Parameters of the hardware component of the rotors, with their defaults."""


def sensors_component(drone: str) -> str:
    """Return the name of a drone's second component, with `Hardware.topic`."""
    return f"{drone}_sensors"


def blocks(
    drone_model: str,
    drone: str,
    hardware: str,
    parameters: Mapping[str, str] | None = None,
    carried: Sequence[Component] = (),
) -> list[ET.Element]:
    """Return the `<ros2_control>` elements of a drone.

    Args:
        drone_model: Name of the drone model, which gives the limits.
        drone: Name of the drone, and of its hardware component.
        hardware: A member of `Hardware`.
        parameters: Parameters of the hardware component that replace the defaults in `PARAMETERS`.
        carried: Further sensors behind the native hardware; they replace others of their names.

    Raises:
        ValueError: There is no such hardware, or it has no such parameter.
    """
    if hardware not in list(Hardware):
        raise ValueError(unknown("hardware", hardware, Hardware))
    defaults, given = PARAMETERS[Hardware(hardware)], dict(parameters or {})
    others = ", ".join(sorted(given.keys() - defaults.keys()))
    if others:
        known = ", ".join(defaults) or "none"
        raise ValueError(f"hardware {hardware} has no parameter {others}; it has {known}")
    values = {**defaults, **given}
    limits, joints = _limits(drone_model), rotors(len(rotors_of(drone_model)))
    match hardware:
        case Hardware.native:
            ideal = [c for c in SENSORS if c.suffix not in {own.suffix for own in carried}]
            everything = (*joints, *ideal, *AXES, BODY, GOAL, *carried)
            return [
                _block(drone, drone, "crazyflow_ros/CrazyflowSystem", values, everything, limits)
            ]
        case Hardware.topic:
            rotor_plugin = "joint_state_topic_hardware_interface/JointStateTopicSystem"
            sensors = "cm_topic_hardware_component/CMTopicSystem"
            read_only = [Component(c.kind, c.suffix, c.states) for c in (*SENSORS, *AXES, BODY)]
            return [
                _block(drone, drone, rotor_plugin, values, joints, limits),
                _block(drone, sensors_component(drone), sensors, {}, read_only, limits),
            ]
        case _:
            return []


def most_commanded(drone_model: str) -> dict[str, str]:
    """Return the largest command by name of the interface: velocity [rad/s] and thrust [N]."""
    figures = load_drone(drone_model)
    most = {"velocity": max_rotor_speed(figures), "thrust": 4 * figures["thrust_max"]}
    return {name: f"{value:.12g}" for name, value in most.items()}  # others differ by processor


def _limits(drone_model: str) -> dict[str, tuple[str, str]]:
    """Return the smallest and largest command, by name of the interface."""
    most = most_commanded(drone_model)
    # With a smallest speed of 0 the controller manager would allow only 0: both directions have it.
    least = {"velocity": f"-{most['velocity']}", "thrust": "0.0"}
    return {name: (least[name], most[name]) for name in most}


def _block(
    drone: str,
    name: str,
    plugin: str,
    parameters: Mapping[str, str],
    components: Iterable[Component],
    limits: Mapping[str, tuple[str, str]],
) -> ET.Element:
    block = ET.Element("ros2_control", name=name, type="system")
    hardware = ET.SubElement(block, "hardware")
    ET.SubElement(hardware, "plugin").text = plugin
    for key, value in parameters.items():
        ET.SubElement(hardware, "param", name=key).text = value
    for component in components:
        element = ET.SubElement(block, component.kind, name=component.name(drone))
        for command in component.commands:
            interface = ET.SubElement(element, "command_interface", name=command)
            for bound, value in zip(("min", "max"), limits.get(command, ())):
                ET.SubElement(interface, "param", name=bound).text = value
        for state in component.states:
            ET.SubElement(element, "state_interface", name=state)
    return block
