"""crazyswarm2's own server with its cflib backend, unmodified, flies our drones as over a radio."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from crazyflie_helpers import Crazyflies, crazyflies
from crazyswarm import configuration
from ros_client import Client, RosProcess, own_domain
from std_srvs.srv import Empty

from crazyflow_ros.flight import FlightState
from crazyflow_ros.runtime import Snapshot

CHECKOUT = Path(os.environ.get("CRAZYSWARM2", ""))
pytestmark = [
    pytest.mark.skipif(
        "CRAZYSWARM2" not in os.environ, reason="CRAZYSWARM2 names no checkout of crazyswarm2"
    ),
    pytest.mark.skipif(find_spec("rowan") is None, reason="crazyflie_py needs the package rowan"),
    pytest.mark.skipif(find_spec("cflib") is None, reason="cflib is not installed"),
]

DOMAIN = own_domain(__name__)
NAMES = ("cf231", "cf5")
# In place of the part of tf2_ros that the server uses, where only its wheels are missing.
TF2_ROS = """
from tf2_msgs.msg import TFMessage

class TransformBroadcaster:
    def __init__(self, node):
        self._publisher = node.create_publisher(TFMessage, "/tf", 100)

    def sendTransform(self, transform):
        transforms = transform if isinstance(transform, list) else [transform]
        self._publisher.publish(TFMessage(transforms=transforms))
"""


def python(folder: Path, code: str, *arguments: str) -> RosProcess:
    """A program of crazyswarm2."""
    packages = ("crazyflie_server_py", "crazyflie_py", "crazyflie_examples")
    paths = [*(CHECKOUT / name for name in packages), folder]
    path = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code, "--ros-args", *arguments]
    return RosProcess(command, DOMAIN, {"PYTHONPATH": path, "HOME": str(folder)})


@pytest.fixture(scope="module")
def seen() -> list[Snapshot]:
    return []


@pytest.fixture(scope="module")
def served(seen: list[Snapshot]) -> Iterator[Crazyflies]:
    with crazyflies(len(NAMES), watch=seen.append) as found:
        yield found


@pytest.fixture(scope="module")
def server(served: Crazyflies, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RosProcess]:
    folder = tmp_path_factory.mktemp("server")
    if find_spec("tf2_ros") is None:
        (folder / "tf2_ros.py").write_text(TF2_ROS)
    content = configuration(*NAMES)
    for name, uri in zip(NAMES, served.uris):
        content["robots"][name]["uri"] = uri
    own = yaml.safe_load((CHECKOUT / "crazyflie/config/server.yaml").read_text())
    parameters = own["/crazyflie_server"]["ros__parameters"] | content
    parameters["robot_description"] = '<robot name="$NAME"/>'  # as from its launch file
    file = folder / "parameters.yaml"
    file.write_text(yaml.safe_dump({"/crazyflie_server": {"ros__parameters": parameters}}))
    code = "from crazyflie_server_py.crazyflie_server import main; main()"
    with python(folder, code, "--params-file", str(file)) as process:
        yield process


def test_a_script_flies_over_its_server(
    served: Crazyflies, server: RosProcess, seen: list[Snapshot], tmp_path: Path
) -> None:
    client = Client(DOMAIN)
    try:
        ready = client.node.create_client(Empty, "/all/emergency")
        server.wait_for("All Crazyflies are fully connected", 60.0)
        client.until(ready.service_is_ready, "the server")
        seen.clear()
        with python(tmp_path, "from crazyflie_examples.hello_world import main; main()") as script:
            client.until(lambda: script.process.poll() is not None, "hello_world", 120.0)
            assert script.process.returncode == 0, script.log + server.log
        assert max(snapshot.pos[0, 2] for snapshot in seen) > 0.9, server.log
        landed = FlightState.landed
        client.until(lambda: served.physics.commands.states["cf0"] is landed, "landing")
    finally:
        client.close()
