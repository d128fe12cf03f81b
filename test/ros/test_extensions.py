"""Extensions of the node: who imports them, what they declare, and what they refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_packages import metadata

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.crazyswarm.link import CrazyflieLink
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.hosts.extension import SharedTime
from crazyflow_ros.ros.extensions import (
    PREFIXES,
    all_values,
    configured,
    declared_extensions,
    from_all_values,
)
from crazyflow_ros.ros.parameters.declaration import ParameterNode, declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime import Extension, SimulationConfig
from crazyflow_ros.runtime.extension import GROUP

ROOMS = ("crazyflie", "crazyswarm", "doors", "hosts", "scripts")
HOSTS = {"hosts.name": "left", "hosts.peers": ["right"], "hosts.connect": ["tcp/127.0.0.1:1"]}

Declared = tuple[ParameterNode, Parameters, dict[str, Extension]]


@pytest.fixture
def started(parameter_node: Any) -> Callable[[dict[str, Any]], Declared]:
    def start(values: dict[str, Any]) -> Declared:
        node = parameter_node(values)
        parameters = declare(node, Parameters, others=PREFIXES)
        return node, parameters, declared_extensions(node)

    return start


def config_of(declared: Declared) -> SimulationConfig:
    _, parameters, extensions = declared
    return configured(parameters.simulation_config(), parameters, extensions)


def test_a_node_imports_no_extension() -> None:
    code = "import sys, crazyflow_ros.ros.features, crazyflow_ros.ros.node; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.removeprefix("crazyflow_ros.").partition(".")[0] for name in done.stdout.split()}
    assert "runtime" in rooms
    assert rooms.isdisjoint(ROOMS)


@pytest.mark.parametrize("given", [{}, {"crazyflie.decks": ["bcFlow2"]}])
def test_parameters_of_the_node_ask_for_no_extension(started: Any, given: dict[str, Any]) -> None:
    node, _, extensions = started(given)
    assert extensions == {}
    assert not node.has_parameter("crazyflie.port") and not node.has_parameter("hosts.name")


def test_a_parameter_brings_the_extension_with_its_others(started: Any) -> None:
    node, parameters, extensions = started(
        {"crazyflie.port": 19850, "crazyflie.decks": ["bcZRanger2"], "estimator": "kalman"}
    )
    decks = ("bcZRanger2",)
    assert extensions == {"crazyflie": CrazyflieLink(port=19850, decks=decks)}
    assert parameters.crazyflie.decks == decks
    assert node.describe_parameter("crazyflie.loss").read_only
    config = config_of((node, parameters, extensions))
    assert config.positioning == Positioning(flow=False, external=True)
    call = "call cf0/reset, or recover it: cf.supervisor.send_crash_recovery_request()"
    assert config.flight.advice.call.format("cf0") == call


def test_a_link_without_a_port_changes_nothing(started: Any) -> None:
    declared = started({"crazyflie.port": 0, "hosts.name": "", "estimator": "kalman"})
    assert [*declared[2]] == ["crazyflie", "hosts"]
    assert config_of(declared) == declared[1].simulation_config()


def test_an_unknown_parameter_of_an_extension_is_reported(
    started: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    started({"crazyflie.prot": 19850, "hosts.nam": "left"})
    told = capfd.readouterr().err
    for unknown, near in (("crazyflie.prot", "crazyflie.port"), ("hosts.nam", "hosts.name")):
        said = f"there is no parameter '{unknown}', it is ignored; did you mean '{near}'?"
        assert told.count(said) == 1


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"crazyflie.port": 80}, "crazyflie.port"),
        ({**HOSTS, "hosts.drones": ["nobody"]}, "hosts.drones"),
        ({**HOSTS, "hosts.peers": ["left"]}, "hosts.peers"),
        ({**HOSTS, "record": "flight.mcap"}, "record"),
        ({**HOSTS, "crazyflie.port": 19850}, "crazyflie.port"),
        ({**HOSTS, "door": "px4"}, "door"),
        ({**HOSTS, "ros2_control.mode": "topic"}, "ros2_control.mode"),
    ],
)
def test_what_does_not_go_together_is_named(started: Any, given: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{re.escape(name)}: "):
        config_of(started(given))


def test_recorded_values_are_read_also_those_of_extensions_that_did_nothing() -> None:
    """As earlier versions recorded them."""
    extensions = {"crazyflie": CrazyflieLink(loss=0.1), "hosts": SharedTime()}
    values = all_values(Parameters(seed=3), extensions)
    assert from_all_values(values) == (Parameters(seed=3), extensions)
    with pytest.raises(ParameterError, match="another version of this package"):
        from_all_values(values | {"crazyflie.gain": 1.0})
    with pytest.raises(ParameterError, match="another version of this package"):
        from_all_values(values | {"gain": 1.0})


@pytest.mark.parametrize("entry", ["no_such_module:Settings", "fractions:Fraction"])
def test_an_extension_that_cannot_be_used_is_refused_with_its_package(
    started: Any, entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = metadata(tmp_path, "some-package", {GROUP: {"broken": entry}})
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(ParameterError, match=r"^broken.rate: .*some-package"):
        started({"broken.rate": 1})
