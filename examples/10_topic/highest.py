"""A topic of your own: `~/highest` is the height of the highest drone, ten times a second.

The file pyproject.toml makes it part of every simulator where it is installed.
docs/guides/extend.md explains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from geometry_msgs.msg import PointStamped

from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros import Host

RATE = 10  # Hz of simulated time; has to divide the parameter freq


class HighestTopic:
    """The topic."""

    def __init__(self, host: Host) -> None:
        self._publisher = host.create_publisher(PointStamped, "~/highest", 10)
        host.physics.every(RATE, self._publish, "highest", observes=True)

    def _publish(self, snapshot: Snapshot) -> None:
        """Called in the physics thread: be quick, and do not wait for anything."""
        message = PointStamped()
        message.header.frame_id = "map"
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = divmod(snapshot.time_ns, 1_000_000_000)
        highest = snapshot.pos[snapshot.pos[:, 2].argmax()]
        message.point.x, message.point.y, message.point.z = highest.tolist()
        self._publisher.publish(message)


def declare(host: Host) -> None:
    """Add the topic."""
    HighestTopic(host)
