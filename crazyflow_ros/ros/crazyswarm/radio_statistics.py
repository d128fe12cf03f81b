"""Radio statistics for the topics connection_statistics; the simulated radio loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflie_interfaces.msg import ConnectionStatistics, ConnectionStatisticsArray

from crazyflow_ros.ros.commands.flight_services import ALL
from crazyflow_ros.ros.messages.times import time_of

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.crazyflies import Crazyflies

_TOPIC = "connection_statistics"
_WORLD = "world"
_BROADCAST = "FFE7E7E7E7"  # the address of all Crazyflies on a channel


class ConnectionStatisticsTopics:
    """<drone>/connection_statistics and all/connection_statistics, if they are configured."""

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


def declare(crazyflies: Crazyflies) -> None:
    """Add the topics."""
    if period := crazyflies.swarm.statistics_period:
        ConnectionStatisticsTopics(crazyflies, period)
