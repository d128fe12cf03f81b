"""Messages in which only times and numbers change, as rows of tables.

Topics, sensors and logs describe their messages in this way; `cdr` serialises them once, and
`outbox` sends them with new numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from crazyflow_ros.ros.messages.cdr import HEADER, XYZ, XYZW, Layout, below, layout

Source = TypeVar("Source")
"""Where the numbers of messages are read from."""

POSE = (below("pose.position", XYZ), below("pose.orientation", XYZW))
"""Paths in `PoseStamped`."""
ODOMETRY = (
    below("pose.pose.position", XYZ),
    below("pose.pose.orientation", XYZW),
    below("twist.twist.linear", XYZ),
    below("twist.twist.angular", XYZ),
)
"""Paths in `Odometry`."""
READINGS = (below("angular_velocity", XYZ), below("linear_acceleration", XYZ))
"""Paths in `Imu`, without the orientation."""
EXACT = 1e-9
"""Variance of exact numbers in their unit squared, because readers take zero for unknown: that with
which robot_localization replaces zeros."""


@dataclass(frozen=True)
class NumericMessage(Generic[Source]):
    """A message in which only times and numbers change, for each drone or for all in one."""

    template: Callable[[str], Any]
    """Takes the drone; returns its message, with zeros for the numbers that change."""
    paths: Sequence[Sequence[str]]
    """Blocks of paths of numbers, see `cdr.layout`."""
    values: Callable[[Source], Sequence[np.ndarray]]
    """Returns the numbers of all drones, a float64 array (M, paths) for each block."""
    stamps: Sequence[str] = HEADER
    """Paths of the times."""

    @property
    def kind(self) -> Any:
        """Type of the message."""
        return type(self.template(""))

    def layout(self, drones: Iterable[str]) -> Layout:
        """Serialise the messages of some drones."""
        return layout([self.template(drone) for drone in drones], self.paths, self.stamps)


def stamped(message: Any, frame: Callable[[str], str]) -> Callable[[str], Any]:
    """Return a template: a message with the frame of the drone in its header."""

    def template(drone: str) -> Any:
        own = deepcopy(message)
        own.header.frame_id = frame(drone)
        return own

    return template


def diagonal(variances: Sequence[float] | np.ndarray) -> list[float]:
    """Return the covariance matrix of independent errors, row by row."""
    return np.diag(np.asarray(variances, float)).ravel().tolist()


def elements(array: str, n: int) -> list[str]:
    """Return the paths of the elements of an array of `n` numbers."""
    return [f"{array}.{i}" for i in range(n)]


def in_elements(array: str, n: int, path: str, names: Sequence[str]) -> list[str]:
    """Return the paths of the fields `names` of the field at `path` of each of `n` elements."""
    return [f"{element}.{path}.{name}" for element in elements(array, n) for name in names]
