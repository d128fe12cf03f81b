"""What other nodes have is read again soon, also on a machine that is busy with something else."""

from __future__ import annotations

import time
from typing import Any

from rclpy.logging import get_logger

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.other_nodes import OtherNodes
from crazyflow_ros.ros.regular_calls import RegularCalls

STALL = 0.3  # s for which the machine lets this process wait
LIMIT = 10.0  # s; by wall time, the next look would come after 30


class Waiting:
    """A node alone in its graph, which is read slowly."""

    def get_fully_qualified_name(self) -> str:
        return "/node"

    def get_node_names_and_namespaces(self) -> list[tuple[str, str]]:
        time.sleep(STALL)
        return [("node", "/")]


def test_a_look_that_had_to_wait_does_not_put_off_the_next_one() -> None:
    node: Any = Waiting()
    calls, looks = RegularCalls(CallbackGuard(get_logger("test"))), list[int]()
    OtherNodes(node, calls).follow(lambda: looks.append(1))
    end = time.monotonic() + LIMIT
    while len(looks) < 2 and time.monotonic() < end:
        calls.make()
        time.sleep(0.05)
    assert len(looks) == 2
