"""Crazyflies on UDP: each drone of a simulation is a Crazyflie with its own port.

One thread receives all packets and sends the values of log blocks. The physics thread only hands
over its state. A packet affects only the drone that it is addressed to, whatever it contains.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from math import gcd

import numpy as np

from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.crazyflie import deck_readings
from crazyflow_ros.crazyflie.carrier import Carrier
from crazyflow_ros.crazyflie.crtp import NULL_PACKETS, Packet, Port, texts
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.link_config import PROBE, LinkConfig
from crazyflow_ros.crazyflie.ports import Address, OpenPort, Ports, open_port
from crazyflow_ros.crazyflie.power import PowerState
from crazyflow_ros.crazyflie.station import Console, Station
from crazyflow_ros.flight.commander import FlightStatus
from crazyflow_ros.runtime import PhysicsThread, Snapshot

LOG_RATE = 100
"""Hz at which log variables may be sent, as the firmware's shortest period is 10 ms."""

_CHECK_PERIOD = 1_000_000_000  # ns between two checks for clients that have ended
_WATCHDOG_PERIOD = 100_000_000  # ns between two checks of the watchdogs of emergency stops
_START_PERIOD = 20_000_000  # ns between two checks whether a firmware has started
_MAX_WAITING = 64  # snapshots whose values are still to be sent
_MAX_HELD = 200  # datagrams for a drone that starts, more than a program sends without an answer
_LOST = 500_000_000  # ns for which a port is closed, so that programs notice a lost link


