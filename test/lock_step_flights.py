"""Scripts that fly in simulated time, each from the same beginning."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from crazyflie_helpers import MODEL, free_port
from script_time import Log

from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.lock_step import LockStepServer, in_its_time
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.runtime import PhysicsThread, ResetScope, SimulationConfig, Snapshot
from crazyflow_ros.scripts.in_script.simulated_time.channel import Datagram
from crazyflow_ros.scripts.script import LockStep, Script

_RADIO = r"radio://\d+(?:/\w+)*"
T = 300.0  # s


@dataclass
class Flight:
    """What a script has done."""

    code: int
    out: str
    err: str
    log: list[str]
    way: np.ndarray
    """Position and velocity of each drone, 50 times a second (n, M, 6)."""
    sent: list[Datagram]
    ticks: int

    def __eq__(self, other: object) -> bool:
        """Whether everything is the same to the last bit."""
        assert isinstance(other, Flight)
        return (self.code, self.out, self.log, self.sent, self.ticks) == (
            other.code,
            other.out,
            other.log,
            other.sent,
            other.ticks,
        ) and self.way.tobytes() == other.way.tobytes()


class _Server(LockStepServer):
    """Keeps what the script sends."""

    sent: list[Datagram]
    _clients: dict[int, int]  # the system chooses their ports

    def take(self, datagram: Datagram) -> None:
        client = self._clients.setdefault(datagram.client, len(self._clients))
        self.sent.append(datagram._replace(client=client))
        super().take(datagram)


class Flights:
    """A simulation of drones, which start 1 m apart from one another.

    Args:
        n: Number of drones.
        options: Of the simulation; by default it is that of `python -m crazyflow_ros.crazyflie`.
    """

    def __init__(self, n: int, **options: object) -> None:
        usual = {"true_mass": True, "drone_model": MODEL, "controller": "pid"}
        usual |= {"setpoint_modes": True, "flight": FlightConfig(exact_durations=True)}
        config = SimulationConfig(**usual | options, start_paused=True)  # type: ignore[arg-type]
        self._model = config.drone_model
        self.physics = PhysicsThread(config, [f"cf{i}" for i in range(n)])
        self._seen: list[np.ndarray] = []
        self.physics.every(50, self._watch, "watch", observes=True)
        self.physics.start()
        self._port = free_port(n)

    def _watch(self, snapshot: Snapshot) -> None:
        if snapshot.tick % 10 == 0:
            self._seen.append(np.hstack((snapshot.pos, snapshot.vel)))

    def fly(
        self,
        script: Path | str,
        folder: Path,
        link: LinkConfig | None = None,
        arguments: Sequence[str] = (),
    ) -> Flight:
        """Let a script fly; radio addresses in it become those of the drones, in order."""
        text = script.read_text() if isinstance(script, Path) else script
        folder.mkdir(exist_ok=True)
        for i, address in enumerate(dict.fromkeys(re.findall(_RADIO, text))):
            if "uri_from_env" not in text:
                text = text.replace(address, f"udp://127.0.0.1:{self._port + i}")
        (folder / "script.py").write_text(text)
        self.physics.state.reset(ResetScope.time | ResetScope.state).result(T)
        self._seen.clear()
        log = Log()
        lock_step = LockStep(self.physics, log)
        link = replace(link or LinkConfig(), port=self._port)
        said = in_its_time(log, lock_step)
        fleet = Fleet(self.physics, self._model, link.decks, said, Storage(link.storage), link.app)
        server = _Server(self.physics, link, fleet, said, lock_step)
        server.sent, server._clients = [], {}
        shell = 'cd "$0" && exec "$@" >out 2>err'
        command = ["/bin/sh", "-c", shell, str(folder), sys.executable, "script.py", *arguments]
        variables = {"CFLIB_URI": next(iter(server.uris.values()))}
        begin = self.physics.snapshot.tick
        try:
            code = Script(command, said, server.ports, environment=variables).run(lock_step)
        finally:
            server.close()
        return Flight(
            code,
            (folder / "out").read_text(),
            (folder / "err").read_text(),
            [line for line in log.lines if str(folder) not in line],
            np.array(self._seen),
            server.sent,
            self.physics.snapshot.tick - begin,
        )


@contextmanager
def flights(n: int, **options: object) -> Iterator[Flights]:
    found = Flights(n, **options)
    try:
        yield found
    finally:
        found.physics.stop()
    assert found.physics.failed is None and not found.physics.statistics().failures
