"""A drone, its port, and the programs that fly it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.crazyflie.crazyflie import Crazyflie
from crazyflow_ros.crazyflie.crazyradio import RadioLink
from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.log_blocks import LogBlocks
from crazyflow_ros.crazyflie.ports import Address

MAX_CLIENTS = 16
"""Programs that may fly a drone at the same time."""

_FAREWELL = Packet(Port.attitude_setpoint, 0, bytes(14))
_SILENCE = 5_000_000_000  # ns after which a client is forgotten; connected ones send ten a second
_BURST = 64  # packets of one drone that are read before it is the others' turn
_RECEIVE_SIZE = 64  # bytes, more than any packet


@dataclass
class Client:
    """A program that flies a drone."""

    link: RadioLink | None = None
    """Its link by radio; None without one."""
    blocks: LogBlocks = field(default_factory=LogBlocks)
    heard: int = 0  # time of its latest packet [ns]
    waiting: Packet | None = None  # see `in_turn`

    def in_turn(self, packet: Packet) -> Iterator[Packet]:
        """Yield the packets that take effect when a packet has come.

        A setpoint of zeros waits for another packet that is not of the link itself. cflib sends one
        as it closes a link; a real radio is closed before it transmits it, and so the drone goes on
        as it is.
        """
        if packet.port == Port.link:
            yield packet
            return
        if self.waiting is not None:
            yield self.waiting
        self.waiting = packet if packet == _FAREWELL else None
        if self.waiting is None:
            yield packet


@dataclass(frozen=True)
class Console:
    """The console of a drone, as a logger."""

    show: Callable[[str], None]

    def info(self, message: str) -> None:
        """Show a message to all clients."""
        self.show(message)

    warning = error = info


@dataclass
class Station:
    """A drone and its port."""

    name: str
    port: int
    socket: socket.socket
    firmware: Crazyflie
    console: ThrottledLogger
    """Shows refusals to the clients, even those that the log, which serves all drones, omits."""
    clients: dict[Address, Client] = field(default_factory=dict)
    held: list[tuple[Address, bytes]] = field(default_factory=list)
    """Datagrams, with their senders, that wait for the start of the firmware."""
    opens: int | None = None
    """When the port opens again after a lost link [ns]; None while it is open."""

    def close(self) -> None:
        """Close the port and the console."""
        self.console.close()
        self.socket.close()

    def received(self) -> Iterator[tuple[bytes, Address]]:
        """Return datagrams from the network, each with its sender."""
        for _ in range(_BURST):
            try:
                yield self.socket.recvfrom(_RECEIVE_SIZE)
            except BlockingIOError:
                return
            except OSError:  # an answer to a client that has ended came back
                continue

    @property
    def is_full(self) -> bool:
        """Whether it has as many clients as it may have."""
        return len(self.clients) >= MAX_CLIENTS

    def client(self, sender: Address, now: int, link: Callable[[], RadioLink | None]) -> Client:
        """Return the record of a client.

        Args:
            sender: The client, from which a packet has come.
            now: Time [ns].
            link: Returns the link by radio of a new client.

        Raises:
            ValueError: The drone has too many clients.
        """
        client = self.clients.get(sender)
        if client is None:
            if self.is_full:
                raise ValueError(f"it has {MAX_CLIENTS} clients already")
            client = self.clients[sender] = Client(link())
            self.console.forget()  # which the new client has not heard
        client.heard = now
        return client

    def forget(self, *senders: Address) -> list[str]:
        """Forget clients; return what was remarkable about their links by radio."""
        gone = [(sender, self.clients.pop(sender)) for sender in senders if sender in self.clients]
        return [f"{self.name}: {client.link.leave()}" for _, client in gone if client.link]

    def silent(self, now: int) -> list[Address]:
        """Return the clients that have ended, or seem to."""
        return [at for at, client in self.clients.items() if now - client.heard >= _SILENCE]

    def forget_logs(self) -> None:
        """Delete the log blocks of all clients, which the firmware's memory held."""
        for client in self.clients.values():
            client.blocks = LogBlocks()
