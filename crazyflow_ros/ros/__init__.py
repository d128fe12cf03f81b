"""The node: the simulation in ROS 2, one feature per module.

Names are what features, sensors and programs of other packages need, and are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.ros.discovery import published, simulators
    from crazyflow_ros.ros.host import Host
    from crazyflow_ros.ros.messages.numeric_message import stamped
    from crazyflow_ros.ros.middleware import configure_middleware, stay_on_this_machine
    from crazyflow_ros.ros.sensors.devices import Device, Kind, SampleMessage
    from crazyflow_ros.ros.sensors.sampled_topics import SampleTopics

__all__ = [
    "Device",
    "Host",
    "Kind",
    "SampleMessage",
    "SampleTopics",
    "configure_middleware",
    "published",
    "simulators",
    "stamped",
    "stay_on_this_machine",
]

__getattr__ = lazy(
    __name__,
    {
        "Device": "sensors.devices",
        "Host": "host",
        "Kind": "sensors.devices",
        "SampleMessage": "sensors.devices",
        "SampleTopics": "sensors.sampled_topics",
        "configure_middleware": "middleware",
        "published": "discovery",
        "simulators": "discovery",
        "stamped": "messages.numeric_message",
        "stay_on_this_machine": "middleware",
    },
)

MODULES = (
    "commands",
    "discovery",
    "equipment",
    "extensions",
    "features",
    "guarded_node",
    "host",
    "launch_support",
    "messages",
    "middleware",
    "node",
    "optional_features",
    "parameters",
    "process",
    "recording",
    "robot_description",
    "sensors",
    "service_answers",
    "topics",
)
"""Modules that extensions may import, with all their public names."""
