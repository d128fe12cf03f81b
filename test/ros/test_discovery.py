"""Who can find the programs: this machine only where ROS does not start them, or as the user says.

The kernel tells: a program that looks for others in the network listens on its domain's port for
multicast, which all of its machine and no others share.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import rclpy
from physics_helpers import until
from rclpy.context import Context
from ros_client import READY_TIMEOUT, RosProcess, own_domain

from crazyflow_ros.client import choose_domain
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.middleware import who_finds_it

DOMAIN = own_domain("test_discovery")
MULTICAST = 7400 + 250 * DOMAIN  # DDS Interoperability, 9.6.1
RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
CHOICES = (RANGE, "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
SIMULATOR_OF_ROS = ("-c", "from crazyflow_ros.__main__ import main; main([])")
needs_proc = pytest.mark.skipif(not Path("/proc/self/net/udp").exists(), reason="asks /proc")

Finds = Callable[[], bool]


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOICES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def finds() -> Iterator[Finds]:
    """Whether a user's script, which has chosen nothing, finds another node."""
    rclpy.init(context=(context := Context()), domain_id=DOMAIN)
    node = rclpy.create_node("user", context=context)
    yield lambda: set(node.get_node_names()) > {"user"}
    node.destroy_node()
    context.shutdown()


def opened(program: RosProcess) -> set[str]:
    """Files and sockets."""
    assert program.process.poll() is None, program.log
    found = set()
    for link in Path("/proc", str(program.process.pid), "fd").iterdir():
        with suppress(OSError):  # it has just been closed
            found.add(os.readlink(link))
    return found


def shares_memory(program: RosProcess) -> bool:
    """Whether one that is killed, with a lock in that memory, could stop it for ever."""
    return any("/dev/shm/fastdds" in path for path in opened(program))


def looks_in_the_network(program: RosProcess) -> bool:
    own, folder = opened(program), Path("/proc", str(program.process.pid))
    sockets = (line.split() for line in (folder / "net/udp").read_text().splitlines()[1:])
    ports = {int(s[1].split(":")[1], 16) for s in sockets if f"socket:[{s[9]}]" in own}
    return MULTICAST in ports


@needs_proc
@pytest.mark.parametrize(
    "program", ["", " list --wait 60", ".client.fly_to", ".view --no-browser", ".view.foxglove"]
)
def test_programs_without_ros_are_found_on_this_machine_only(program: str, finds: Finds) -> None:
    words = f"-m crazyflow_ros{program}".split()
    with RosProcess([sys.executable, *words], DOMAIN) as process:
        until(lambda: looks_in_the_network(process) or finds(), "its node", READY_TIMEOUT)
        assert not looks_in_the_network(process) and not shares_memory(process)
        process.end()


@needs_proc
@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (SIMULATOR_OF_ROS, {}),
        (("-m", "crazyflow_ros"), {RANGE: "SUBNET"}),
        (("-m", "crazyflow_ros"), {"ROS_STATIC_PEERS": "127.0.0.1"}),
    ],
)
def test_programs_of_ros_and_choices_of_users_stay(
    words: tuple[str, ...], chosen: dict[str, str]
) -> None:
    with RosProcess([sys.executable, *words], DOMAIN, chosen) as process:
        until(lambda: looks_in_the_network(process), "a port for multicast", READY_TIMEOUT)
        assert not shares_memory(process)
        process.end()


def test_both_profiles_of_the_middleware_are_the_same_but_for_transports() -> None:
    texts = [
        {line for line in resource("config", name).read_text().splitlines() if "<" in line}
        for name in ("fastdds.xml", "fastdds_this_machine.xml")
    ]
    everywhere, this_machine = texts
    assert [line.strip() for line in everywhere - this_machine] == [
        "<builtinTransports>UDPv4</builtinTransports>"
    ]
    assert "maxInitialPeersRange" in "".join(this_machine - everywhere)


@pytest.mark.parametrize("domain", ["", "7"])
def test_demonstrations_stay_on_this_machine(domain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", domain)
    choose_domain()
    assert os.environ[RANGE] == "LOCALHOST" and os.environ["ROS_DOMAIN_ID"] != ""


def test_demonstrations_choose_a_domain_without_nodes(
    finds: Finds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "")
    monkeypatch.setattr(os, "getpid", lambda: DOMAIN - 1)
    choose_domain()
    assert os.environ["ROS_DOMAIN_ID"] == str(1 + DOMAIN % 100)


def test_demonstrations_shun_a_domain_whose_first_node_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "")
    monkeypatch.setattr(os, "getpid", lambda: DOMAIN - 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second:
        second.bind(("", 7410 + 250 * DOMAIN + 2))
        choose_domain()
    assert os.environ["ROS_DOMAIN_ID"] != str(DOMAIN)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, "0: those on this machine and in the local network (%=SUBNET; LOCALHOST: "),
        ({RANGE: "LOCALHOST"}, "0: those on this machine (%=LOCALHOST; SUBNET: "),
        ({RANGE: "OFF"}, "0: none (%=OFF; "),
        ({RANGE: "LOCALHOST", "ROS_STATIC_PEERS": "10.0.0.2"}, "this machine, and on 10.0.0.2 (%="),
        ({"ROS_DISCOVERY_SERVER": "10.0.0.2:11811"}, "0: those for which rmw_x is configured ("),
        ({"ROS_DOMAIN_ID": "9"}, "in ROS domain 9: those"),
    ],
)
def test_each_choice_is_said(
    chosen: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    assert expected.replace("%", RANGE) in who_finds_it("rmw_x")
