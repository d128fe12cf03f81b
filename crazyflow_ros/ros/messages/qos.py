"""Quality of service of subscriptions to topics of others."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy


def qos_for(offered: Sequence[QoSProfile], depth: int) -> QoSProfile:
    """Return the quality of service with which all messages of some publishers arrive.

    Latched messages arrive where all publishers have them. Others are not sent again if they are
    lost: a subscriber that falls behind must not slow down the simulator.

    Args:
        offered: What the publishers offer.
        depth: Number of messages that wait.
    """
    latched, reliable = DurabilityPolicy.TRANSIENT_LOCAL, ReliabilityPolicy.RELIABLE
    if not offered or any(qos.durability != latched for qos in offered):
        return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)
    is_reliable = all(qos.reliability == reliable for qos in offered)
    return QoSProfile(
        depth=depth,
        durability=latched,
        reliability=reliable if is_reliable else ReliabilityPolicy.BEST_EFFORT,
    )
