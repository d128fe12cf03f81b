"""The features of the node `crazyflow`, in the order in which the physics thread serves them.

The clock comes first, then stamped messages. A feature returns what others need. One whose message
package is missing is off, with a warning.
"""

from __future__ import annotations

from functools import partial

from crazyflow_ros.ros import crazyflie_link, robot_description, silent_mistakes, viewer
from crazyflow_ros.ros.commands import command_topics, swarm_commands
from crazyflow_ros.ros.controllers import gamepad, topic_hardware
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.equipment import Equipment
from crazyflow_ros.ros.external_features import add_external_features
from crazyflow_ros.ros.host import Host
from crazyflow_ros.ros.message_packages import if_installed, is_on
from crazyflow_ros.ros.sensors import sensor_threads
from crazyflow_ros.ros.services import checkpoint, time_control, wind
from crazyflow_ros.ros.topics import clock, display, plan, reset_event, scene, states, status
from crazyflow_ros.ros.topics.state_topics import StateTopics

with if_installed("tf"):
    from crazyflow_ros.ros.topics import tf
with if_installed("flight_services"):
    from crazyflow_ros.ros.commands import flight_services
with if_installed("disturbances"):
    from crazyflow_ros.ros.services import disturbances
with if_installed("named_drones"):
    from crazyflow_ros.ros.services import named_drones
with if_installed("mujoco_ros2_control"):
    from crazyflow_ros.ros.services import mujoco_ros2_control
with if_installed("simulation_interfaces"):
    from crazyflow_ros.ros import simulation_interfaces
with if_installed("topic_sensors"):
    from crazyflow_ros.ros.controllers import topic_sensors


def add_features(host: Host, equipment: Equipment) -> None:
    """Add all features of the node."""
    door, sensors = equipment.door, equipment.sensors
    clock.declare(host)
    topics = StateTopics(host)
    if is_on("tf", host.log):
        host.for_all_drones(partial(tf.declare, host, topics, sensors))
    states.declare(host, topics)
    display.declare(host)
    robot_description.declare(host, door)
    add_reports(host, equipment)
    command_topics.declare(host, equipment.record_command)
    swarm_commands.declare(host, equipment.record_command)
    if is_on("flight_services", host.log):
        flight_services.declare(host)
    crazyflie_link.declare(host)
    add_control(host, equipment)
    add_external_features(host)


def add_reports(host: Host, equipment: Equipment) -> None:
    """Add topics about the simulation."""
    recorder = equipment.recorder
    status.declare(host, equipment.door, recorder.status if recorder else None)
    reset_event.declare(host)
    scene.declare(host)
    plan.declare(host, is_recorded=recorder is not None)


def add_control(host: Host, equipment: Equipment) -> None:
    """Add sensors, services that control the simulation, and topics through which others fly."""
    door = equipment.door
    sensor_threads.declare(host, equipment.sensors)
    time_control.declare(host)
    if is_on("disturbances", host.log):
        disturbances.declare(host)
    if is_on("named_drones", host.log):
        named_drones.declare(host)
    checkpoint.declare(host, wind.declare(host))
    world = (
        simulation_interfaces.declare(host) if is_on("simulation_interfaces", host.log) else None
    )
    if is_on("mujoco_ros2_control", host.log):
        mujoco_ros2_control.declare(host, world.put_keyframe if world else None)
    viewer.declare(host)
    silent_mistakes.declare(host)
    gamepad.declare(host, door)
    if isinstance(door, TopicSource):
        topic_hardware.declare(host, door)
        if is_on("topic_sensors", host.log):
            topic_sensors.declare(host, door)
