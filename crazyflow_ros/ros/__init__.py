"""The node: the simulation in ROS 2, one feature per module.

Names are what features and sensors of other packages need, and are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host
    from crazyflow_ros.ros.messages.numeric_message import stamped
    from crazyflow_ros.ros.sensors.devices import Device, Kind, SampleMessage
    from crazyflow_ros.ros.sensors.sampled_topics import SampleTopics

__all__ = ["Device", "Host", "Kind", "SampleMessage", "SampleTopics", "stamped"]

__getattr__ = lazy(
    __name__,
    {
        "Device": "sensors.devices",
        "Host": "host",
        "Kind": "sensors.devices",
        "SampleMessage": "sensors.devices",
        "SampleTopics": "sensors.sampled_topics",
        "stamped": "messages.numeric_message",
    },
)
