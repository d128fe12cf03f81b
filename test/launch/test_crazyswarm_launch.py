"""`launch/crazyswarm.launch.py`: what it starts, with which parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from crazyswarm import configuration
from launching import Launcher, visit

FILE = "crazyswarm.launch.py"


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    return Launcher(FILE, tmp_path, monkeypatch)


@pytest.fixture
def crazyflies(tmp_path: Path) -> str:
    path = tmp_path / "crazyflies.yaml"
    path.write_text(yaml.safe_dump(configuration("cf1", "cf2")))
    return str(path)


def test_the_server_gets_the_files_and_its_name(launched: Launcher, crazyflies: str) -> None:
    given = {"real_time_factor": "3", "headless": "true", "crazyflie.port": "0"}
    (server,) = launched(1, crazyflies_yaml_file=crazyflies, **given)
    assert server.executable == "crazyflie_server"
    assert "__node:=crazyflie_server" in server.command
    assert server.parameters["crazyflies_yaml_file"] == crazyflies
    assert server.parameters["real_time_factor"] == 3.0
    assert server.parameters["headless"] is True
    assert server.parameters["crazyflie.port"] == 0
    assert "scene" not in server.parameters  # the server's own default
    assert "use_sim_time" not in server.parameters


def test_rviz_shows_the_robots_in_their_frame(launched: Launcher, crazyflies: str) -> None:
    server, *others = launched(4, crazyflies_yaml_file=crazyflies, rviz="true")
    assert server.parameters["publish_rates.joint_states"] == 100
    *publishers, rviz = others
    assert {process.namespace for process in publishers} == {"/cf1", "/cf2"}
    config = yaml.safe_load(Path(rviz.arguments[1]).read_text())
    assert config["Visualization Manager"]["Global Options"]["Fixed Frame"] == "world"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"crazyflies_yaml_file": "/no/such.yaml"},
            "crazyflies_yaml_file: /no/such.yaml cannot be read",
        ),
        ({"real_time_factor": "fast"}, "real_time_factor: expected a number .* got 'fast'"),
        ({"headless": "maybe"}, "headless: expected true or false, got 'maybe'"),
        ({"crazyflie.port": "-1"}, "crazyflie.port: expected a whole number .* got '-1'"),
    ],
)
def test_what_is_wrong_is_named(crazyflies: str, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        visit(FILE, **({"crazyflies_yaml_file": crazyflies} | arguments))
