"""<drone>/range: distance to the surface below, from the range sensors in the mirror.

They measure along the x axis of `<drone>/range_link`; infinite means beyond the maximum (REP 117).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sensor_msgs.msg import Range
from std_msgs.msg import Header

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.scene.rangefinder import FIELD_OF_VIEW, MAX_RANGE

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    mirror = simulator.physics.mirror
    StateTopics(
        simulator,
        "range",
        {
            f"{drone}/range": Range(
                header=Header(frame_id=frame_ids.range_link(drone)),
                radiation_type=Range.INFRARED,
                field_of_view=FIELD_OF_VIEW,
                max_range=MAX_RANGE,
            )
            for drone in simulator.drones
        },
        # The physics thread has just written the snapshot into the mirror.
        lambda _: (mirror.range(),),
        floats=[["range"]],
    )
