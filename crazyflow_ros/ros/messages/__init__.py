"""Messages: serialisation, sending, frames and times.

Names are what other rooms need, and are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.ros.messages.cdr import XYZ, below, find_numbers
    from crazyflow_ros.ros.messages.geometry import heading, point, vector, xyz, xyzw
    from crazyflow_ros.ros.messages.message_definitions import definition, type_of
    from crazyflow_ros.ros.messages.numeric_message import elements
    from crazyflow_ros.ros.messages.qos import qos_for
    from crazyflow_ros.ros.messages.scene_markers import shapes_of
    from crazyflow_ros.ros.messages.serialisation import deserialised, serialised, type_name
    from crazyflow_ros.ros.messages.times import NS, STEADY, duration_of, nanoseconds, time_of

__all__ = [
    "NS",
    "STEADY",
    "XYZ",
    "below",
    "definition",
    "deserialised",
    "duration_of",
    "elements",
    "find_numbers",
    "heading",
    "nanoseconds",
    "point",
    "qos_for",
    "serialised",
    "shapes_of",
    "time_of",
    "type_name",
    "type_of",
    "vector",
    "xyz",
    "xyzw",
]

_NAMES = {
    "cdr": "XYZ below find_numbers",
    "geometry": "heading point vector xyz xyzw",
    "message_definitions": "definition type_of",
    "numeric_message": "elements",
    "qos": "qos_for",
    "scene_markers": "shapes_of",
    "serialisation": "deserialised serialised type_name",
    "times": "NS STEADY duration_of nanoseconds time_of",
}
__getattr__ = lazy(
    __name__, {name: module for module, names in _NAMES.items() for name in names.split()}
)

MODULES = ("frame_ids", "geometry", "numeric_message", "outbox", "tapped_publisher", "times")
"""Modules that extensions may import, with all their public names."""