class CrazyflieServer:
    """Serves the drones of a simulation as Crazyflies.

    Args:
        physics: The simulation, before its start.
        config: The link.
        fleet: The firmware of the drones.
        logger: Logs problems.
        ports: Ports that are open already.
        clock: Time of the link, in ns; by default wall time.

    Attributes:
        config: As given.
        malformed: Number of packets refused so far.
        skipped: Number of states whose log values were dropped because the computer was busy.
    """

    def __init__(
        self,
        physics: PhysicsThread,
        config: LinkConfig,
        fleet: Fleet,
        logger: Logger,
        ports: Ports | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._clock, self._check_at = clock, clock()
        self._physics, self.config, self._fleet = physics, config, fleet
        self._logger = ThrottledLogger.of(logger)
        self.malformed = self.skipped = 0
        self._open_ports = {} if ports is None else ports.hand_over()
        self._stations: dict[str, Station] = {}
        self._selector = selectors.DefaultSelector()
        self._wakes, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._selector.register(self._wakes, selectors.EVENT_READ)
        self._lock = threading.Lock()  # guards the three below
        self._waiting: list[tuple[Snapshot, list[FlightStatus], np.ndarray | None]] = []
        self._console: list[tuple[str, str]] = []
        self._changed: dict[tuple[str, str], tuple[str, int] | None] = {}
        # The client whose packet is carried out, and the thread that does so.
        self._serving: tuple[Address, int] | None = None
        now = physics.snapshot
        self._latest = now, physics.commands.commanders.flights(now.names)
        on_way = (self._logger, self._take, self._put, self._refuse_client)
        self._carrier = Carrier(config, physics.mirror, clock, self._wake, *on_way)
        self._logging = self._ranging = False  # read by the physics thread
        self._ending = False
        self._thread = threading.Thread(target=self._main, name="crazyflie", daemon=True)
        self._follow(now.names)
        self._watch()
        physics.news.on_flight_event(lambda event: self._show(event.drone, event.text))
        fleet.on_report.append(self._show_refusal)
        fleet.on_console.append(self._show)
        fleet.on_change.append(self._note_change)

    @property
    def uris(self) -> dict[str, str]:
        """Addresses of the drones for cflib, by name."""
        host = self.config.address
        return {name: f"udp://{host}:{station.port}" for name, station in self._stations.items()}

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def close(self, timeout: float = 1.0) -> None:
        """Stop serving, and close all ports.

        Raises:
            TimeoutError: The thread did not end within `timeout` [s].
        """
        self._ending = True
        if self._thread.ident is not None:
            self._wake()
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise TimeoutError(f"the Crazyflie server did not end within {timeout} s")
        for station in self._stations.values():
            self._carrier.forget(station, *station.clients)
            station.close()

    def _watch(self) -> None:
        """Observe the state as often as log variables may be sent."""
        rate = gcd(self._physics.freq, LOG_RATE)
        self._physics.every(rate, self._observe, "the Crazyflie server", observes=True)

    # In the physics thread.

    def _observe(self, snapshot: Snapshot) -> None:
        """Pass the state on to the server's thread."""
        flights = self._physics.commands.commanders.flights(snapshot.names)
        before, self._latest = self._latest, (snapshot, flights)
        if self._logging:
            ranges = deck_readings.read(self._physics, snapshot) if self._ranging else None
            with self._lock:
                self._waiting.append((snapshot, flights, ranges))
                if len(self._waiting) > _MAX_WAITING:
                    del self._waiting[0]
                    self.skipped += 1
            self._wake()
        elif before[0].names != snapshot.names:
            self._wake()

    # From any thread.

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # it is awake already
            os.write(self._waker, b"\0")

    def _show(self, name: str, text: str) -> None:
        """Show a text on the console of a drone."""
        with self._lock:
            self._console.append((name, text))
        self._wake()

    def _show_refusal(self, name: str, text: str) -> None:
        """Show a refusal on the console of a drone; repetitions are throttled."""
        if (station := self._stations.get(name)) is not None:
            station.console.warning(text)

    def _note_change(self, name: str, parameter: str, was_set: bool) -> None:
        """Notify a drone's clients of a parameter's value, except the client that set it."""
        client, thread = self._serving or (None, 0)
        own = was_set and threading.get_ident() == thread
        with self._lock:
            self._changed[name, parameter] = client if own else None
        self._wake()

    def _send_all(self, name: str, packet: Packet) -> None:
        """Send a packet to all clients of a drone."""
        if (station := self._stations.get(name)) is not None:
            for to in list(station.clients):
                self._carrier.send(station, to, packet)

    def _put(self, station: Station, to: Address, datagram: bytes) -> None:
        with suppress(OSError):  # the client has ended, or is too slow
            station.socket.sendto(datagram, to)

    # In the server's thread.

    def _main(self) -> None:
        while not self._ending:
            for key, _ in self._selector.select(self._patience()):
                if key.data is None:
                    os.read(self._wakes, 4096)
                else:
                    for datagram, client in key.data.received():
                        self._carrier.accept(key.data, client, datagram)
            self._serve()
        self._selector.close()

    def _serve(self) -> None:
        """Do everything that is due."""
        snapshot, _ = self._latest
        self._carrier.carry(snapshot)
        self._show_console()
        self._show_changes()
        self._send_logs()
        now = self._clock()
        if now >= self._check_at:
            self._check_at = now + _CHECK_PERIOD
            for station in self._stations.values():
                self._carrier.forget(station, *station.silent(now))
            self._note_blocks()
        if snapshot.names != self._followed:
            try:
                self._follow(snapshot.names)
            except (OSError, ValueError) as error:
                self._logger.warning(f"a drone is not served as a Crazyflie: {error}")
        for station in self._stations.values():
            station.firmware.supervision.check_watchdog(snapshot.time_ns // 1_000_000)
            if station.opens is not None and now >= station.opens:
                self._open_again(station)
            if station.held and station.firmware.power.state is not PowerState.booting:
                held, station.held = station.held, []
                for sender, datagram in held:
                    self._take(station, sender, datagram)

    def _patience(self) -> float:
        """Return how long to wait for packets [s]."""
        stations = self._stations.values()
        opens = [station.opens for station in stations]
        due = min(filter(None, (self._check_at, self._carrier.next_due(), *opens)))
        with self._lock:
            if self._waiting or self._console or self._changed:
                return 0.0
        if any(station.held for station in stations):
            due = min(due, self._clock() + _START_PERIOD)
        if any(station.firmware.supervision.watchdog_ms is not None for station in stations):
            due = min(due, self._clock() + _WATCHDOG_PERIOD)
        return max(0.0, (due - self._clock()) * 1e-9)

    def _follow(self, names: Sequence[str]) -> None:
        """Open ports for new drones, and close those of removed drones."""
        self._followed = tuple(names)
        for name in self._stations.keys() - set(names):
            station = self._stations.pop(name)
            self._selector.unregister(station.socket)
            station.close()
        for name in names:
            if name not in self._stations:
                self._stations[name] = self._open(name)
        self._stations = {name: self._stations[name] for name in names}
        self._note_blocks()

    def _open(self, name: str) -> Station:
        """Open the lowest port that no drone uses.

        Raises:
            OSError: Another program uses it.
            ValueError: The drone has just been removed.
        """
        taken = {station.port for station in self._stations.values()}
        port = next(port for port in count(self.config.port) if port not in taken)
        # crazyswarm2 derives the same number from the address.
        firmware = self._fleet.get(name, int(f"{port % 100:02}", 16))
        opened = self._open_ports.pop(port, None) or OpenPort(
            open_port(self.config.address, port), []
        )
        console = ThrottledLogger(Console(partial(self._show, name)), lambda: self._clock() * 1e-9)
        station = Station(name, port, opened.socket, firmware, console, held=opened.held)
        self._selector.register(opened.socket, selectors.EVENT_READ, station)
        firmware.app.connect(partial(self._send_all, name), partial(self._show, name))
        return station

    def _refuse_client(self, station: Station, sender: Address) -> None:
        """Tell a client that its link is lost: nobody listens at the port for a while."""
        del sender
        self._note_blocks()
        if station.opens is None:
            self._selector.unregister(station.socket)
            station.socket.close()
            station.opens = self._clock() + _LOST

    def _open_again(self, station: Station) -> None:
        try:
            station.socket = open_port(self.config.address, station.port)
        except OSError as error:
            self._logger.warning(f"{station.name}: {error}")
            station.opens = self._clock() + _CHECK_PERIOD
            return
        station.opens = None
        self._selector.register(station.socket, selectors.EVENT_READ, station)

    def _take(self, station: Station, sender: Address, datagram: bytes) -> None:
        """Let a drone carry out a datagram."""
        if datagram in NULL_PACKETS:
            is_there = station.firmware.power.state is not PowerState.all_off
            if datagram == PROBE and sender not in station.clients and is_there:
                self._carrier.answer(station, sender, datagram)
            return
        try:
            packet = Packet.parse(datagram)
            if station.firmware.is_early(packet):
                if len(station.held) < _MAX_HELD:
                    station.held.append((sender, datagram))
                return
            client = self._carrier.client(station, sender)
            send = partial(self._carrier.send, station, sender)
            info = partial(self._info, station.name)
            time_ms = self._latest[0].time_ns // 1_000_000
            is_app_s = packet.port == Port.platform  # which tells all clients what it sets
            self._serving = None if is_app_s else (sender, threading.get_ident())
            for one in client.in_turn(packet):
                station.firmware.receive(one, client.blocks, info, time_ms, send)
            if station.firmware.power.state is not PowerState.on:
                station.forget_logs()
            if packet.port in (Port.log, Port.link):
                self._note_blocks()
        except ValueError as error:
            self.malformed += 1
            self._fleet.report(station.name, str(error))
        except Exception as error:  # affects this packet only
            self.malformed += 1
            self._logger.error(f"{station.name}: packet {datagram.hex()} failed: {error!r}")
        finally:
            self._serving = None

    def _info(self, name: str) -> int:
        """Return the supervisor's bits of a drone; 0 if it has just been removed."""
        snapshot, flights = self._latest
        if name not in snapshot.names:
            return 0
        i = snapshot.names.index(name)
        return self._stations[name].firmware.info(flights[i], snapshot, i)

    def _note_blocks(self) -> None:
        """Update what the physics thread has to provide for log blocks."""
        blocks = [c.blocks for s in self._stations.values() for c in s.clients.values()]
        apps = any(station.firmware.app.is_there for station in self._stations.values())
        self._logging = apps or any(block.running for block in blocks)
        self._ranging = apps or any(block.need_ranges for block in blocks)

    def _show_console(self) -> None:
        with self._lock:
            said, self._console = self._console, []
        for name, text in said:
            for packet in texts(text):
                self._send_all(name, packet)

    def _show_changes(self) -> None:
        with self._lock:
            changed, self._changed = self._changed, {}
        for (name, parameter), by in changed.items():
            station = self._stations.get(name)
            if station is None:
                continue
            packet = station.firmware.parameters.news(parameter)
            for client in station.clients:
                if client != by:
                    self._carrier.send(station, client, packet)

    def _send_logs(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for snapshot, flights, ranges in waiting:
            time_ms = snapshot.time_ns // 1_000_000
            for i, (name, flight) in enumerate(zip(snapshot.names, flights)):
                station = self._stations.get(name)
                if station is None:
                    continue
                due = [c for c in station.clients.items() if c[1].blocks.due(time_ms)]
                if due or station.firmware.app.is_there:
                    row = None if ranges is None else ranges[i]
                    self._carrier.note_reception(station)
                    telemetry = station.firmware.telemetry(snapshot, i, flight, row)
                    station.firmware.app.step(telemetry)
                    for address, client in due:
                        for packet in client.blocks.packets(telemetry):
                            self._carrier.send(station, address, packet)
