"""A double of ros2_control's topic plugins, for tests.

It has the hardware components of a robot description and runs them as a controller manager does,
once per message on /clock. They behave as `JointStateTopicSystem` and `CMTopicSystem` do:

- commands are NaN at first, and are published in every cycle in which the sum of all differences
  between states and commands is not at most a threshold, which with NaN is always;
- a joint state with a field that the joint does not declare, or one that is too short, ends the
  component; NaN entries and other joints are skipped;
- values count once their names are known, the version is not 0, and the interface is declared.
"""

from __future__ import annotations

import math
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

import rclpy
from pal_statistics_msgs.msg import StatisticsNames, StatisticsValues
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

PREFIX = "state_interface."


class Component:
    """What all hardware components have."""

    def __init__(self, block: ET.Element, context: Context, namespace: str) -> None:
        self.node = Node(
            block.get("name", "").lower(),
            namespace=namespace,
            context=context,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self.parameters = {p.get("name"): p.text for p in block.findall("hardware/param")}
        self.joints = [joint.get("name", "") for joint in block.findall("joint")]
        self.states = dict.fromkeys(self._interfaces(block, "state"), math.nan)
        self.commands = dict.fromkeys(self._interfaces(block, "command"), math.nan)
        self.published = 0
        self.error: Exception | None = None

    @staticmethod
    def _interfaces(block: ET.Element, kind: str) -> list[str]:
        return [
            f"{component.get('name')}/{interface.get('name')}"
            for component in block
            for interface in component.findall(f"{kind}_interface")
        ]

    def cycle(self, time: Clock) -> None:
        if self.error is None:
            try:
                self.read()
                self.write(time)
            except (KeyError, IndexError) as error:
                self.error = error

    def read(self) -> None:
        raise NotImplementedError

    def write(self, time: Clock) -> None:
        pass


class JointStateTopicSystem(Component):
    def __init__(self, block: ET.Element, context: Context, namespace: str) -> None:
        super().__init__(block, context, namespace)
        self.latest = JointState()
        self.threshold = float(self.parameters.get("trigger_joint_command_threshold") or 1e-5)
        commands = self.parameters.get("joint_commands_topic") or "/robot_joint_commands"
        states = self.parameters.get("joint_states_topic") or "/robot_joint_states"
        self.publisher = self.node.create_publisher(JointState, commands, QoSProfile(depth=1))
        self.node.create_subscription(JointState, states, self.receive, qos_profile_sensor_data)

    def receive(self, message: JointState) -> None:
        self.latest = message

    def read(self) -> None:
        for i, name in enumerate(self.latest.name):
            if name not in self.joints:
                continue
            for field in ("position", "velocity", "effort"):
                values = getattr(self.latest, field)
                if len(values) and math.isfinite(values[i]):
                    interface = f"{name}/{field}"
                    if interface not in self.states:
                        raise KeyError(interface)
                    self.states[interface] = values[i]

    def write(self, time: Clock) -> None:
        difference = sum(abs(self.states[name] - value) for name, value in self.commands.items())
        if difference <= self.threshold:
            return
        message = JointState(name=self.joints)
        message.header.stamp = time.clock
        for field in ("position", "velocity", "effort"):
            values = [v for name, v in self.commands.items() if name.endswith(f"/{field}")]
            setattr(message, field, values)
        self.publisher.publish(message)
        self.published += 1


class CMTopicSystem(Component):
    def __init__(self, block: ET.Element, context: Context, namespace: str) -> None:
        super().__init__(block, context, namespace)
        self.names: dict[int, Sequence[str]] = {}
        self.latest = StatisticsValues()
        qos = qos_profile_sensor_data
        self.node.create_subscription(StatisticsNames, "~/names", self.receive_names, qos)
        self.node.create_subscription(StatisticsValues, "~/values", self.receive_values, qos)

    def receive_names(self, message: StatisticsNames) -> None:
        self.names[message.names_version] = message.names

    def receive_values(self, message: StatisticsValues) -> None:
        self.latest = message

    def read(self) -> None:
        names = self.names.get(self.latest.names_version, ())
        for name, value in zip(names, self.latest.values):
            if name.startswith(PREFIX) and name.removeprefix(PREFIX) in self.states:
                self.states[name.removeprefix(PREFIX)] = value


class Manager:
    """Runs the components of a robot description, in a ROS context and a thread of its own."""

    def __init__(self, domain: int, description: str, namespace: str = "") -> None:
        self._lock = threading.Lock()
        self._context = Context()
        rclpy.init(
            context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO
        )
        kinds = {kind.__name__: kind for kind in (JointStateTopicSystem, CMTopicSystem)}
        self._components: dict[str, Component] = {}
        for block in ET.fromstring(description).findall("ros2_control"):
            kind = (block.findtext("hardware/plugin") or "").rpartition("/")[2]
            self._components[block.get("name", "")] = kinds[kind](block, self._context, namespace)
        self.cycles, self._closing = 0, False
        node = Node("controller_manager_double", context=self._context, enable_rosout=False)
        node.create_subscription(Clock, "/clock", self._cycle, 1)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._nodes = [node, *(component.node for component in self._components.values())]
        for node in self._nodes:
            self._executor.add_node(node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    @property
    def states(self) -> dict[str, float]:
        """Values of all state interfaces."""
        with self._lock:
            return {k: v for c in self._components.values() for k, v in c.states.items()}

    @property
    def errors(self) -> dict[str, str]:
        """What ended components."""
        return {k: repr(c.error) for k, c in self._components.items() if c.error is not None}

    def published(self, component: str) -> int:
        """Messages with commands so far."""
        return self._components[component].published

    def command(self, component: str, speeds: Iterable[float]) -> None:
        """What a controller does: command the joints of a component."""
        with self._lock:
            commands = self._components[component].commands
            commands.update(zip(commands, speeds, strict=True))

    def _spin(self) -> None:
        while not self._closing:
            self._executor.spin_once(timeout_sec=0.1)

    def _cycle(self, message: Clock) -> None:
        with self._lock:
            self.cycles += 1
            for component in self._components.values():
                component.cycle(message)

    def close(self) -> None:
        """End, as a manager does that is told to."""
        if self._closing:
            return
        self._closing = True
        self._thread.join(10.0)
        self._executor.shutdown()
        for node in self._nodes:
            node.destroy_node()
        rclpy.shutdown(context=self._context)
