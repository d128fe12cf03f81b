"""Crazyflies for a script in simulated time: packets are sent and arrive at exact times."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from math import gcd

from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.crazyflie import deck_readings
from crazyflow_ros.crazyflie.crtp import Port
from crazyflow_ros.crazyflie.crtp_server import LOG_RATE, CrazyflieServer
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.link_config import LinkConfig
from crazyflow_ros.crazyflie.ports import Address, Ports
from crazyflow_ros.crazyflie.signals import Signals
from crazyflow_ros.crazyflie.station import Station
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.runtime import PhysicsThread, Snapshot
from crazyflow_ros.scripts.in_script.simulated_time.channel import FOREVER, Datagram
from crazyflow_ros.scripts.script import LockStep, Script

_ANSWERING_NS = 200_000  # until the answer to a packet arrives, if the link has no latency
_CONTENTS = {(Port.parameters, 0), (Port.log, 0)}  # port and channel of tables
_MOST_NAMED = 16  # other programs
_LOOK = 0.1  # s of wall time between two looks for packets of other programs


class LockStepServer(CrazyflieServer):
    """Serves the drones to one script in simulated time; packets of other programs are refused.

    Args:
        physics: The simulation, paused.
        config: The link.
        fleet: The firmware of the drones.
        logger: Logs problems.
        lock_step: Lets time run.
        ports: Ports that are open already.
    """

    def __init__(
        self,
        physics: PhysicsThread,
        config: LinkConfig,
        fleet: Fleet,
        logger: Logger,
        lock_step: LockStep,
        ports: Ports | None = None,
    ) -> None:
        self._lock_step = lock_step
        self._outbox: list[tuple[int, int, Datagram]] = []
        self._order = count()
        self._answering, self._looked = 0, 0.0
        super().__init__(physics, config, fleet, logger, ports, lambda: lock_step.now)
        # A client that has kept the tables of another flight must fly as one that reads them.
        self._carrier.skips = _CONTENTS
        self._period = physics.freq // gcd(physics.freq, LOG_RATE)
        self._logged = 0  # tick of the latest state whose values were sent
        self._others: set[Address] = set()
        for station in self._stations.values():
            held, station.held = station.held, []
            for sender, _ in held:
                self._refuse(station.name, sender)
        lock_step.exchange = self

    @property
    def ports(self) -> list[int]:
        """UDP ports of the drones."""
        return [station.port for station in self._stations.values()]

    # For the lock-step.

    def take(self, datagram: Datagram) -> None:
        """See `Exchange`."""
        for station in self._stations.values():
            if station.port == datagram.drone:
                sender = self.config.address, datagram.client
                self._carrier.accept(station, sender, datagram.data)

    def serve(self, snapshot: Snapshot) -> list[Datagram]:
        """See `Exchange`."""
        if snapshot is not self._latest[0]:
            self._latest = snapshot, self._physics.commands.commanders.flights(snapshot.names)
        if self._logging and snapshot.tick % self._period == 0 and snapshot.tick > self._logged:
            self._logged = snapshot.tick
            ranges = deck_readings.read(self._physics, snapshot) if self._ranging else None
            self._waiting.append((*self._latest, ranges))
        self._serve()
        self._lock_step.settle()
        self._refuse_others()
        for log in (self._logger, *(station.console for station in self._stations.values())):
            log.catch_up()
        found = []
        while self._outbox and self._outbox[0][0] <= self._lock_step.now:
            found.append(heapq.heappop(self._outbox)[2])
        return found

    def due(self) -> int:
        """See `Exchange`."""
        times = [self._outbox[0][0]] if self._outbox else []
        if (arrival := self._carrier.next_due()) is not None:
            times.append(arrival)
        for station in self._stations.values():
            if (watchdog_ms := station.firmware.supervision.watchdog_ms) is not None:
                times.append(self._tick_time(1_000_000 * (watchdog_ms + 1)))
            if station.firmware.app.is_there:
                times.append(self._tick_time(0, self._period))
            for client in station.clients.values():
                if (due := client.blocks.next_due()) is not None:
                    times.append(self._tick_time(1_000_000 * due, self._period))
        return min(times, default=FOREVER)

    def _tick_time(self, earliest_ns: int, period: int = 1) -> int:
        """Return the time of the next multiple of a period [ticks], not before `earliest_ns`."""
        freq, before = self._physics.freq, self._latest[0].tick
        tick = max(before + 1, -(-earliest_ns * freq // 1_000_000_000))
        return -(-tick // period) * period * 1_000_000_000 // freq

    # How packets pass.

    def _open(self, name: str) -> Station:
        """Open a port whose console throttles repetitions in simulated time alone."""
        station = super()._open(name)
        station.console.close()
        return station

    def _watch(self) -> None:
        """Leave it to `serve` to see the state."""

    def _take(self, station: Station, sender: Address, datagram: bytes) -> None:
        head = (datagram[0] >> 4, datagram[0] & 3) if datagram else (0, 0)
        self._answering = 0 if head in _CONTENTS else _ANSWERING_NS
        super()._take(station, sender, datagram)
        self._lock_step.settle()
        self._answering = 0

    def _put(self, station: Station, to: Address, datagram: bytes) -> None:
        due = self._lock_step.now + self._answering
        sent = Datagram(due, to[1], station.port, datagram)
        heapq.heappush(self._outbox, (due, next(self._order), sent))

    def _refuse_client(self, station: Station, sender: Address) -> None:
        self._note_blocks()
        self._put(station, sender, b"")  # see `Sockets`

    def _refuse_others(self) -> None:
        """Log which other programs send packets."""
        now = time.monotonic()
        if now < self._looked + _LOOK:
            return
        self._looked = now
        for key, _ in self._selector.select(0):
            if key.data is None:
                continue
            for _, sender in key.data.received():
                self._refuse(key.data.name, sender)

    def _refuse(self, name: str, sender: Address) -> None:
        if sender not in self._others and len(self._others) < _MOST_NAMED:
            self._others.add(sender)
            self._logger.warning(
                f"{name}: packets of another program, {sender[0]}:{sender[1]}, are ignored: in "
                "lock-step, only the process of the script flies drones"
            )


def in_its_time(logger: Logger, lock_step: LockStep) -> ThrottledLogger:
    """Return a logger that omits the same repetitions in each flight."""
    bare = logger.logger if isinstance(logger, ThrottledLogger) else logger
    found = ThrottledLogger(bare, lambda: lock_step.now * 1e-9)
    found.close()  # from now on, it has no thread, and says numbers when it is asked to catch up
    return found


def fly(
    command: Sequence[str],
    physics: PhysicsThread,
    link: LinkConfig,
    logger: Logger,
    storage: Storage,
    ports: Ports,
    signals: Signals,
    factor: float = 0.0,
) -> int:
    """Let a script fly drones in simulated time.

    Args:
        command: Program of the script, and its arguments.
        physics: The simulation, paused, before its start.
        link: The link.
        logger: Logs problems and where the drones end.
        storage: Keeps stored parameters.
        ports: The open ports of the drones.
        signals: Receives the signals of this process, which are passed on to the script.
        factor: Greatest number of simulated seconds per second; 0 for no limit.

    Returns:
        Exit code of the script; 1 if the simulation failed.

    Raises:
        OSError: The script cannot be started, or another program uses a port.
    """
    lock_step = LockStep(physics, logger, factor)
    said = in_its_time(logger, lock_step)
    fleet = Fleet(physics, physics.config.drone_model, link.decks, said, storage, link.app)
    with closing(LockStepServer(physics, link, fleet, said, lock_step, ports)) as server:
        physics.start()
        variables = {"CFLIB_URI": next(iter(server.uris.values()))}
        signals.keep()
        script = Script(command, said, server.ports, link.address, variables, link.seed)
        signals.pass_on(script.send)
        code = script.run(lock_step)
    for text in lock_step.summary():
        said.info(text)
    said.catch_up(everything=True)
    return code
