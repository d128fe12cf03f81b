"""Two nodes that share a world and a time, each with the topics of its own drones."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from builtin_interfaces.msg import Duration
from ros_client import Client, SimulatorProcess, numbers, own_domain
from sensor_msgs.msg import MultiDOFJointState
from std_srvs.srv import SetBool, Trigger

services = pytest.importorskip("crazyflie_interfaces.srv")
pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")

DOMAIN = own_domain("test_hosts")
OWNED = {"left": ["cf0"], "right": ["cf1"]}
SIZE = "drones:=[cf0,cf1]"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SimulatorProcess]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f'["tcp/127.0.0.1:{free.getsockname()[1]}"]'
    kept: Path = tmp_path_factory.mktemp("kept")
    with ExitStack() as stack:
        processes = {}
        for name, end in (("left", "listen"), ("right", "connect")):
            (peer,) = OWNED.keys() - {name}
            parameters = [
                *(SIZE, "start_paused:=true", "real_time_factor:=0.0"),
                *(f"checkpoint_folder:={kept}", "checkpoint:=flight"),
                *(f"hosts.name:={name}", f"hosts.peers:=[{peer}]"),
                *(f"hosts.drones:=[{','.join(OWNED[name])}]", f"hosts.{end}:={endpoint}"),
            ]
            names = ["-r", f"__ns:=/{name}", "-r", f"/clock:=/{name}/clock"]
            processes[name] = SimulatorProcess(DOMAIN, [*names, *parameters])
        for process in processes.values():  # which start at the same time
            stack.enter_context(process)
        yield processes


class Seen(Client):
    """A client that collects where the drones are, as one simulator publishes it."""

    def __init__(self, name: str) -> None:
        super().__init__(DOMAIN, f"/{name}")
        self._states = self.collect(MultiDOFJointState, "crazyflow/odometry")

    def heights(self, tick: int) -> list[float]:
        """Of both drones at a tick."""
        message = self.newest(self._states, tick)
        return [numbers(one.translation)[2] for one in message.transforms]


@pytest.fixture(scope="module")
def clients(nodes: dict[str, SimulatorProcess]) -> Iterator[dict[str, Seen]]:
    clients = {name: Seen(name) for name in nodes}
    yield clients
    for client in clients.values():
        client.close()


def fly(client: Client, service: str) -> None:
    assert client.call(services.Takeoff, service, height=0.4, duration=Duration(sec=1))


def test_a_drone_has_topics_where_it_is_owned(clients: dict[str, Seen]) -> None:
    node = clients["left"].node
    own = {f"/{name}/{drone}/odom" for name, (drone,) in OWNED.items()}

    def published() -> set[str]:
        return {topic for topic, _ in node.get_topic_names_and_types() if topic.endswith("/odom")}

    clients["left"].until(lambda: published() >= own, "topics of both drones")
    assert published() == own


def test_time_and_drones_are_shared_and_commands_are_not(clients: dict[str, Seen]) -> None:
    left, right = clients["left"], clients["right"]
    fly(right, "cf1/takeoff")
    low, high = left.heights(left.advance(1000))
    assert low < 0.1 < 0.3 < high
    fly(left, "all/takeoff")  # all of its own
    low, high = right.heights(right.advance(1000))
    assert low > 0.3
    right.pause(False)
    assert left.pause(True) == right.pause(True)


def test_a_checkpoint_is_that_of_all(clients: dict[str, Seen]) -> None:
    left, right = clients["left"], clients["right"]
    tick = left.pause(True)
    assert left.call(Trigger, "crazyflow/save_checkpoint").success
    before = right.heights(right.advance(5))
    right.reset()
    assert max(left.heights(left.advance(5))) < 0.1
    assert right.call(Trigger, "crazyflow/load_checkpoint").success
    assert left.advance(5) == tick + 5
    assert left.heights(tick + 5) == before


def test_the_end_of_one_is_named_by_the_other(
    nodes: dict[str, SimulatorProcess], clients: dict[str, Seen]
) -> None:
    nodes["right"].end()
    nodes["left"].wait_for("the simulator right has gone")
    answer = clients["left"].call(SetBool, "crazyflow/pause", data=False)
    assert not answer.success and "the simulator right has gone" in answer.message
