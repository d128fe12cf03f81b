"""`launch/hosts.launch.py` under the real `launch`: which simulators it starts, and with what."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import Launcher, description, visit

FILE = "hosts.launch.py"


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    return Launcher(FILE, tmp_path, monkeypatch)


def test_every_argument_is_documented() -> None:
    declared = description(FILE).get_launch_arguments()
    assert all(len(argument.description) > 20 for argument in declared)


def test_two_simulators_divide_the_drones(launched: Launcher) -> None:
    first, second = sorted(launched(2, n_drones="5"), key=lambda process: process.namespace)
    assert (first.namespace, second.namespace) == ("/left", "/right")
    assert first.parameters["drones"] == second.parameters["drones"]
    assert first.parameters["hosts.drones"] == ["cf0", "cf1"]
    assert second.parameters["hosts.drones"] == ["cf2", "cf3", "cf4"]
    assert first.parameters["hosts.listen"] == second.parameters["hosts.connect"]
    assert "hosts.connect" not in first.parameters
    assert "/clock:=/right/clock" in second.command
    assert not any("clock" in word for word in first.command)
    assert second.parameters["publish_rates.tf"] == 0


def test_a_machine_starts_its_own_simulator(launched: Launcher) -> None:
    (second,) = launched(
        1, addresses="[10.0.0.1,10.0.0.2]", only="right", one_graph="false", port="7000"
    )
    assert second.parameters["hosts.listen"] == ["tcp/10.0.0.2:7001"]
    assert second.parameters["hosts.connect"] == ["tcp/10.0.0.1:7000"]
    assert not any("clock" in word for word in second.command)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("only", "middle", "expected one of left, right"),
        ("simulators", "[left]", "at least 2 names"),
        ("addresses", "[a,b,c]", "one for each of 2 simulators"),
    ],
)
def test_wrong_arguments_are_refused(argument: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        visit(FILE, **{argument: value})
