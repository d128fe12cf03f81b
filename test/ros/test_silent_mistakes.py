"""What ROS itself does not report: publishers and clients that are connected to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rclpy
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from ros_client import LATCHED, TIMEOUT, own_domain
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.messages.serialisation import type_name
from crazyflow_ros.ros.other_nodes import OtherNodes
from crazyflow_ros.ros.regular_calls import RegularCalls
from crazyflow_ros.ros.silent_mistakes import SilentMistakes

DOMAIN = own_domain("test_silent_mistakes")
PATIENT = 3.0  # s
KINDS = (PoseStamped, SetBool, String, Trigger, Twist, TwistStamped)


class Simulator(Node):
    """Has some topics and services, and a clock that the test moves."""

    def __init__(self, context: rclpy.Context) -> None:
        super().__init__("sim", context=context, start_parameter_services=False)
        self.now, self.warnings = 0.0, list[str]()
        self.log = self.node = self
        self.warning = self.warnings.append
        self.regular_calls = RegularCalls(CallbackGuard(self.get_logger()))
        self.drones: tuple[str, ...] = ()
        self.interfaces = self  # all drones have topics and services of their own
        self.owner = lambda name: name.split("/")[1] if name.split("/")[1] in self.drones else ""
        self.have("cf0", "cf1")
        self.create_service(Trigger, "~/save", lambda request, response: response)
        self.other_nodes: Any = OtherNodes(self, self.regular_calls)  # type: ignore[arg-type]
        SilentMistakes(self, lambda: self.now)  # type: ignore[arg-type]

    def have(self, *drones: str) -> None:
        for drone in [drone for drone in drones if drone not in self.drones]:
            self.create_subscription(TwistStamped, f"{drone}/cmd_vel", print, 1)
            self.create_subscription(PoseStamped, f"{drone}/cmd_pose", print, 1)
            self.create_service(Trigger, f"{drone}/reset", lambda request, response: response)
        self.drones = drones

    def look(self, seconds: float = PATIENT) -> list[str]:
        """New warnings after a while."""
        before = len(self.warnings)
        self.other_nodes.look()
        self.now += seconds
        self.other_nodes.look()
        return self.warnings[before:]


class Graph:
    """A simulator, and a node of another process that it discovers."""

    def __init__(self, own: rclpy.Context, others: rclpy.Context) -> None:
        self.simulator = Simulator(own)
        self.other = Node("pilot", context=others, namespace="/a")
        self._executor = SingleThreadedExecutor(context=own)
        self._executor.add_node(self.simulator)

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            self.simulator.other_nodes.look()
            if condition():
                return
            self._executor.spin_once(timeout_sec=0.02)
        raise TimeoutError(f"not within {TIMEOUT} s")

    def publishes(self, kind: Any, topic: str) -> Any:
        publisher = self.other.create_publisher(kind, topic, 1)
        self.until(lambda: (topic, kind) in self.ends("publishers"))
        return publisher

    def calls(self, kind: Any, service: str) -> Any:
        client = self.other.create_client(kind, service)
        self.until(lambda: (service, kind) in self.ends("clients"))
        return client

    def ends(self, what: str) -> list[tuple[str, Any]]:
        """What the simulator has discovered."""
        found = getattr(self.simulator.other_nodes, what)
        kinds = {type_name(kind): kind for kind in KINDS}
        return [(end.name, kinds.get(end.kind)) for end in found]


@pytest.fixture
def graph() -> Iterator[Graph]:
    contexts = rclpy.Context(), rclpy.Context()
    for context in contexts:
        context.init(domain_id=DOMAIN)
    yield Graph(*contexts)
    for context in contexts:
        context.try_shutdown()


@pytest.mark.parametrize(
    ("topic", "kind", "meant"),
    [
        ("/cf0/cmd_psoe", PoseStamped, "/cf0/cmd_pose?"),
        ("/cmd_vel", Twist, "/cf0/cmd_vel? The drones are cf0, cf1."),
    ],
)
def test_a_publisher_on_a_misspelt_topic_is_told_once(
    graph: Graph, topic: str, kind: Any, meant: str
) -> None:
    publisher = graph.publishes(kind, topic)
    assert graph.simulator.look(1.0) == []  # its subscriber may be about to start
    told = f"nobody listens on {topic}, where /a/pilot publishes; did you mean {meant}"
    assert graph.simulator.look() == [told]
    assert graph.simulator.look(1000.0) == []
    graph.other.destroy_publisher(publisher)
    graph.until(lambda: (topic, kind) not in graph.ends("publishers"))
    graph.publishes(kind, topic)
    assert graph.simulator.look() == [told]  # it has been tried again


def test_clients_of_misspelt_services_are_told(graph: Graph) -> None:
    meant = {"/cf1/rest": "/cf1/reset?", "/sim/saves": "/sim/save?", "/cf2/reset": "/cf0/reset?"}
    for service in meant:
        graph.calls(Trigger, service)
    all_told = graph.simulator.look()
    assert len(all_told) == len(meant)
    for service in meant:
        (told,) = (one for one in all_told if f"no service {service}" in one)
        assert "/a/pilot" in told and f"mean {meant[service]}" in told


def test_a_wrong_type_is_told_with_the_right_one(graph: Graph) -> None:
    graph.publishes(Twist, "/cf1/cmd_pose")
    graph.calls(SetBool, "/cf0/reset")
    topic, service = sorted(graph.simulator.look(), reverse=True)
    assert topic.startswith("/cf1/cmd_pose: /a/pilot publishes geometry_msgs/msg/Twist")
    assert topic.endswith("takes geometry_msgs/msg/PoseStamped")
    assert service.startswith("/cf0/reset: /a/pilot") and service.endswith("std_srvs/srv/Trigger")


def test_qualities_of_service_that_do_not_fit_are_told_once(graph: Graph) -> None:
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    graph.simulator.create_publisher(String, "/cf0/notes", 1)
    graph.other.create_publisher(PoseStamped, "/cf1/cmd_pose", best_effort)
    graph.other.create_subscription(String, "/cf0/notes", print, LATCHED)
    graph.until(lambda: ("/cf1/cmd_pose", PoseStamped) in graph.ends("publishers"))
    graph.until(lambda: ("/cf0/notes", String) in graph.ends("subscriptions"))
    notes, command = sorted(graph.simulator.look())
    assert notes.startswith("/cf0/notes: /a/pilot receives nothing from here")
    assert notes.endswith("VOLATILE of the publisher, TRANSIENT_LOCAL of the subscription")
    assert command.startswith("/cf1/cmd_pose: nothing that /a/pilot publishes arrives here")
    assert command.endswith("BEST_EFFORT of the publisher, RELIABLE of the subscription")
    assert graph.simulator.look(1000.0) == []


def test_what_is_right_and_what_is_theirs_is_not_told(graph: Graph) -> None:
    graph.simulator.create_publisher(String, "/cf1/notes", 1)
    graph.other.create_subscription(String, "/cf1/notes", print, qos_profile_sensor_data)
    graph.publishes(TwistStamped, "/cf0/cmd_vel")
    graph.publishes(Twist, "/cf1/cmd_vel")  # a second node listens to it
    graph.publishes(Twist, "/turtle1/cmd_vel")
    graph.publishes(String, "/cf0/notes")
    graph.calls(Trigger, "/cf0/reset")
    graph.calls(Trigger, "/arm/reset")
    assert graph.simulator.look() == []


def test_what_somebody_else_receives_is_not_told(graph: Graph) -> None:
    for topic, kind in (("/cf7/cmd_vel", Twist), ("/cf1/cmd_pose", Twist)):
        graph.publishes(kind, topic)
        graph.other.create_subscription(kind, topic, print, 1)
    graph.until(lambda: graph.simulator.count_subscribers("/cf1/cmd_pose") == 2)
    graph.until(lambda: graph.simulator.count_subscribers("/cf7/cmd_vel"))
    assert graph.simulator.look() == []


def test_a_drone_that_comes_later_makes_a_name_right_and_one_that_goes_makes_it_wrong(
    graph: Graph,
) -> None:
    graph.publishes(TwistStamped, "/cf2/cmd_vel")
    graph.simulator.look(1.0)
    graph.simulator.have("cf0", "cf1", "cf2")
    assert graph.simulator.look() == []
    for each in list(graph.simulator.subscriptions):
        if each.topic_name.startswith("/cf2/"):
            graph.simulator.destroy_subscription(each)
    graph.simulator.have("cf0", "cf1")
    graph.until(lambda: not graph.simulator.count_subscribers("/cf2/cmd_vel"))
    (told,) = graph.simulator.look()
    assert "/cf2/cmd_vel" in told


def test_many_topics_of_its_own_cost_nothing(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what other nodes have is read: all topics of the graph would take milliseconds."""
    read: list[str] = []
    original = Node.get_publisher_names_and_types_by_node

    def note(node: Node, name: str, namespace: str, **options: Any) -> Any:
        read.append(name)
        return original(node, name, namespace, **options)

    monkeypatch.setattr(Node, "get_publisher_names_and_types_by_node", note)
    for forbidden in ("get_topic_names_and_types", "get_service_names_and_types"):
        monkeypatch.setattr(Node, forbidden, lambda *_: pytest.fail("it read all names"))
    graph.publishes(String, "/x")
    assert graph.simulator.look() == [] and set(read) == {"pilot"}
