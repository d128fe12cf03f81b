"""A drone, its port, and the programs that fly it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.crazyflie.crazyflie import Crazyflie
from crazyflow_ros.crazyflie.log_blocks import LogBlocks


@dataclass
class Client:
    """A program that flies a drone."""

    blocks: LogBlocks = field(default_factory=LogBlocks)
    heard: int = 0  # time of its latest packet [ns]


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
    clients: dict[tuple[str, int], Client] = field(default_factory=dict)
    held: list[tuple[tuple[str, int], bytes]] = field(default_factory=list)
    """Datagrams, with their senders, that wait for the start of the firmware."""

    def close(self) -> None:
        """Close the port and the console."""
        self.console.close()
        self.socket.close()

    def forget_logs(self) -> None:
        """Delete the log blocks of all clients, which the firmware's memory held."""
        for client in self.clients.values():
            client.blocks = LogBlocks()
