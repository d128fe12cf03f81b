"""The parameters of the wind, and what the physics is asked for when they change."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from ros_client import own_domain

from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.services.wind_parameters import WindParameters
from crazyflow_ros.runtime import Wind


class Simulator:
    """A node with the wind as its parameters, and a physics that notes what it is asked for."""

    def __init__(self, node: Node) -> None:
        self.node, self.physics, self.world, self.parameters = node, self, self, Parameters()
        self.wind, self.asked = Wind(), list[Wind]()
        self.get_parameter = node.get_parameter
        self.warnings = list[str]()
        self.log = SimpleNamespace(warning=self.warnings.append)
        given = [("wind", [0.0] * 3), ("gust_intensity", 0.0)]
        node.declare_parameters("", [*given, ("gust_altitude", self.wind.gust_altitude)])

    def disturb(self, asked: Wind) -> Future[Any]:
        self.asked.append(asked)
        (done := Future[Any]()).set_result(SimpleNamespace())
        return done


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    context = rclpy.Context()
    context.init(domain_id=own_domain(__name__))
    yield Simulator(Node("simulator", context=context))
    context.try_shutdown()


def test_the_wind_of_a_checkpoint_is_shown_and_not_asked_for_again(simulator: Simulator) -> None:
    parameters = WindParameters(simulator)  # type: ignore[arg-type]
    node = simulator.node
    changes = [Parameter("gust_intensity", value=0.7), Parameter("wind", value=[0.0, 2.0, 0.5])]
    assert node.set_parameters_atomically(changes).successful
    assert simulator.asked == [Wind((0.0, 2.0, 0.5), 0.7)]
    simulator.wind = Wind((-1.5, 0.25, 0.0), 0.3, 40.0)
    parameters.follow_checkpoint()
    names = ["wind", "gust_intensity", "gust_altitude"]
    mean, *gusts = (parameter.value for parameter in node.get_parameters(names))
    assert [*mean, *gusts] == [-1.5, 0.25, 0.0, 0.3, 40.0]
    assert simulator.asked == [Wind((0.0, 2.0, 0.5), 0.7)]


def test_a_wind_that_the_parameters_cannot_show_is_told_of(simulator: Simulator) -> None:
    parameters = WindParameters(simulator)  # type: ignore[arg-type]
    refusal = SetParametersResult(successful=False, reason="no wind today")
    simulator.node.add_on_set_parameters_callback(lambda _: refusal)
    simulator.wind = Wind((-1.5, 0.25, 0.0))
    parameters.follow_checkpoint()
    (warning,) = simulator.warnings
    assert warning.endswith("the wind of the checkpoint: no wind today")
