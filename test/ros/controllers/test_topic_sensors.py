"""Topics for the sensors of ros2_control's topic plugins, as drones lose theirs and get them back.

No process and no discovery: there is a listener to each topic, as long as it exists.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from physics_double import Handle, Physics
from rclpy.logging import get_logger

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.drone_interfaces import DroneInterfaces
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.parameters.parameter_groups import Interfaces, Ros2Control
from crazyflow_ros.ros.regular_calls import RegularCalls

pytest.importorskip("pal_statistics_msgs.msg", reason="pal_statistics_msgs is not installed")
from crazyflow_ros.ros.controllers.topic_sensors import SensorTopics

DRONES = ("cf0", "Wasp")
SHARED = {"/cf0_sensors", "/wasp_sensors"}
OWN = {"/cf0/cf0_sensors", "/Wasp/wasp_sensors"}


class Simulator:
    """The parts of a node that matter here."""

    def __init__(self) -> None:
        self.existing, self.sent = set[str](), set[str]()
        self.own_drones = DRONES
        self.parameters = Parameters(drones=DRONES, ros2_control=Ros2Control(mode="topic"))
        node: Any = self
        self.other_nodes: Any = SimpleNamespace(follow=id)
        self.regular_calls = RegularCalls(CallbackGuard(get_logger("test")))
        self.listeners = Listeners(node, self.regular_calls, lambda: False)
        self.interfaces = DroneInterfaces(node, Interfaces.each)
        self.for_each_drone = self.interfaces.for_each
        self._outputs = list[Any]()
        door: Any = SimpleNamespace(add_output=self._outputs.append)
        SensorTopics(node, door)
        self.listeners.look()

    def resolve_topic_name(self, topic: str, *, only_expand: bool = False) -> str:
        del only_expand
        return f"/{topic}"

    def create_publisher(self, kind: Any, topic: str, qos: Any, **_: Any) -> Any:
        self.existing.add(name := f"/{topic}")

        def send(_: Any) -> None:
            assert name in self.existing, f"{name} has been destroyed"
            self.sent.add(name)

        return SimpleNamespace(
            topic_name=name,
            publish=send,
            handle=Handle(send),
            get_subscription_count=lambda: int(name in self.existing),
        )

    def get_subscriptions_info_by_topic(self, topic: str) -> list[Any]:
        return []

    def remove_entities(self, prefix: str) -> None:
        self.existing = {name for name in self.existing if not name.startswith(prefix)}

    def apply(self, rule: Interfaces) -> None:
        self.interfaces.rule = rule
        self.interfaces.adapt()

    def told(self) -> set[str]:
        """Topics on which names and values of sensors are sent, in a while."""
        self.sent.clear()
        physics = Physics()
        physics.use(list(DRONES))
        mirror: Any = SimpleNamespace(range=lambda names: np.zeros(len(names)))
        (publish,) = self._outputs
        publish(physics.snapshot, mirror, np.zeros(len(DRONES)))
        for _ in range(10):
            self.regular_calls.make()
        return self.sent


def both(nodes: set[str]) -> set[str]:
    return {f"{node}/{what}" for node in nodes for what in ("names", "values")}


def test_the_sensors_of_a_drone_come_back_with_its_topics() -> None:
    simulator = Simulator()
    assert simulator.told() == both(SHARED | OWN)
    simulator.apply(Interfaces.none)
    assert simulator.told() == both(SHARED)
    simulator.apply(Interfaces.each)
    assert simulator.told() == both(SHARED | OWN)
