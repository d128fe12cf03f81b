"""What a subscription to topics of others asks for, judged by rclpy's own rule."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import pytest
from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)

from crazyflow_ros.ros.messages.qos import qos_for

OFFERED = [
    QoSProfile(depth=1, durability=durability, reliability=reliability)
    for durability, reliability in product(
        (DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL),
        (ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE),
    )
]


@pytest.mark.parametrize("offered", combinations_with_replacement(OFFERED, 2))
def test_messages_of_all_publishers_arrive_and_latched_ones_where_all_have_them(
    offered: Sequence[QoSProfile],
) -> None:
    qos = qos_for(offered, 7)
    for publisher in offered:
        assert qos_check_compatible(publisher, qos)[0] != QoSCompatibility.ERROR
    latched = DurabilityPolicy.TRANSIENT_LOCAL
    are_latched = all(publisher.durability == latched for publisher in offered)
    assert (qos.durability == latched) == are_latched
    assert qos.depth == 7
