"""Groups of the node's parameters, whose names begin with the group's name and a dot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from crazyflow_ros.checks.plain_values import Spec
from crazyflow_ros.engine.config import MAX_RATE, rate
from crazyflow_ros.estimation.decks import USUAL, Anchors, DeckNames, RangingName, Stations
from crazyflow_ros.runtime import OnLoss


class Interfaces(StrEnum):
    """When a drone has topics and services of its own."""

    each = "each"
    """Always."""
    swarm = "swarm"
    """While another node publishes, subscribes or calls below the name of the drone."""
    none = "none"
    """Never."""


def _topic_rate(what: str) -> Spec:
    return Spec(f"Rate of {what} [Hz]; must divide freq; 0: off", 0, MAX_RATE)


@dataclass(frozen=True)
class PublishRates:
    """Publishing rates of topics per simulated second."""

    clock: Annotated[int, rate("/clock")] = 100
    odom: Annotated[int, _topic_rate("<drone>/odom")] = 100
    pose: Annotated[int, _topic_rate("<drone>/pose")] = 100
    imu: Annotated[int, _topic_rate("<drone>/imu")] = 100
    range: Annotated[int, _topic_rate("<drone>/range")] = 50
    joint_states: Annotated[int, _topic_rate("<drone>/joint_states")] = 100
    tf: Annotated[int, _topic_rate("/tf")] = 100
    swarm: Annotated[int, _topic_rate("~/odometry and ~/joint_states")] = 100


@dataclass(frozen=True)
class Ros2Control:
    """Connection to a controller manager of ros2_control."""

    mode: Annotated[
        str,
        Spec(
            "Source of commands. off: topics and services of this node; lock_step: ros2_control, "
            "each control period waits for its commands; free_running: ros2_control without "
            "waiting; topic: the same over topics, with stock plugins of ros2_control",
            choices=["off", "free_running", "lock_step", "topic"],
        ),
    ] = "off"
    rate: Annotated[int, rate("the controllers, the update_rate of the controller manager")] = 100
    shared_memory: Annotated[
        str, Spec("Name of the memory shared with the plugin; empty: from the node's name")
    ] = ""
    robots: Annotated[
        str,
        Spec(
            "Path of a URDF file of robots in the world, or name of one in urdf_mjcf, for the "
            "descriptions of controller managers; empty: none"
        ),
    ] = ""
    timeout: Annotated[
        float, Spec("Wall time to wait for a command in lock_step [s]", 0.001, 3600)
    ] = 1.0
    on_loss: Annotated[
        str,
        Spec(
            "Reaction of a drone that loses its controller: hold it in place, keep the last "
            "command, or stop its rotors",
            choices=list(OnLoss),
        ),
    ] = str(OnLoss.hold)


@dataclass(frozen=True)
class AutopilotProcesses:
    """Processes of the autopilot of the door, which the node starts and ends."""

    build: Annotated[
        str,
        Spec("Folder of a build of the autopilot, which is started for each drone; empty: none"),
    ] = ""
    work: Annotated[
        str,
        Spec("Folder for the parameters and logs of these autopilots; empty: <door>_work"),
    ] = ""
    wipe: Annotated[bool, Spec("Remove their folders in it first, so that they begin afresh")] = (
        False
    )


@dataclass(frozen=True)
class Decks:
    """Positioning equipment of the drones."""

    decks: DeckNames = USUAL
    anchors: Anchors = ()
    ranging: RangingName = "twr"
    lighthouse: Stations = ""
