"""Simulations that are served as Crazyflies, and programs that fly them."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crazyflow_ros.crazyflie import CrazyflieServer, LinkConfig
from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot

MODEL = "cf2x_L250"


class Crazyflies:
    """A running simulation with its server."""

    def __init__(self, physics: PhysicsThread, server: CrazyflieServer, log: list[str]) -> None:
        self.physics, self.server, self.log = physics, server, log
        self.uris = list(server.uris.values())

    def run(self, program: Path, uri: str, folder: Path) -> subprocess.Popen[str]:
        """Start a program of cflib that takes its address from the environment."""
        return subprocess.Popen(
            [sys.executable, str(program)],
            cwd=folder,
            env={**os.environ, "CFLIB_URI": uri},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


ECHO = Packet(Port.link, 0, b"here")
_PATIENCE = 60.0  # s


class Link:
    """A client on a socket of its own."""

    def __init__(self, uri: str) -> None:
        host, port = uri.removeprefix("udp://").split(":")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((host, int(port)))
        self._socket.settimeout(_PATIENCE)

    def send(self, packet: Packet | bytes) -> None:
        self._socket.send(bytes(packet))

    def receive(self, port: int, channel: int | None = None) -> Packet:
        """The next packet of a port."""
        while True:
            packet = Packet.parse(self._socket.recv(100))
            if packet.port == port and channel in (None, packet.channel):
                return packet

    def receive_any(self) -> bytes:
        """The next datagram."""
        return self._socket.recv(100)

    def ask(self, packet: Packet) -> Packet:
        self.send(packet)
        return self.receive(packet.port, packet.channel)

    def answers(self, timeout: float) -> bool:
        """Whether it hears its own echo within a time [s]."""
        self._socket.settimeout(timeout)
        try:
            return self.ask(ECHO) == ECHO
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(_PATIENCE)

    def close(self) -> None:
        self._socket.close()


@contextmanager
def connected(uri: str, folder: Path) -> Iterator[Any]:
    """A Crazyflie of cflib, with its cache in a folder, once it knows all parameters."""
    import cflib.crtp
    from cflib.crazyflie import Crazyflie
    from cflib.crazyflie.syncCrazyflie import SyncCrazyflie

    cflib.crtp.init_drivers()
    with SyncCrazyflie(uri, cf=Crazyflie(rw_cache=str(folder / "cache"))) as scf:
        scf.wait_for_params()
        yield scf.cf


def logged(cf: Any, *names: str) -> dict[str, float]:
    """The next values of log variables."""
    from cflib.crazyflie.log import LogConfig
    from cflib.crazyflie.syncLogger import SyncLogger

    block = LogConfig("one", 10)
    for name in names:
        block.add_variable(name)
    with SyncLogger(cf, block) as logger:
        return next(logger)[1]


def asked(ask: Callable[..., None], name: str) -> Any:
    """What cflib answers by a callback about a parameter."""
    found: list[Any] = []
    ask(name, lambda _, value: found.append(value))
    until(lambda: found, f"an answer about {name}")
    return found[0]


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {_PATIENCE} s"
        time.sleep(0.02)


def free_port(n: int) -> int:
    """The first of n ports that nobody has."""
    for first in range(20000 + os.getpid() % 100 * 100, 60000, 100):
        opened = []
        try:
            for port in range(first, first + n):
                opened.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                opened[-1].bind(("127.0.0.1", port))
        except OSError:
            continue
        finally:
            for one in opened:
                one.close()
        return first
    raise RuntimeError("there are no free ports")


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def crazyflies(
    n: int = 1,
    link: LinkConfig | None = None,
    watch: Callable[[Snapshot], None] | None = None,
    **config: object,
) -> Iterator[Crazyflies]:
    """Serve n drones, 1 m apart from one another, at real time; `watch` sees 50 states a second."""
    names = [f"cf{i}" for i in range(n)]
    handler, logger = _Log(), logging.getLogger("crazyflies")
    logger.addHandler(handler)
    logger.propagate = False
    usual = {"true_mass": True, "drone_model": MODEL}
    physics = PhysicsThread(SimulationConfig(**{**usual, **config}), names, logger=logger)  # type: ignore[arg-type]
    link = link or LinkConfig(port=free_port(len(names)))
    if watch is not None:
        physics.every(50, watch, "watch", observes=True)
    fleet = Fleet(physics, MODEL, link.decks, logger, Storage(link.storage), link.app)
    server = CrazyflieServer(physics, link, fleet, logger)
    physics.start()
    server.start()
    try:
        yield Crazyflies(physics, server, handler.lines)
    finally:
        server.close()
        physics.stop()
        logger.removeHandler(handler)
    assert physics.failed is None and not physics.statistics().failures
