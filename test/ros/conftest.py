"""The simulator of a module of tests, in its `DOMAIN`, and a client of it; nodes with parameters.

A module names the simulator's arguments in `ARGUMENTS`, or makes them with a fixture of its own,
and what is to run in its process before in `PRELUDE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
from ros_client import Client, SimulatorProcess

from crazyflow_ros.ros.parameters.declaration import ParameterNode


@pytest.fixture(scope="module")
def arguments(request: pytest.FixtureRequest) -> Sequence[str]:
    return getattr(request.module, "ARGUMENTS", ())


@pytest.fixture(scope="module")
def simulator(
    request: pytest.FixtureRequest, arguments: Sequence[str]
) -> Iterator[SimulatorProcess]:
    prelude = getattr(request.module, "PRELUDE", "")
    with SimulatorProcess(request.module.DOMAIN, arguments, prelude) as process:
        yield process
        if process.process.poll() is None:  # then it keeps what it has compiled for the next run
            assert process.end()[0] == 0


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest, simulator: SimulatorProcess) -> Iterator[Client]:
    with Client(request.module.DOMAIN) as client:
        yield client


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    context = Context()
    rclpy.init(context=context)
    yield context
    rclpy.shutdown(context=context)


@pytest.fixture
def parameter_node(context: Context) -> Iterator[Callable[[Mapping[str, Any]], ParameterNode]]:
    """Makes nodes that are given parameters, and destroys them after the test."""
    with ExitStack() as stack:

        def make(values: Mapping[str, Any]) -> ParameterNode:
            node = ParameterNode(
                "parameters_test",
                context=context,
                parameter_overrides=[Parameter(name, value=v) for name, v in values.items()],
                start_parameter_services=False,
                enable_rosout=False,
            )
            stack.callback(node.destroy_node)
            return node

        yield make
