"""The drones of a node as Crazyflies of crazyswarm2, and the traffic of their radio."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from crazyflie_interfaces.msg import ConnectionStatistics, ConnectionStatisticsArray

from crazyflow_ros.ros.commands.flight_services import ALL
from crazyflow_ros.ros.messages.times import time_of

if TYPE_CHECKING:
    from crazyflow_ros.crazyflie.crazyflie import Crazyflie
    from crazyflow_ros.crazyflie.fleet import Fleet
    from crazyflow_ros.crazyswarm.swarm_configuration import SwarmConfiguration
    from crazyflow_ros.ros.host import Host

_NUMBER = 0xE7  # of a Crazyflie with the default address
_TOPIC = "connection_statistics"
_WORLD = "world"
_BROADCAST = "FFE7E7E7E7"  # the address of all Crazyflies on a channel


class Traffic:
    """Counts commands by drone; those to all drones at once count under `ALL`."""

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
    """The state that the features of crazyswarm2's server share.

    Args:
        host: The node.
        swarm: The robots and their settings.
        fleet: The firmware of the drones.

    Attributes:
        host: As given.
        swarm: As given.
        traffic: Counts the commands sent to the drones.
        fleet: As given.
    """

    def __init__(self, host: Host, swarm: SwarmConfiguration, fleet: Fleet) -> None:
        self.host, self.swarm, self.fleet = host, swarm, fleet
        self.traffic = Traffic()

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


class ConnectionStatisticsTopics:
    """<drone>/connection_statistics and all/connection_statistics: the radio loses nothing."""

    def __init__(self, crazyflies: Crazyflies, period: float) -> None:
        self._simulator = simulator = crazyflies.host
        self._swarm, self._traffic = crazyflies.swarm, crazyflies.traffic
        simulator.for_each_drone(self._add)
        self._add(ALL)
        simulator.create_timer(period, self._publish)

    def _add(self, name: str) -> None:
        self._simulator.create_publisher(ConnectionStatisticsArray, f"{name}/{_TOPIC}", 10)

    def _publish(self) -> None:
        simulator, swarm = self._simulator, self._swarm
        stamp = time_of(simulator.physics.snapshot.time_ns)
        uris = {robot.name: [robot.uri] for robot in swarm.robots}
        channels = {robot.uri.rpartition("/")[0] for robot in swarm.robots}
        uris[ALL] = [f"{channel}/{_BROADCAST}" for channel in sorted(channels)]
        names = {simulator.resolve_topic_name(f"{name}/{_TOPIC}"): name for name in uris}
        for publisher in simulator.node.publishers:
            name = names.get(publisher.topic_name)
            if name is None:
                continue
            n = self._traffic.news(self, name)
            message = ConnectionStatisticsArray()
            message.header.stamp = stamp
            frame = _WORLD if name == ALL else swarm.settings(name).reference_frame
            message.header.frame_id = frame
            message.stats = [
                ConnectionStatistics(
                    uri=uri, sent_count=n, receive_count=n, enqueued_count=n, ack_count=n
                )
                for uri in uris[name]
            ]
            publisher.publish(message)
