"""Bytes from a program that is no client of ROS: they take no memory, and everything else goes on.

`make hostile` sends many more, and test_hostile some of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hostile_wire import HEADER, LIBRARIES, Stranger, most_memory
from rcl_interfaces.msg import ParameterType
from ros_client import Client, SimulatorProcess, own_domain
from rosgraph_msgs.msg import Clock

DOMAIN = own_domain("test_bytes_on_the_wire")
LIMIT = 1.0  # GiB


class Pair(NamedTuple):
    """A simulator and two who talk to it."""

    simulator: SimulatorProcess
    client: Client
    stranger: Stranger

    def check(self) -> None:
        """It serves its client, and keeps to its memory."""
        self.client.pause(True)
        self.client.advance(7)
        self.client.pause(False)
        assert most_memory(self.simulator) < LIMIT + LIBRARIES


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    stranger = Stranger(DOMAIN)
    with SimulatorProcess(DOMAIN, ["-p", f"memory_limit:={LIMIT}"]) as simulator:
        client = Client(DOMAIN)
        client.latest(Clock, "/clock")
        stranger.find("crazyflow/pause")
        yield Pair(simulator, client, stranger)
        client.close()
        assert simulator.end()[0] == 0
        assert "Traceback" not in simulator.log


def length(n: int) -> bytes:
    """A request that begins with a list, of which there is only the length."""
    return HEADER + struct.pack("<I", n)


@pytest.mark.parametrize("n", [700_000, 20_000_000, 2**32 - 1])
@pytest.mark.parametrize("service", ["get_spawnables", "drones/arm", "describe_parameters"])
def test_a_list_that_is_not_there_takes_no_memory(pair: Pair, service: str, n: int) -> None:
    pair.stranger.send(f"rq/crazyflow/{service}Request", length(n))
    pair.check()


def test_a_request_for_which_there_is_no_memory_is_refused_with_the_limit(pair: Pair) -> None:
    # A parameter x, which is a list of truth values: each is one byte here, and eight in Python.
    begin = struct.pack(
        "<II2sBB4xqdI4xI", 1, 2, b"x\0", ParameterType.PARAMETER_BOOL_ARRAY, *[0] * 3, 1, 0
    )
    longer = HEADER + begin + struct.pack("<I16x", 100_000_000)
    pair.stranger.send("rq/crazyflow/set_parametersRequest", longer)
    pair.simulator.wait_for("a request is ignored: MemoryError (the limit is 1 GiB: parameter")
    pair.check()


def test_memory_that_such_a_request_took_is_given_back(pair: Pair) -> None:
    before = pair.simulator.memory
    pair.stranger.send("rq/crazyflow/spawn_entitiesRequest", length(400_000))
    pair.check()
    pair.client.until(lambda: pair.simulator.memory < before + 100, "its memory")


@pytest.mark.parametrize("name", [b"\xff\xfe", b""])
def test_nodes_whose_names_are_none_are_told(pair: Pair, name: bytes) -> None:
    texts = [struct.pack("<I", len(text) + 1) + text + b"\0" for text in (b"/", name)]
    node = b"".join(text + bytes(-len(text) % 4) for text in texts) + bytes(8)
    told = pair.simulator.log.count("nodes whose names are none")
    pair.stranger.send("ros_discovery_info", HEADER + bytes(16) + struct.pack("<I", 1) + node)
    pair.client.until(
        lambda: pair.simulator.log.count("nodes whose names are none") > told, "a warning"
    )
    pair.check()
