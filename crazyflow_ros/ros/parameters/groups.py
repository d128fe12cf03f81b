"""Groups of the node's parameters, whose names begin with the group's name and a dot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from crazyflow_ros.checks.plain_values import Names, Numbers, Spec
from crazyflow_ros.crazyflie.decks import DECKS
from crazyflow_ros.crazyflie.link import LEAST_PORT, MOST_PORT
from crazyflow_ros.runtime import OnLoss

MAX_RATE = 100_000
"""Hz."""
_LEAST_BOUND = 0.05  # smallest limit of a flight other than 0, in m and s


def rate(what: str) -> Spec:
    """Return the specification of a rate that cannot be 0."""
    return Spec(f"Rate of {what} [Hz]; must divide freq", 1, MAX_RATE)


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


def _bound(what: str, unit: str, most: float) -> Spec:
    text = f"{what} for poses and velocities [{unit}]; 0: computed from the drone's mass and thrust"
    return Spec(text, 0.0, most, least=_LEAST_BOUND)


@dataclass(frozen=True)
class FlightParameters:
    """Limits of planned flights; they do not apply to `command` and `cmd_trajectory`."""

    speed: Annotated[float, _bound("Largest horizontal speed", "m/s", 50.0)] = 0.0
    climb: Annotated[float, _bound("Largest vertical speed", "m/s", 50.0)] = 0.0
    acceleration: Annotated[float, _bound("Largest horizontal acceleration", "m/s^2", 50.0)] = 0.0
    jerk: Annotated[float, _bound("Largest jerk", "m/s^3", 1000.0)] = 0.0
    yaw_rate: Annotated[float, _bound("Largest yaw rate", "rad/s", 20.0)] = 0.0
    velocity_timeout: Annotated[
        float,
        Spec("Time without cmd_vel or cmd_hover until the drone hovers [s]", 0.02, 10.0),
    ] = 0.5
    takeoff_height: Annotated[
        float, Spec("Height of automatic take-offs by cmd_vel and goal_pose [m]", 0.2, 100.0)
    ] = 0.5
    auto_arm: Annotated[bool, Spec("Commands arm a drone; if false, call <drone>/arm first")] = True
    exact_durations: Annotated[
        bool,
        Spec(
            "takeoff, land and go_to take exactly the given time, as in the firmware, even if the "
            "drone cannot follow; if false, they take longer then"
        ),
    ] = False


@dataclass(frozen=True)
class CrazyflieLink:
    """Connection of cflib and cfclient to the drones, by CRTP over UDP."""

    port: Annotated[
        int,
        Spec(
            "UDP port of the first drone; the others follow; 0: off; cflib looks from 19850 on",
            0,
            MOST_PORT,
            least=LEAST_PORT,
        ),
    ] = 0
    address: Annotated[
        str, Spec("Address of the network interface to listen on; 0.0.0.0: all of them")
    ] = "127.0.0.1"
    decks: Annotated[Names, Spec(f"Expansion decks of each drone, of {', '.join(DECKS)}")] = (
        "bcFlow2",
        "bcMultiranger",
    )
    anchors: Annotated[
        Numbers, Spec("x, y, z [m] of each radio anchor, for the deck bcDWM1000")
    ] = ()
    loss: Annotated[float, Spec("Share of packets that are lost, each way", 0.0, 0.99)] = 0.0
    latency: Annotated[float, Spec("Delay of packets [s of wall time], each way", 0.0, 10.0)] = 0.0
    storage: Annotated[
        str, Spec("Folder in which stored parameters survive a restart; empty: they do not")
    ] = ""
