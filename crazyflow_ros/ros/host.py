"""What the features of a node may use of it.

A feature is a function that takes a `Host`, and adds topics, services or whatever else it offers.
Those of other packages are entry points of the group `crazyflow_ros.features`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from rclpy.node import Node
from rclpy.qos import QoSProfile

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.drone_interfaces import DroneInterfaces
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.other_nodes import OtherNodes
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.regular_calls import RegularCalls
from crazyflow_ros.ros.service_answers import Answers, Waiting
from crazyflow_ros.runtime import PhysicsThread
from crazyflow_ros.runtime.worker import Worker

S = TypeVar("S")


class Host(Protocol):
    """A node with a running simulation, as its features see it.

    Its functions are called in the executor's thread, which must not wait.

    Attributes:
        physics: The running simulation.
        parameters: Parameter values at the start.
        owns: Whether this simulator commands a drone; others may own some.
        drones: Names of the drones for which there are rows in the messages of all drones.
        interfaces: Knows which of them have topics and services of their own.
        log: Logger, which says the same thing only now and then.
        guard: Guard of all callbacks.
        answers: Retries service responses until they are delivered.
        waiting: Lets a service callback that is a coroutine wait for another thread:
            `await host.waiting.result(future)`.
        worker: Thread for tasks that would block the executor, one after another.
        regular_calls: Calls functions at intervals of wall time.
        listeners: Creates publishers, and knows which topics have subscribers.
        other_nodes: Knows what other nodes publish and call.
        on_quit: Ends the process.
    """

    @property
    def node(self) -> Node:
        """The node of rclpy, for its parameters, for actions and for the ROS graph."""

    physics: PhysicsThread
    parameters: Parameters
    owns: Callable[[str], bool]
    drones: tuple[str, ...]
    interfaces: DroneInterfaces
    log: ThrottledLogger
    guard: CallbackGuard
    answers: Answers
    waiting: Waiting
    worker: Worker
    regular_calls: RegularCalls
    listeners: Listeners
    other_nodes: OtherNodes
    on_quit: Callable[[], None]

    def create_publisher(
        self,
        msg_type: Any,
        topic: str,
        qos_profile: QoSProfile | int,
        *,
        recorded: bool = True,
        **options: Any,
    ) -> Any:
        """Create a publisher; messages are recorded with the others, unless told otherwise."""

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Any,
        qos_profile: QoSProfile | int,
        **options: Any,
    ) -> Any:
        """Create a subscription whose callback may raise ValueError to refuse a message."""

    def create_service(
        self,
        srv_type: Any,
        srv_name: str,
        callback: Any,
        *,
        callback_group: Any = None,
        **options: Any,
    ) -> Any:
        """Create a service.

        Its callback, which may be a coroutine, fills in the response, returns the text of a
        success, or raises an exception whose text refuses the request.
        """

    def create_timer(
        self, timer_period_sec: float, callback: Any, *args: Any, **options: Any
    ) -> Any:
        """Call a function at a period of wall time [s]; its exceptions are logged."""

    def settings(self, cls: type[S], name: str) -> S:
        """Declare parameters of a feature, `<name>.<field>`, and read them.

        Args:
            cls: A dataclass whose fields are `name: Annotated[type, Spec(...)] = default`.
            name: Name of the feature, as of its entry point.

        Raises:
            ParameterError: A value is not allowed.
        """

    def for_each_drone(self, add: Callable[[str], None]) -> None:
        """Call a function for each drone with topics and services of its own, now and later.

        It adds those of a feature; they are removed with the drone, or when nobody uses them.
        """

    def for_all_drones(self, add: Callable[[], None]) -> None:
        """Call a function now and whenever `drones` has changed, for messages with a row each."""

    def follow_drones(self) -> None:
        """Adapt topics and services to the present drones at once, not at the next regular call."""

    def on_close(self, close: Callable[[], None]) -> None:
        """Call a function at the end, once time stands still."""

    def on_destroy(self, end: Callable[[], None]) -> None:
        """Call a function before the publishers are destroyed, for threads that publish."""

    def resolve_topic_name(self, topic: str) -> str:
        """Return the full name of a topic."""

    def resolve_service_name(self, service: str) -> str:
        """Return the full name of a service."""

    def get_parameter(self, name: str) -> Any:
        """Return the present value of a parameter, as of `rclpy.node.Node`."""

    def get_fully_qualified_name(self) -> str:
        """Return the name of the node with its namespace."""
