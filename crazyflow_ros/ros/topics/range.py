"""<drone>/range: distance to what is below the drone, from the range sensors in the mirror."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sensor_msgs.msg import Range

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import layout
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.rangefinder import FIELD_OF_VIEW, MAX_RANGE

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


class RangeTopics(StateTopics):
    """Along the x axis of `<drone>/range_link`; infinite beyond the maximum (REP 117)."""

    def __init__(self, simulator: SimulatorNode) -> None:
        self._mirror = simulator.physics.mirror
        prototypes = []
        for drone in simulator.drones:
            message = Range(
                radiation_type=Range.INFRARED, field_of_view=FIELD_OF_VIEW, max_range=MAX_RANGE
            )
            message.header.frame_id = frame_ids.range_link(drone)
            prototypes.append(message)
        messages = layout(prototypes, ["header.stamp"], [], [["range"]])
        topics = [f"{drone}/range" for drone in simulator.drones]
        super().__init__(simulator, "range", Range, topics, messages)

    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """The physics thread has just written the snapshot into the mirror."""
        del snapshot
        return (self._mirror.range(),)


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    RangeTopics(simulator)
