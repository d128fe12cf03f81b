"""The configuration of crazyswarm2's logging. No ROS."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.crazyswarm.tree import Tree, table

STEPS = 100
"""Steps per second, in which the periods of log blocks are counted."""
DEFAULT_TOPICS = ("pose", "scan", "odom", "status", "imu")
"""Topics with their own message types."""
_LONGEST_PERIOD = 255  # of a log block, in steps
_SLOWEST = math.ceil(10 * STEPS / _LONGEST_PERIOD) / 10  # Hz


@dataclass(frozen=True)
class LogTopic:
    """A topic with logged values of a drone."""

    name: str
    period: int
    """In hundredths of a second, derived from the frequency as in the firmware."""
    variables: tuple[str, ...] = ()
    """Names of the log variables; empty for topics with their own message types."""

    @classmethod
    def of(cls, name: str, frequency: Any, variables: Any, where: str) -> LogTopic:
        """Check the values of a topic.

        Args:
            name: Name of the topic.
            frequency: Frequency [Hz].
            variables: Names of log variables.
            where: Name of the topic for error messages.

        Raises:
            ParameterError: The frequency is out of range, or a variable is not a string.
        """
        is_number = type(frequency) in (int, float)
        if not is_number or not _SLOWEST <= frequency <= STEPS:
            expected = f"a number from {_SLOWEST:g} to {STEPS} Hz"
            raise ParameterError(f"{where}.frequency", expected, frequency)
        names = list(variables) if isinstance(variables, list | tuple) else [variables]
        if not all(isinstance(variable, str) for variable in names):
            raise ParameterError(f"{where}.vars", "names such as [acc.x, acc.y]", variables)
        return cls(name, int(STEPS / frequency), tuple(names))


def log_topics(logging: Tree) -> tuple[LogTopic, ...]:
    """Return the topics of the table `firmware_logging`.

    Raises:
        ParameterError: A topic is not one that crazyswarm2 has, or a value is not allowed.
    """
    where, topics = "firmware_logging.", []
    for name, values in table(logging, "default_topics", where).items():
        topic = f"{where}default_topics.{name}"
        if name not in DEFAULT_TOPICS:
            raise ParameterError(topic, unknown("default topic", name, DEFAULT_TOPICS))
        frequency = values.get("frequency") if isinstance(values, Mapping) else values
        topics.append(LogTopic.of(name, frequency, (), topic))
    for name, values in table(logging, "custom_topics", where).items():
        topic = f"{where}custom_topics.{name}"
        if not isinstance(values, Mapping) or "vars" not in values:
            raise ParameterError(topic, "frequency and vars", values)
        topics.append(LogTopic.of(name, values.get("frequency"), values["vars"], topic))
    return tuple(topics)
