"""Names of the types of messages and services, as in the ROS graph."""

from __future__ import annotations

from typing import Any


def type_name(kind: Any) -> str:
    """Return the full name of a type of messages or services, such as nav_msgs/msg/Odometry."""
    package, folder, *_ = kind.__module__.split(".")
    return f"{package}/{folder}/{kind.__name__}"
