"""Drones whose topics and services exist on demand, and what many drones share instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from crazyflow_ros_interfaces.srv import ChangeHeight, CommandDrones
from geometry_msgs.msg import PoseStamped, Transform, Twist
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, numbers, own_domain, time_ns
from sensor_msgs.msg import MultiDOFJointState
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import DeleteEntity, SpawnEntity
from std_srvs.srv import Trigger

from crazyflow_ros.ros.drone_interfaces import DroneInterfaces
from crazyflow_ros.ros.other_nodes import End
from crazyflow_ros.ros.parameters.parameter_groups import Interfaces

DOMAIN = own_domain("test_drone_interfaces")
DRONES = tuple(f"cf{i}" for i in range(3))
ARGUMENTS = [f"drones:=[{','.join(DRONES)}]", "interfaces:=swarm"]


def own_topics(client: Client) -> set[str]:
    """The drones of which the simulator publishes topics of their own."""
    published = client.node.get_publisher_names_and_types_by_node("crazyflow", "/")
    names = [name for name, _ in published]
    return {drone for drone in DRONES if any(name.startswith(f"/{drone}/") for name in names)}


def places(client: Client) -> dict[str, np.ndarray]:
    """Positions of all drones, from one message."""
    states = client.collect(MultiDOFJointState, "crazyflow/odometry")
    client.until(lambda: states, "message with all drones")
    return dict(
        zip(states[-1].joint_names, [numbers(t.translation) for t in states[-1].transforms])
    )


def poses(goals: dict[str, tuple[float, float, float]]) -> MultiDOFJointState:
    message = MultiDOFJointState(joint_names=list(goals))
    for x, y, z in goals.values():
        transform = Transform()
        transform.translation.x, transform.translation.y, transform.translation.z = x, y, z
        message.transforms.append(transform)
    return message


def test_a_drone_gets_topics_and_services_when_somebody_looks_for_it(
    simulator: SimulatorProcess, client: Client
) -> None:
    client.latest(MultiDOFJointState, "crazyflow/odometry")
    client.until(lambda: "crazyflow" in client.node.get_node_names(), "the node in the graph")
    assert own_topics(client) == set()
    assert client.call(Trigger, "cf1/reset").success
    client.until(lambda: own_topics(client) == {"cf1"}, "topics of cf1 alone")


def test_its_topics_tell_of_this_drone(simulator: SimulatorProcess, client: Client) -> None:
    all_drones = client.collect(MultiDOFJointState, "crazyflow/odometry")
    client.until(lambda: all_drones, "message with all drones")
    client.pause(True)
    message: Odometry = client.latest(Odometry, "cf2/odom")
    stamp = time_ns(message.header.stamp)
    client.until(lambda: time_ns(all_drones[-1].header.stamp) == stamp, "message of the same time")
    together = all_drones[-1]
    row = together.joint_names.index("cf2")
    own = numbers(message.pose.pose.position)
    np.testing.assert_array_equal(own, numbers(together.transforms[row].translation))
    assert np.ptp([numbers(t.translation) for t in together.transforms], axis=0).max() >= 1
    client.pause(False)


def test_one_message_commands_many_drones(simulator: SimulatorProcess, client: Client) -> None:
    before = places(client)
    goals = {name: (x, y, 0.4) for name, (x, y, _) in before.items() if name != "cf0"}
    client.publish("crazyflow/drones/cmd_pose", poses(goals))
    client.until(
        lambda: all(abs(places(client)[name][2] - 0.4) < 0.05 for name in goals),
        "drones in the air",
    )
    assert places(client)["cf0"][2] < 0.1


@pytest.mark.parametrize(
    ("names", "count", "reason"),
    [
        ([], 0, "joint_names is empty"),
        (["cf0", "cf_1"], 2, "there is no drone 'cf_1'"),
        (["cf0", "cf0"], 2, "cf0 is there twice"),
        (["cf0", "cf1"], 1, "expected as many twist as joint_names, 2, got 1"),
    ],
)
def test_a_message_that_does_not_fit_is_refused(
    simulator: SimulatorProcess, client: Client, names: list[str], count: int, reason: str
) -> None:
    message = MultiDOFJointState(joint_names=names, twist=[Twist() for _ in range(count)])
    client.publish("crazyflow/drones/cmd_vel", message)
    simulator.wait_for(reason)


def test_what_one_drone_refuses_does_not_keep_the_others(
    simulator: SimulatorProcess, client: Client
) -> None:
    start = places(client)
    message = poses({name: (start[name][0], start[name][1], 0.8) for name in ("cf1", "cf2")})
    message.transforms[0].rotation.w = 0.0
    client.publish("crazyflow/drones/cmd_pose", message)
    client.until(lambda: abs(places(client)["cf2"][2] - 0.8) < 0.05, "cf2 at 0.8 m")
    simulator.wait_for("crazyflow/drones/cmd_pose is ignored: cf1: ")
    simulator.wait_for("; the others are commanded")


def test_services_take_names(simulator: SimulatorProcess, client: Client) -> None:
    for name in ("arm", "notify_setpoints_stop", "reset", "disarm", "emergency"):
        answer = client.call(CommandDrones, f"crazyflow/drones/{name}", drones=["cf1", "cf2"])
        assert answer.success, answer.message
    answer = client.call(
        ChangeHeight, "crazyflow/drones/takeoff", drones=["cf0", "cf2"], height=1.0, duration=2.0
    )
    assert not answer.success
    assert answer.message.startswith("cf2: ")
    assert answer.message.endswith("; the others are commanded")
    assert client.call(Trigger, "crazyflow/reset").success


@pytest.mark.parametrize(
    ("drones", "reason"),
    [([], "drones is empty"), (["cf0", "cf_2"], "did you mean 'cf2'?"), (["cf0"] * 2, "twice")],
)
def test_names_that_do_not_fit_are_refused(
    simulator: SimulatorProcess, client: Client, drones: list[str], reason: str
) -> None:
    for name in ("reset", "delete", "arm"):
        answer = client.call(CommandDrones, f"crazyflow/drones/{name}", drones=drones)
        assert not answer.success
        assert reason in answer.message


def test_who_looks_for_a_drone_that_has_nothing_is_told(
    simulator: SimulatorProcess, client: Client
) -> None:
    assert client.set_parameter("interfaces", "none").successful
    client.until(lambda: not own_topics(client), "no topics of single drones")
    subscription = client.node.create_subscription(PoseStamped, "cf0/pose", print, 1)
    simulator.wait_for("cf0 has no topics and services of its own")
    refused = client.set_parameter("with_interfaces", ["cf_0"])
    assert "there is no drone 'cf_0'" in refused.reason
    assert "did you mean 'cf0'?" in refused.reason
    assert client.set_parameter("with_interfaces", ["cf0"]).successful
    client.until(lambda: client.node.count_publishers("/cf0/pose"), "topics of cf0")
    client.node.destroy_subscription(subscription)
    assert client.set_parameter("with_interfaces", [""]).reason
    assert client.set_parameter("interfaces", "swarm").successful


def test_services_are_back_as_soon_as_the_parameter_is_set(
    simulator: SimulatorProcess, client: Client
) -> None:
    client.call(Trigger, "cf0/reset")
    for _ in range(10):
        for rule in (Interfaces.none, Interfaces.each):
            assert client.set_parameter("interfaces", str(rule)).successful
        answer = client.call(Trigger, "cf0/reset")
        assert answer.success, answer.message


class Swarm:
    """The parts of a node that matter here, and a clock that the test moves."""

    def __init__(self, rule: Interfaces, always: tuple[str, ...] = (), n_drones: int = 40) -> None:
        self.own_drones = tuple(f"cf{i}" for i in range(n_drones))
        self.now, self.cost = 0.0, 0.0
        self.created, self.removed = list[str](), list[str]()
        self._calls: list[Callable[[], None]] = []
        node: Any = self
        self.publishers: list[End] = []
        self.subscriptions: list[End] = []
        self.clients: list[End] = []
        self.other_nodes = self.regular_calls = self.listeners = node
        self.interfaces = DroneInterfaces(node, rule, always, lambda: self.now)
        self.interfaces.for_each(self._create)

    def add(self, call: Callable[[], None]) -> None:
        self._calls.append(call)

    follow = add

    def look(self) -> None:
        """The node looks for subscribers."""

    def resolve_topic_name(self, topic: str) -> str:
        return f"/room/{topic}"

    def _create(self, drone: str) -> None:
        self.created.append(drone)
        self.now += self.cost

    def forget(self, prefix: str) -> None:
        self.removed.append(prefix)

    def remove_entities(self, prefix: str) -> None:
        assert self.removed[-1] == prefix

    def call(self) -> tuple[str, ...]:
        """Make all regular calls; the drones with topics and services afterwards."""
        for call in self._calls:
            call()
        return self.interfaces.drones

    def sought(self, *drones: str) -> list[End]:
        return [End("/pilot", f"/room/{drone}/odom", "nav_msgs/msg/Odometry") for drone in drones]


def test_topics_go_when_nobody_has_looked_for_a_while() -> None:
    node = Swarm(Interfaces.swarm)
    assert node.call() == ()
    node.subscriptions = node.sought("cf7", "dog", "cf3")
    assert node.call() == ("cf3", "cf7")
    node.subscriptions = node.sought("cf7")
    node.now += 29
    assert node.call() == ("cf3", "cf7")
    node.now += 2
    assert node.call() == ("cf7",)
    assert node.removed == ["/room/cf3/"]


def test_names_elsewhere_are_somebody_elses() -> None:
    node = Swarm(Interfaces.swarm)
    node.clients = [End("/pilot", "/cf3/takeoff", ""), End("/pilot", "/room/cf", "")]
    assert node.call() == ()


def test_many_drones_do_not_hold_up_the_callbacks() -> None:
    node = Swarm(Interfaces.swarm)
    node.cost = 0.02
    node.publishers = node.sought(*node.own_drones)
    counts = [len(node.call()) for _ in range(15)]
    assert counts[0] < 5
    assert counts[-1] == 40
    assert sorted(node.created) == sorted(node.own_drones)


def test_each_has_all_at_once_and_none_only_the_named() -> None:
    assert len(Swarm(Interfaces.each).created) == 40
    node = Swarm(Interfaces.none, ("cf5",))
    node.clients = node.sought("cf1")
    assert node.call() == ("cf5",)
    assert node.interfaces.is_without("cf1")
    node.interfaces.rule = Interfaces.swarm
    assert not node.interfaces.is_without("cf1")
    assert node.call() == ("cf1", "cf5")


def test_drones_come_and_go() -> None:
    node = Swarm(Interfaces.none, ("cf5",))
    node.own_drones = ("cf0", "cf1")
    node.interfaces.follow_drones()
    assert node.interfaces.drones == ()
    node.own_drones = ("cf5", "cf0")
    node.interfaces.follow_drones()
    assert node.interfaces.drones == ("cf5",)


def test_a_drone_that_comes_back_while_its_services_refuse_calls_has_them_at_once() -> None:
    node = Swarm(Interfaces.swarm)
    node.clients = node.sought("cf3")
    node.call()
    drones, node.own_drones = node.own_drones, node.own_drones[:3]
    node.interfaces.follow_drones()
    assert node.interfaces.drones == ()
    node.own_drones = drones
    node.interfaces.follow_drones()
    assert node.interfaces.drones == ("cf3",) and node.call() == ("cf3",)


def test_services_are_back_as_soon_as_their_drone_is(
    simulator: SimulatorProcess, client: Client
) -> None:
    for _ in range(5):
        deleted = client.call(DeleteEntity, "crazyflow/delete_entity", entity="cf0")
        assert deleted.result.result == 1, deleted.result.error_message
        model = Resource(uri="cf2x_L250")
        spawned = client.call(
            SpawnEntity, "crazyflow/spawn_entity", name="cf0", entity_resource=model
        )
        assert spawned.result.result == 1, spawned.result.error_message
        answer = client.call(Trigger, "cf0/reset")
        assert answer.success, answer.message


def test_topics_of_a_drone_that_has_gone_go_although_another_one_gets_some_meanwhile() -> None:
    node = Swarm(Interfaces.swarm)
    node.clients = node.sought("cf3")
    assert node.call() == ("cf3",)
    node.own_drones = tuple(drone for drone in node.own_drones if drone != "cf3")
    node.clients = node.sought("cf3", "cf7")
    node.call()
    node.interfaces.follow_drones()
    assert node.interfaces.drones == ("cf7",) and node.removed == ["/room/cf3/"]


def test_an_unknown_drone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"with_interfaces: there is no drone 'cf99x'.* 'cf9'"):
        Swarm(Interfaces.none, ("cf99x",))


def test_one_request_removes_many_drones(client: Client) -> None:
    answer = client.call(CommandDrones, "crazyflow/drones/delete", drones=["cf1", "cf2"])
    assert answer.success, answer.message
    states = client.collect(MultiDOFJointState, "crazyflow/odometry")
    client.until(lambda: states and states[-1].joint_names == ["cf0"], "the drone that is left")
