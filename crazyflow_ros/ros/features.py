"""The features of the node `crazyflow`, in the order in which the physics thread serves them.

The clock comes first, then stamped messages. A feature is a function or a class that takes the node
and what else it needs. One whose message package is missing is off, with a warning.
"""

from __future__ import annotations

from functools import partial

from crazyflow_ros.ros import mujoco_viewer, robot_description
from crazyflow_ros.ros.commands import joint_commands
from crazyflow_ros.ros.commands.command_topics import CommandTopics
from crazyflow_ros.ros.commands.swarm_commands import SwarmCommands
from crazyflow_ros.ros.controllers.opened_door import add_gamepad
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.equipment import Equipment
from crazyflow_ros.ros.extensions import add_external_features
from crazyflow_ros.ros.host import Host
from crazyflow_ros.ros.optional_features import if_installed, is_on
from crazyflow_ros.ros.services.checkpoint_services import CheckpointServices
from crazyflow_ros.ros.services.time_services import TimeControlServices
from crazyflow_ros.ros.services.wind_parameters import WindParameters
from crazyflow_ros.ros.silent_mistakes import SilentMistakes
from crazyflow_ros.ros.topics import drone_states
from crazyflow_ros.ros.topics.clock import ClockTopic
from crazyflow_ros.ros.topics.diagnostics import ResetEventTopic, StatusTopic
from crazyflow_ros.ros.topics.display import DisplayTopics, PlanTopics, SceneTopic, SpawnedTopic
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.ros.topics.world_states import WorldTopics

with if_installed("tf"):
    from crazyflow_ros.ros.topics import tf
with if_installed("flight_services"):
    from crazyflow_ros.ros.commands.flight_services import FlightServices
with if_installed("disturbances"):
    from crazyflow_ros.ros.services.disturbance_services import DisturbanceServices
with if_installed("holding"):
    from crazyflow_ros.ros.services.holding_services import HoldingServices
with if_installed("contacts"):
    from crazyflow_ros.ros.topics.contacts import ContactsTopic
with if_installed("named_drones"):
    from crazyflow_ros.ros.services.named_drones import NamedDrones
with if_installed("mujoco_ros2_control"):
    from crazyflow_ros.ros.services.mujoco_ros2_control import MujocoServices
with if_installed("simulation_interfaces"):
    from crazyflow_ros.ros import simulation_interfaces


def add_features(host: Host, equipment: Equipment) -> None:
    """Add all features of the node."""
    door, sensors = equipment.door, equipment.sensors
    ClockTopic(host)
    topics = StateTopics(host)
    if is_on("tf", host.log):
        host.for_all_drones(partial(tf.declare, host, topics, sensors))
    drone_states.declare(host, topics)
    robot_description.declare(host, door)
    add_reports(host, equipment)
    CommandTopics(host, equipment.record_command)
    SwarmCommands(host, equipment.record_command)
    joint_commands.declare(host, door)
    if is_on("flight_services", host.log):
        FlightServices(host)
    for extension in equipment.extensions:
        extension.add(host)
    add_control(host, equipment)
    add_external_features(host)


def add_reports(host: Host, equipment: Equipment) -> None:
    """Add topics about the simulation."""
    recorder = equipment.recorder
    StatusTopic(host, equipment.door, recorder.status if recorder else None)
    ResetEventTopic(host)
    SceneTopic(host)
    SpawnedTopic(host)
    WorldTopics(host, DisplayTopics(host))
    if is_on("contacts", host.log):
        ContactsTopic(host)
    PlanTopics(host, is_recorded=recorder is not None)


def add_control(host: Host, equipment: Equipment) -> None:
    """Add sensors, services that control the simulation, and topics to fly drones through."""
    door = equipment.door
    if equipment.sensors:
        from crazyflow_ros.ros.sensors import sensor_threads

        sensor_threads.declare(host, equipment.sensors)
    TimeControlServices(host)
    if is_on("disturbances", host.log):
        DisturbanceServices(host)
    if is_on("holding", host.log):
        HoldingServices(host)
    if is_on("named_drones", host.log):
        NamedDrones(host)
    CheckpointServices(host, WindParameters(host))
    world = (
        simulation_interfaces.declare(host) if is_on("simulation_interfaces", host.log) else None
    )
    if is_on("mujoco_ros2_control", host.log):
        MujocoServices(host, world.put_keyframe if world else None)
    mujoco_viewer.declare(host)
    SilentMistakes(host)
    add_gamepad(host, door)
    if isinstance(door, TopicSource):
        add_topic_hardware(host, door)


def add_topic_hardware(host: Host, door: TopicSource) -> None:
    """Add the topics of stock plugins of ros2_control, which few simulators have."""
    from crazyflow_ros.ros.controllers import topic_hardware

    with if_installed("topic_sensors"):
        from crazyflow_ros.ros.controllers import topic_sensors
    topic_hardware.declare(host, door)
    if is_on("topic_sensors", host.log):
        topic_sensors.SensorTopics(host, door)
