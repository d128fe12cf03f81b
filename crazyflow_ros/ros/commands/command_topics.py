"""Command topics of the drones, from <drone>/cmd_pose to <drone>/wrench."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import rclpy
from geometry_msgs.msg import Twist, TwistStamped, WrenchStamped
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from crazyflow_ros.flight import Setpoint
from crazyflow_ros.ros.commands.setpoint_messages import VELOCITY, WRENCH, Command, commands
from crazyflow_ros.ros.messages.serialisation import type_name
from crazyflow_ros.ros.other_nodes import TWIN

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

RecordCommand = Callable[[str, str, Any, Setpoint], None]
"""Takes the drone, the topic, a message and its setpoint, before the setpoint is posted."""

COMMAND_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Only the latest command matters."""
TWIST = type_name(Twist)
"""Its name in the ROS graph."""
_END_TIMEOUT = 5.0  # s


class CommandTopics:
    """Subscriptions that pass commands to the physics thread; invalid commands change nothing."""

    def __init__(self, simulator: Host, record: RecordCommand | None) -> None:
        self._simulator, self._physics, self._record = simulator, simulator.physics, record
        self._commands = commands(self._physics.control, simulator.parameters.drone_model)
        simulator.for_each_drone(self._add_drone)
        simulator.on_close(TwistTopics(simulator, self._twist).close)

    def _add_drone(self, drone: str) -> None:
        subscribe = self._simulator.create_subscription
        for command in self._commands.values():
            receive = partial(self._command, command, drone)
            subscribe(command.type, f"{drone}/{command.topic}", receive, COMMAND_QOS)
        push = partial(self._push, drone)
        subscribe(WRENCH.type, f"{drone}/{WRENCH.topic}", push, COMMAND_QOS)

    def _command(self, command: Command, drone: str, message: Any) -> None:
        setpoint = command.convert(message, drone)
        if self._record is not None:
            self._record(drone, command.topic, message, setpoint)
        self._physics.command(drone, setpoint)

    def _twist(self, drone: str, message: Twist) -> None:
        self._command(VELOCITY, drone, TwistStamped(twist=message))

    def _push(self, drone: str, message: WrenchStamped) -> None:
        wrench = WRENCH.convert(message, drone)
        self._physics.apply_wrench(drone, wrench, key=("topic", drone))


class TwistTopics:
    """Subscribes to Twist on cmd_vel, besides TwistStamped, where another node publishes it.

    Programs for teleoperation publish either, but a node can subscribe to a topic with one type
    only. A second node therefore subscribes to Twist as soon as a publisher of it is discovered.

    Args:
        simulator: The node that subscribes to TwistStamped.
        receive: Callback with the name of a drone and a Twist.
    """

    def __init__(self, simulator: Host, receive: Callable[[str, Twist], None]) -> None:
        self._simulator, self._receive = simulator, receive
        self._listener: _Listener | None = None
        self._subscriptions: dict[str, Any] = {}
        simulator.other_nodes.follow(self._look)

    def close(self) -> None:
        """Stop the second node."""
        if self._listener is not None:
            self._listener.close()

    def _look(self) -> None:
        simulator = self._simulator
        topics = {
            simulator.resolve_topic_name(f"{name}/{VELOCITY.topic}"): name
            for name in simulator.interfaces.drones
        }
        for topic in self._subscriptions.keys() - topics.keys():
            assert self._listener is not None
            self._listener.node.destroy_subscription(self._subscriptions.pop(topic))
        for end in simulator.other_nodes.publishers:
            if end.kind == TWIST and end.name in topics and end.name not in self._subscriptions:
                self._listen(end.name, topics[end.name])

    def _listen(self, topic: str, drone: str) -> None:
        if self._listener is None:
            self._listener = _Listener(self._simulator)
        receive = partial(self._receive, drone)
        guarded = self._simulator.guard.on_message(receive, Twist, topic)
        node = self._listener.node
        self._subscriptions[topic] = node.create_subscription(
            Twist, topic, guarded, COMMAND_QOS, raw=True
        )


class _Listener:
    def __init__(self, simulator: Host) -> None:
        self._context = Context()
        rclpy.init(args=[], context=self._context, domain_id=simulator.node.context.get_domain_id())
        self.node = Node(
            f"{simulator.node.get_name()}{TWIN}",
            namespace=simulator.node.get_namespace(),
            context=self._context,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name="twist", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._executor.shutdown(_END_TIMEOUT)
        self._context.try_shutdown()
        self._thread.join(_END_TIMEOUT)
        self.node.destroy_node()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()
