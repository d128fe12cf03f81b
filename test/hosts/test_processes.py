"""Simulators that share a time over Zenoh, as processes, one of which is killed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")

import host_flight
from host_flight import Flight, fly_alone

T = 600.0  # s
PORT = 7447


class Process:
    """A simulator."""

    def __init__(self, flight: Flight, before: Sequence[str] = ()) -> None:
        command = [*before, sys.executable, host_flight.__file__, json.dumps(asdict(flight))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.said: list[dict[str, Any]] = []

    def wait(self, key: str) -> Any:
        """Wait for a line with a key, and return its value."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):  # what loading compiled code prints
                continue
            self.said.append(json.loads(line))
            if key in self.said[-1]:
                return self.said[-1][key]
        raise AssertionError(f"the process has ended with {self._process.wait(T)}: {self.said}")

    def kill(self) -> None:
        """End it as kill -9 does."""
        self._process.kill()
        self._process.wait(T)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.kill()
        self._process.wait(T)
        self._process.stdin.close()
        self._process.stdout.close()


def shares(flight: Flight, endpoint: str) -> tuple[Flight, Flight]:
    """Return what two simulators fly, of which the first one listens."""
    names = [f"cf{i}" for i in range(flight.n_drones)]
    left = {"name": "left", "peers": ["right"], "drones": names[::2], "listen": [endpoint]}
    right = {"name": "right", "peers": ["left"], "drones": names[1::2], "connect": [endpoint]}
    return replace(flight, hosts=left), replace(flight, hosts=right, leads=False)


def fly_and_kill(flight: Flight, endpoint: str, hosts: Sequence[Sequence[str]] = ((), ())) -> None:
    """Fly with two simulators, kill one and start it again; compare with one simulator."""
    alone = fly_alone(flight)  # first: it compiles for all of them
    with ExitStack() as stack:

        def start(flight: Flight, before: Sequence[str] = ()) -> Process:
            process = Process(flight, before)
            stack.callback(process.close)
            return process

        first, second = shares(flight, endpoint)
        left, right = start(first, hosts[0]), start(second, hosts[1])
        left.wait("tick")
        right.kill()
        assert "the simulator right has gone" in left.wait("held")
        right = start(second, hosts[1])
        assert left.wait("restored") == flight.checkpoint
        digests, right_digests = left.wait("digests"), right.wait("digests")
        hits = left.said[-1]["hits"]
    assert {str(tick): digest for tick, digest in alone.digests.items()} == digests
    assert right_digests[str(flight.ticks)] == digests[str(flight.ticks)]
    assert right_digests.items() <= digests.items()
    assert min(hits, alone.hits) > 0


def test_two_processes_have_the_bits_of_one_although_one_is_killed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flight = Flight(
        *(2000, 305, 605, 905, 1000), n_drones=4, factor=2.0, file=str(tmp_path / "kept")
    )
    fly_and_kill(flight, f"tcp/127.0.0.1:{port}")


@contextmanager
def namespaces() -> Iterator[tuple[list[str], list[str]]]:
    """Two network namespaces as hosts, with a cable between them; what runs a command in each."""
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip")
    names = [f"crazyflow{os.getpid()}{end}" for end in "ab"]
    with ExitStack() as stack:
        for name in names:
            added = subprocess.run(["ip", "netns", "add", name], check=False)
            if added.returncode:
                pytest.skip("network namespaces are not permitted")
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=True)
        a, b = (f"cf{os.getpid()}{end}" for end in "ab")
        for command in (
            f"link add {a} netns {names[0]} type veth peer name {b} netns {names[1]}",
            f"-n {names[0]} addr add 10.77.0.1/24 dev {a}",
            f"-n {names[1]} addr add 10.77.0.2/24 dev {b}",
            f"-n {names[0]} link set {a} up",
            f"-n {names[1]} link set {b} up",
        ):
            subprocess.run(["ip", *command.split()], check=True)
        first, second = (["ip", "netns", "exec", name] for name in names)
        yield first, second


@pytest.mark.soak
def test_two_hosts_have_the_bits_of_one_over_10000_ticks(tmp_path: Path) -> None:
    flight = Flight(*(10_000, 2005, 4005, 6005, 7000), factor=4.0, file=str(tmp_path / "kept"))
    with namespaces() as hosts:
        fly_and_kill(flight, f"tcp/10.77.0.1:{PORT}", hosts)
