"""Transforms under the names of tf2_ros, for an environment that has no tf2_ros.

ROS's own package needs a library in C++ that the Python package index does not have. This one has
the parts that most Python nodes use, written anew over `crazyflow_ros.client.transform_tree`:
buffer, listener, broadcasters and exceptions. It lacks `Buffer.transform` with its conversions
(tf2_geometry_msgs), lookups through a fixed frame (`lookup_transform_full`), BufferClient,
BufferServer and message filters.
"""

from tf2_ros.buffer import Buffer
from tf2_ros.exceptions import (
    ConnectivityException,
    ExtrapolationException,
    InvalidArgumentException,
    LookupException,
    TimeoutException,
    TransformException,
)
from tf2_ros.static_transform_broadcaster import StaticTransformBroadcaster
from tf2_ros.transform_broadcaster import TransformBroadcaster
from tf2_ros.transform_listener import TransformListener

__all__ = [
    "Buffer",
    "ConnectivityException",
    "ExtrapolationException",
    "InvalidArgumentException",
    "LookupException",
    "StaticTransformBroadcaster",
    "TimeoutException",
    "TransformBroadcaster",
    "TransformException",
    "TransformListener",
]
