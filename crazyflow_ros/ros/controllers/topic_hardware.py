"""Rotors for the stock ros2_control plugin `JointStateTopicSystem`.

Behaviour of the plugin, and how this module handles it:

- It publishes NaN at the full rate until the first command: until then the drone is held.
- It may stop publishing while the state equals the command: the last command stays active, and a
  drone counts as lost only when the publisher disappears.
- Its hardware fails if a joint has a field that the robot description does not declare, or if a
  field is shorter than the names: all three fields are declared and complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from crazyflow_ros.description.interfaces import rotors
from crazyflow_ros.lockstep.states import StateInterfaces
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.messages.cdr import layout
from crazyflow_ros.ros.messages.numeric_message import elements
from crazyflow_ros.ros.messages.outbox import Row, SerialisedMessages
from crazyflow_ros.ros.messages.times import nanoseconds
from crazyflow_ros.ros.topics.state_topics import STATE_QOS

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

COMMANDS_TOPIC, STATES_TOPIC = "robot_joint_commands", "robot_joint_states"
_LOOK_PERIOD = 0.1  # s of wall time between two checks for publishers


class RobotJointCommands:
    """Subscription to robot_joint_commands: any number of plugins, with joints of any drones."""

    def __init__(self, simulator: Host, source: TopicSource) -> None:
        self._source, self._simulator = source, simulator
        self._drones = simulator.parameters.by_door
        joints = rotors(simulator.physics.commands.rules.n_rotors)
        self._n_rotors = len(joints)
        self._places = {
            rotor.name(drone): (i, j)
            for i, drone in enumerate(self._drones)
            for j, rotor in enumerate(joints)
        }
        self._present = set[str]()  # publishing nodes at the last check
        # Each drone may have its own publisher, and all may publish at once.
        depth = max(10, 2 * len(self._drones))
        qos = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        simulator.create_subscription(JointState, COMMANDS_TOPIC, self._receive, qos)
        simulator.regular_calls.add(self._look, _LOOK_PERIOD)

    def _receive(self, message: JointState) -> None:
        speeds: dict[int, np.ndarray] = {}
        for name, speed in zip(message.name, message.velocity):
            place = self._places.get(name)
            if place is not None:
                speeds.setdefault(place[0], np.full(self._n_rotors, np.nan))[place[1]] = speed
        if len(message.velocity) != len(message.name):
            # Fields are packed, so speeds cannot be assigned to joints.
            what = f"message with {len(message.velocity)} velocities for {len(message.name)} joints"
            why = "each joint needs one"
            for drone in {self._places[name][0] for name in message.name if name in self._places}:
                self._source.refuse(drone, what, why)
            return
        if not speeds:
            self._simulator.node.get_logger().warning(
                f"{COMMANDS_TOPIC}: there is no rotor of a drone among {', '.join(message.name)}",
                once=True,
            )
        stamp = nanoseconds(message.header.stamp)
        for drone, values in speeds.items():
            self._source.put(drone, values, stamp)

    def _look(self) -> None:
        """Mark drones whose publisher has disappeared as lost.

        A message does not name its sender. The plugin's node has the name of the hardware component
        in lower case, and our description names the component after the drone. Drones of components
        with other names count as lost when the last publisher disappears.
        """
        infos = self._simulator.node.get_publishers_info_by_topic(COMMANDS_TOPIC)
        present = {info.node_name for info in infos}
        gone, self._present = self._present - present, present
        for i, drone in enumerate(self._drones):
            if drone.lower() in gone or (gone and not present):
                self._source.lose(i)


def declare(simulator: Host, door: TopicSource) -> None:
    """Subscribe to robot_joint_commands, and publish the same rotors on robot_joint_states."""
    RobotJointCommands(simulator, door)
    states = StateInterfaces(simulator.parameters.drone_model)
    joints = rotors(simulator.physics.commands.rules.n_rotors)
    names = [rotor.name(drone) for drone in simulator.parameters.by_door for rotor in joints]
    zeros = [0.0] * len(names)
    prototype = JointState(name=names, position=zeros, velocity=zeros, effort=zeros)
    paths = [elements(field, len(names)) for field in joints[0].states]
    publisher = simulator.create_publisher(JointState, STATES_TOPIC, STATE_QOS)
    row = Row(SerialisedMessages(layout([prototype], paths)), [(0, publisher)])
    door.add_output(lambda now, *_: row.send(now.time_ns, states.rotors(now)))
