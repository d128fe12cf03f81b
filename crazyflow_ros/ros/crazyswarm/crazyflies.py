"""The drones of a node as Crazyflies of crazyswarm2."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from crazyflow_ros.ros.crazyflie_link import new_fleet

if TYPE_CHECKING:
    from crazyflow_ros.crazyflie.drone import Crazyflie
    from crazyflow_ros.ros.crazyswarm.configuration import SwarmConfiguration
    from crazyflow_ros.ros.host import Host

_NUMBER = 0xE7  # of a Crazyflie with the default address


class Traffic:
    """Number of commands so far, by drone, and under `ALL` those sent to all drones at once."""

    def __init__(self) -> None:
        self._sent: Counter[str] = Counter()
        self._read: Counter[tuple[object, str]] = Counter()

    def count(self, receiver: str) -> None:
        """Count a command to a drone, or to `ALL`."""
        self._sent[receiver] += 1

    def news(self, reader: object, receiver: str) -> int:
        """Return the number of commands since the last call by the same reader."""
        sent = self._sent[receiver]
        new = sent - self._read[reader, receiver]
        self._read[reader, receiver] = sent
        return new


class Crazyflies:
    """What the features of crazyswarm2's server share.

    Args:
        host: The node.
        swarm: The robots and their settings.

    Attributes:
        host: As given.
        swarm: As given.
        traffic: Counts the commands sent to the drones.
        fleet: The firmware of the drones.
    """

    def __init__(self, host: Host, swarm: SwarmConfiguration) -> None:
        self.host, self.swarm = host, swarm
        self.traffic, self.fleet = Traffic(), new_fleet(host)

    def firmware(self, drone: str) -> Crazyflie:
        """Return the firmware of a drone."""
        uris = {robot.name: robot.uri for robot in self.swarm.robots}
        return self.fleet.get(drone, _number(uris.get(drone, "")))


def _number(uri: str) -> int:
    """Return the number of a Crazyflie, the last byte of its address."""
    try:
        return int(uri[-2:], 16)
    except ValueError:
        return _NUMBER
