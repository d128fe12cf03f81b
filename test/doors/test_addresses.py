"""On which addresses doors, Crazyflies, servers and shared worlds listen, as the kernel says."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from betaflight_process import own_ports
from ports import free_ports

from crazyflow_ros.crazyflie.link_config import LinkConfig
from crazyflow_ros.crazyflie.ports import Ports
from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.ardupilot import ArduPilot
from crazyflow_ros.doors.betaflight import Betaflight
from crazyflow_ros.doors.crazyflie_firmware import CrazyflieFirmware
from crazyflow_ros.doors.px4 import Px4
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.hosts import Hosts
from crazyflow_ros.hosts.transport import ZenohTransport
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.view.foxglove.guard import FoxgloveGuard

pytestmark = pytest.mark.skipif(not Path("/proc/self/net/udp").exists(), reason="asks /proc")

LISTENS = "0A"  # state of a TCP socket
DEFAULT, OTHER = "127.0.0.1", "127.0.0.2"


def listening() -> dict[str, str]:
    """The addresses of this process' UDP sockets and of its TCP sockets that listen, by inode."""
    own = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the folder's own
            own.add(os.readlink(link))
    found = {}
    for table in ("udp", "udp6", "tcp", "tcp6"):
        for line in Path("/proc/self/net", table).read_text().splitlines()[1:]:
            words = line.split()
            address, state, inode = words[1].partition(":")[0], words[3], words[9]
            if f"socket:[{inode}]" in own and (table.startswith("udp") or state == LISTENS):
                number = b"".join(
                    bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8)
                )
                family = socket.AF_INET6 if table.endswith("6") else socket.AF_INET
                found[inode] = socket.inet_ntop(family, number)
    return found


@contextmanager
def opened(settings: Any, model: str = "hb_x500") -> Iterator[None]:
    config = SimulationConfig.of(RealisticOptions(drone_model=model, freq=1000))
    door = settings.open(DoorContext.of(config, ["cf0"], logging.getLogger("door")))
    yield
    door.close()


@contextmanager
def betaflight() -> Iterator[None]:
    with own_ports(), opened(Betaflight()):
        yield


@contextmanager
def crazyflies() -> Iterator[None]:
    ports = Ports(LinkConfig().address, free_ports(), 1)
    yield
    ports.close()


@contextmanager
def page_for_foxglove() -> Iterator[None]:
    FoxgloveGuard(DEFAULT, 0, (DEFAULT, 1), "", (), print)
    yield


@contextmanager
def shared_world(**endpoints: tuple[str, ...]) -> Iterator[None]:
    transport = ZenohTransport(Hosts(name="left", peers=("right",), **endpoints))
    yield
    transport.close()


FIRMWARE = {"port": free_ports(), "cflib_port": free_ports()}
ENDPOINT = f"tcp/{OTHER}:{free_ports(kind=socket.SOCK_STREAM)}"
PLACES: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "px4": (lambda: opened(Px4(port=free_ports(kind=socket.SOCK_STREAM))), {DEFAULT}),
    "px4 elsewhere": (lambda: opened(Px4(port=free_ports(), address=OTHER)), {OTHER}),
    "ardupilot": (lambda: opened(ArduPilot(port=free_ports())), {DEFAULT}),
    "ardupilot elsewhere": (lambda: opened(ArduPilot(port=free_ports(), address=OTHER)), {OTHER}),
    "betaflight": (betaflight, {DEFAULT}),
    "firmware": (lambda: opened(CrazyflieFirmware(**FIRMWARE), "cf2x_L250"), {DEFAULT}),
    "firmware elsewhere": (
        lambda: opened(CrazyflieFirmware(**FIRMWARE, address=OTHER), "cf2x_L250"),
        {OTHER},
    ),
    "crazyflies": (crazyflies, {DEFAULT}),
    "foxglove": (page_for_foxglove, {DEFAULT}),
    "a shared world that others connect to": (lambda: shared_world(listen=(ENDPOINT,)), {OTHER}),
    "a shared world that connects": (lambda: shared_world(connect=(ENDPOINT,)), set()),
}


@pytest.mark.parametrize("who", PLACES)
def test_only_the_named_address_is_listened_on(who: str) -> None:
    open_it, expected = PLACES[who]
    before = listening()
    with open_it():
        assert {at for inode, at in listening().items() if inode not in before} == expected
