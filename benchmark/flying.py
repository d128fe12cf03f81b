"""Cost of flying for the node: ten drones on courses of the commander, compared with hovering.

    python -m benchmark.flying [seconds]

Prints a Markdown table. In one node at full speed the drones hover and fly in turns, with
subscriptions to all topics of `benchmark.node` and without any. They fly circles on trajectories of
polynomials that change every 0.75 s, at different times for each drone. Without subscriptions,
clock and odometry are read before and after.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import rclpy
from geometry_msgs.msg import Transform, Twist, TwistStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from benchmark.node import Case, processor_time, time_until_ready
from benchmark.processes import ros
from benchmark.subscriber import TIMEOUT, Subscriber
from crazyflow_ros.demo.simulator import SimulatorProcess

CASE = Case(10, True)
TURNS = 5
SETTLE = 20.0  # simulated s for drones to settle
RADIUS, HEIGHT = 0.3, 1.0  # m
POINTS, PERIOD = 8, 6.0  # per circle; s
JOIN = 3.0  # s for a drone to join its circle
MOST_POINTS = 1000  # of a trajectory
SLOWEST = 0.2  # m/s, lower limit for a flying drone; the nominal speed is 0.31
HEAD = (
    "| 10 drones, topics | hover, real-time factor | fly | ratio | median of turns"
    " | s simulated per s of the node's processor time, hover | fly | ratio |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|"
)


class Speed(NamedTuple):
    """Speed of the node over an interval."""

    factor: float
    """Real-time factor."""
    per_processor: float
    """Simulated seconds per second of the node's processor time."""


class Pilot:
    """A client that commands all drones."""

    def __init__(self, node: Node) -> None:
        self._hover = self._publishers(node, TwistStamped, "cmd_vel")
        self._fly = self._publishers(node, MultiDOFJointTrajectory, "cmd_trajectory")

    @staticmethod
    def _publishers(node: Node, kind: type, topic: str) -> list[Publisher[Any]]:
        publishers: list[Publisher[Any]] = [
            node.create_publisher(kind, f"{name}/{topic}", 1) for name in CASE.names
        ]
        deadline = time.monotonic() + TIMEOUT
        while not all(publisher.get_subscription_count() for publisher in publishers):
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody listens to {topic} after {TIMEOUT:g} s")
            time.sleep(0.02)
        return publishers

    def hover(self) -> None:
        """Hover."""
        for publisher in self._hover:
            publisher.publish(TwistStamped())

    def fly(self) -> None:
        """Fly circles for 750 s."""
        for i, publisher in enumerate(self._fly):
            publisher.publish(circles(i % 10, i // 10))


def circles(x: float, y: float) -> MultiDOFJointTrajectory:
    """Return circles around a position, as many as fit into a trajectory."""
    message = MultiDOFJointTrajectory()
    rate = 2 * np.pi / PERIOD
    for k in range(MOST_POINTS):
        angle = 2 * np.pi * k / POINTS
        ahead, left = np.cos(angle), np.sin(angle)
        place, vel, acc = Transform(), Twist(), Twist()
        place.translation.x, place.translation.y = x + RADIUS * ahead, y + RADIUS * left
        place.translation.z = HEIGHT
        vel.linear.x, vel.linear.y = -RADIUS * rate * left, RADIUS * rate * ahead
        acc.linear.x, acc.linear.y = -RADIUS * rate**2 * ahead, -RADIUS * rate**2 * left
        point = MultiDOFJointTrajectoryPoint(
            transforms=[place], velocities=[vel], accelerations=[acc]
        )
        seconds = JOIN + k * PERIOD / POINTS
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = round(seconds % 1 * 1e9)
        message.points.append(point)
    return message


def look() -> tuple[float, float, np.ndarray]:
    """Return simulated time and wall time [s], and the speeds of the drones (10,) [m/s]."""
    node = rclpy.create_node("look")
    subscriber = Subscriber(node)
    subscriber.subscribe(["clock", "crazyflow/odometry"])
    vel = [(v.x, v.y, v.z) for v in (t.linear for t in subscriber.latest_swarm().twist)]
    simulated, wall = subscriber.clock()
    node.destroy_node()
    return simulated, wall, np.linalg.norm(vel, axis=1)


def measure(
    simulator: SimulatorProcess, subscriber: Subscriber, seconds: float, *, flies: bool
) -> Speed:
    """Measure the speed of the node with drones commanded to fly, or to hover.

    Raises:
        RuntimeError: The drones do not follow the command.
    """
    begin, _, _ = look()
    while look()[0] < begin + SETTLE:
        subscriber.spin(0.1)
    begin, began, speeds = look()
    used = processor_time(simulator.pid)
    subscriber.spin(seconds)
    used = processor_time(simulator.pid) - used
    end, ended, later = look()
    if ((speeds > SLOWEST) != flies).any() or ((later > SLOWEST) != flies).any():
        raise RuntimeError(f"drones {'hover' if flies else 'fly'}: {speeds} then {later} m/s")
    return Speed((end - begin) / (ended - began), (end - begin) / used)


def compare(topics: list[str], seconds: float, folder: Path) -> list[tuple[Speed, Speed]]:
    """Return the speed of the node in each turn, with hovering and with flying drones."""
    environment = {"XDG_CACHE_HOME": str(folder)}
    with SimulatorProcess(CASE.parameters(), folder / "simulator.log", environment) as simulator:
        time_until_ready(simulator)
        node = rclpy.create_node("pilot")
        pilot, subscriber = Pilot(node), Subscriber(node)
        subscriber.subscribe(topics)
        turns = []
        for _ in range(TURNS):
            pilot.hover()
            hovering = measure(simulator, subscriber, seconds, flies=False)
            pilot.fly()
            turns.append((hovering, measure(simulator, subscriber, seconds, flies=True)))
        node.destroy_node()
    return turns


def row(topics: str, turns: list[tuple[Speed, Speed]]) -> str:
    """Format a Markdown row of means over all turns."""
    hover, fly = (np.mean([turn[i] for turn in turns], axis=0) for i in (0, 1))
    middle = median(flying.factor / hovering.factor for hovering, flying in turns)
    return (
        f"| {topics} | {hover[0]:.1f} | {fly[0]:.1f} | {fly[0] / hover[0]:.2f} | {middle:.2f}"
        f" | {hover[1]:.1f} | {fly[1]:.1f} | {fly[1] / hover[1]:.2f} |"
    )


def main(seconds: float = 4.0) -> None:
    """Measure both rows; a turn takes somewhat more than twice the wall time [s]."""
    print(HEAD, flush=True)
    for name, topics in (("each", CASE.topics), ("none", [])):
        with ros(), tempfile.TemporaryDirectory() as folder:
            print(row(name, compare(topics, seconds, Path(folder))), flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
