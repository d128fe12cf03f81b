"""The parameter `drone_model` of the node and the demonstrations."""

from __future__ import annotations

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.drones.figures import load_drone
from crazyflow_ros.drones.folders import Drone, resolve


def own_drone(text: str) -> str:
    """Check the figures of a user's drone, and return the absolute path of its folder.

    Raises:
        ValueError: There is no such drone, or a figure is wrong.
    """
    if "/" not in text:
        raise ParameterError("drone_model", f"one of {', '.join(Drone)}", text)
    try:
        load_drone(text)
        return resolve(text)
    except ValueError as error:
        raise ValueError(f"drone_model: {error}") from None
