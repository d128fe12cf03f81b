"""crazyswarm2's server and drones whose topics and services go and come back. No process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy
import yaml
from crazyswarm import configuration
from rclpy.parameter import Parameter
from ros_client import own_domain

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.crazyflie.parameters import CrazyflieParameters
from crazyflow_ros.crazyswarm.crazyflie_server import NODE, read
from crazyflow_ros.crazyswarm.drone_parameters import FirmwareParameters
from crazyflow_ros.crazyswarm.log_configuration import LogTopic
from crazyflow_ros.crazyswarm.log_topics import LogTopics
from crazyflow_ros.crazyswarm.swarm_configuration import SwarmConfiguration
from crazyflow_ros.ros.drone_interfaces import DroneInterfaces
from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.parameters.parameter_groups import Interfaces
from crazyflow_ros.runtime import ResetEvent, ResetScope

GIVEN = {"led.bitmask": 3, "ring.effect": 9}
"""By the configuration and by a parameter."""
SET = {"led.bitmask": 128, "ring.effect": 4, "ring.headlightEnable": 1, "locSrv.extPosStdDev": 0.5}
"""Later, by users."""


class Server(GuardedNode):
    """A node with one Crazyflie, as its features see both."""

    def __init__(self) -> None:
        super().__init__("server")
        node: Any = self
        self.node, self.host, self.fleet, self.interfaces = node, node, node, node
        self.own_drones = self.drones = ("cf1",)
        self.other_nodes = SimpleNamespace(
            follow=id, publishers=[], subscriptions=[], clients=[], look=id
        )
        self.listeners = Listeners(node, self.regular_calls, node.other_nodes)
        self.interfaces = DroneInterfaces(node, Interfaces.each)
        self.for_each_drone = self.interfaces.for_each
        self.resets: list[Callable[[ResetEvent], None]] = []
        news = SimpleNamespace(on_reset=self.resets.append)
        self.physics = SimpleNamespace(news=news, every=lambda *_, **__: None, freq=500)
        content = configuration("cf1")
        content["all"]["firmware_params"]["led"] = {"bitmask": GIVEN["led.bitmask"]}
        self.swarm = SwarmConfiguration(content)
        self.reports: list[str] = []
        self.on_change: list[Callable[[str, str, bool], None]] = []
        self.switch_on()

    def switch_on(self) -> None:
        """Replace the Crazyflie by another one."""
        self.parameters = CrazyflieParameters(
            {}, lambda *_: None, self.reports.append, partial(self._changed, "cf1")
        )

    def _changed(self, *what: Any) -> None:
        for tell in self.on_change:
            tell(*what)

    def firmware(self, drone: str) -> Any:
        if drone != "cf1":
            raise ValueError(drone)
        return self

    def report(self, drone: str, text: str) -> None:
        self.reports.append(f"{drone}: {text}")

    def leave(self) -> None:
        """Take topics and services from the drone."""
        self.interfaces.rule = Interfaces.none
        self.interfaces.adapt()

    def come_back(self) -> None:
        """Give them back."""
        self.interfaces.rule = Interfaces.each
        self.interfaces.adapt()

    def shown(self) -> dict[str, Any]:
        """Return what the node shows of the Crazyflie's parameters."""
        self.regular_calls.make()
        return {name: p.value for name, p in self.get_parameters_by_prefix("cf1.params").items()}

    def held(self) -> dict[str, Any]:
        """Return the Crazyflie's own parameters."""
        return {e.full_name: self.parameters.get(e.full_name) for e in self.parameters.table}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    effect = getattr(request, "param", GIVEN["ring.effect"])
    given = ["--ros-args", "-p", f"cf1.params.ring.effect:={effect}"]
    rclpy.init(args=given, domain_id=own_domain(__name__))
    yield Server()
    rclpy.try_shutdown()


@pytest.mark.parametrize("is_another", [False, True])
def test_a_crazyflie_that_comes_back_has_its_own_parameters(
    server: Server, is_another: bool
) -> None:
    """Another one is as the first was; after a reset so is the same one."""
    FirmwareParameters(server)  # type: ignore[arg-type]
    first = server.held()
    assert first == server.shown() == first | GIVEN
    for name, value in SET.items():
        assert server.set_parameters([Parameter(f"cf1.params.{name}", value=value)])[0].successful
    assert server.held() == server.shown() == first | SET
    server.leave()
    if is_another:
        server.switch_on()
    server.come_back()
    expected = first if is_another else first | SET
    assert server.held() == server.shown() == expected
    server.parameters.restart({}, (), lambda: None)
    for tell in server.resets:
        tell(ResetEvent(None, ResetScope.state, ("cf1",)))  # type: ignore[arg-type]
    assert server.held() == server.shown() == first
    assert not server.reports


@pytest.mark.parametrize("server", ["[1, 2]", "lively", "[]"], indirect=True)
def test_what_is_no_number_is_no_parameter_of_the_firmware(server: Server) -> None:
    own = server.parameters.get("ring.effect")
    FirmwareParameters(server)  # type: ignore[arg-type]
    (report,) = server.reports
    assert report.startswith("cf1: ring.effect is a uint8, got ")
    assert server.parameters.get("ring.effect") == own


def test_logging_that_was_added_ends_with_the_topics_of_the_drone(server: Server) -> None:
    topics = LogTopics(server)  # type: ignore[arg-type]
    more = LogTopic.of("more", 50, ["pm.vbat"], "")
    configured = topics.topics("cf1")
    for _ in range(2):
        topics.add("cf1", more)
        assert topics.topics("cf1") == [*configured, "more"]
        server.leave()
        server.come_back()
        assert topics.topics("cf1") == configured
        with pytest.raises(ValueError, match="cf1 does not log 'more', but pose, status"):
            topics.remove("cf1", "more")
    topics.add("cf1", more)
    for name in ("more", "pose"):
        topics.remove("cf1", name)
    assert topics.topics("cf1") == ["status"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("publish_rates.pose:=50", "publish_rates.pose.*got 50"),
        ("drones:=[cf9]", "drones: .*cf1, cf2"),
        ("interfaces:=none", "interfaces: .*each"),
        ("hosts.name:=left", "hosts.name: .*left"),
    ],
)
def test_parameters_that_contradict_the_configuration_are_refused(
    tmp_path: Path, argument: str, message: str
) -> None:
    path = tmp_path / "crazyflies.yaml"
    path.write_text(yaml.safe_dump(configuration("cf1", "cf2")))
    given = ["--ros-args", "-p", f"crazyflies_yaml_file:={path}", "-p", argument]
    rclpy.init(args=given, domain_id=own_domain(__name__))
    try:
        with pytest.raises(ParameterError, match=message):
            read(GuardedNode(NODE))
    finally:
        rclpy.try_shutdown()
