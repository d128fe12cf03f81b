"""What it costs the node that drones fly: ten on courses of the commander beside ten that hover.

    python -m benchmark.flying [seconds]

Prints a Markdown table. One node, as fast as it can, has the drones hover and fly in turns, with
all topics of `benchmark.node` subscribed, and with none. They fly circles, on trajectories of
polynomials that change every 0.75 s, each drone's at times of its own; where nothing is subscribed,
clock and odometry are read before and after.
"""

from __future__ import annotations

import os
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
from rclpy.signals import SignalHandlerOptions
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from benchmark.node import Case, processor_time, time_until_ready
from benchmark.subscriber import TIMEOUT, Subscriber
from crazyflow_ros.demo.simulator import SimulatorProcess

CASE = Case(10, True)
TURNS = 5
SETTLE = 20.0  # s simulated, until drones do what they were told
RADIUS, HEIGHT = 0.3, 1.0  # m
POINTS, PERIOD = 8, 6.0  # of a circle; s
JOIN = 3.0  # s, until a drone is on its circle
MOST_POINTS = 1000  # of a trajectory
SLOWEST = 0.2  # m/s, of a drone that flies; it is to fly at 0.31
HEAD = (
    "| 10 drones, topics | hover, real-time factor | fly | ratio | median of turns"
    " | s simulated per s of the node's processor time, hover | fly | ratio |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|"
)


class Speed(NamedTuple):
    """How fast the node was for some time."""

    factor: float
    """Real-time factor."""
    per_processor: float
    """Simulated seconds per second of the node's processor time."""


class Pilot:
    """Tells all drones what to do."""

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
        """Stay where they are."""
        for publisher in self._hover:
            publisher.publish(TwistStamped())

    def fly(self) -> None:
        """Fly circles for 750 s."""
        for i, publisher in enumerate(self._fly):
            publisher.publish(circles(i % 10, i // 10))


def circles(x: float, y: float) -> MultiDOFJointTrajectory:
    """Circles around a place, as many as a trajectory can have."""
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
    """Simulated time and wall time [s], and the speed of each drone (10,) [m/s]."""
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
    """How fast the node is with drones that were told to fly, or to hover.

    Raises:
        RuntimeError: They do something else.
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
    """Of each turn, how fast the node was with drones that hover, and with drones that fly."""
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
    """A row in Markdown, of means over all turns."""
    hover, fly = (np.mean([turn[i] for turn in turns], axis=0) for i in (0, 1))
    middle = median(flying.factor / hovering.factor for hovering, flying in turns)
    return (
        f"| {topics} | {hover[0]:.1f} | {fly[0]:.1f} | {fly[0] / hover[0]:.2f} | {middle:.2f}"
        f" | {hover[1]:.1f} | {fly[1]:.1f} | {fly[1] / hover[1]:.2f} |"
    )


def main(seconds: float = 4.0) -> None:
    """Measure both rows; each of their turns takes twice a time in wall seconds, and some more."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    print(HEAD, flush=True)
    for name, topics in (("each", CASE.topics), ("none", [])):
        with tempfile.TemporaryDirectory() as folder:
            print(row(name, compare(topics, seconds, Path(folder))), flush=True)
    rclpy.shutdown()


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
