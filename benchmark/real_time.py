"""Timing of the node, compared with a loop that only sleeps.

    python -m benchmark.real_time [seconds]

Prints a Markdown table and the drift, best measured over 600 seconds. At a real-time factor of 1
and 500 Hz the node publishes clock and joint states at each tick, and this process records their
times of arrival. Intervals should be 2 ms. The delay is the time from a rotor speed command,
published at a random time, to the arrival of the first state with its effect; on average half a
period of it is the wait for the next tick.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from benchmark.processes import ros
from crazyflow_ros.client.simulator_process import SimulatorProcess

FREQ = 500
SPEEDS = (1000.0, 2000.0)  # rad/s, of all rotors, in turn
COMMAND_PERIOD = 0.3  # s, plus up to a tick; rotors are then near the commanded speed
READY_TIMEOUT = 60.0  # s
BARE_SECONDS = 20.0  # maximum for the bare loop
HEAD = "| ms | median | 99 % | 99.9 % | longest |\n|---|---:|---:|---:|---:|"
PARAMETERS = {
    "control": "rotor_vel",
    "freq": str(FREQ),
    "publish_rates.clock": str(FREQ),
    "publish_rates.joint_states": str(FREQ),
}


def timer_loop(seconds: float) -> np.ndarray:
    """Return the wake-up times of a loop that sleeps until the next multiple of the period [s]."""
    times, start = [], time.monotonic()
    for i in range(int(seconds * FREQ)):
        time.sleep(max(0.0, start + i / FREQ - time.monotonic()))
        times.append(time.monotonic())
    return np.array(times)


class Observer:
    """A recorder of arrival times that also commands the rotors."""

    def __init__(self, node: Node) -> None:
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(node)
        self.clock: list[tuple[float, float]] = []
        self.delays: list[float] = []
        self._sent, self._told, self._speed = 0.0, 0, 0.0
        self._random = np.random.default_rng(0)
        self._next_command = 0.0
        node.create_subscription(Clock, "/clock", self._on_clock, 100)
        node.create_subscription(JointState, "cf0/joint_states", self._on_state, 100)
        self._publisher = node.create_publisher(Float64MultiArray, "cf0/command", 1)

    def run(self, seconds: float) -> None:
        """Record for a time, from the first message on."""
        self._next_command = math.inf
        self._until(lambda: self.clock and self._publisher.get_subscription_count(), READY_TIMEOUT)
        self._next_command = 0.0
        self.clock.clear()
        end = time.monotonic() + seconds
        self._until(lambda: time.monotonic() > end, seconds + 1.0)

    def _until(self, condition: Callable[[], object], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no simulator within {timeout:g} s")
            self.executor.spin_once(timeout_sec=0.001)
            if not self._sent and time.monotonic() > self._next_command:
                self._told = 1 - self._told
                command = Float64MultiArray(data=[SPEEDS[self._told]] * 4)
                self._sent = time.monotonic()
                self._publisher.publish(command)

    def _on_clock(self, message: Clock) -> None:
        now = time.monotonic()
        self.clock.append((now, message.clock.sec + 1e-9 * message.clock.nanosec))

    def _on_state(self, message: JointState) -> None:
        now, (speed, *_) = time.monotonic(), message.velocity
        if self._sent and self._shows(speed):
            self.delays.append(now - self._sent)
            self._sent = 0.0
            self._next_command = now + COMMAND_PERIOD + self._random.uniform(0, 1 / FREQ)
        self._speed = speed

    def _shows(self, speed: float) -> bool:
        """Return whether the rotors have begun to follow the command."""
        return (speed > self._speed) if self._told else (speed < self._speed)


def _row(name: str, seconds: np.ndarray) -> str:
    figures = [*np.percentile(seconds, (50, 99, 99.9)), seconds.max()]
    return f"| {name} | " + " | ".join(f"{1e3 * figure:.2f}" for figure in figures) + " |"


def _drift(wall: np.ndarray, stamps: np.ndarray) -> tuple[float, float]:
    """Return the total lag of the simulation [s], and the lag per second.

    The latter is a median, because the schedule deliberately restarts after a stall. Messages are
    never early, so the earliest of each second is the best estimate of the schedule.
    """
    late, second = wall - stamps, np.floor(wall - wall[0])
    behind = np.diff([late[second == each].min() for each in np.unique(second)])
    return float(behind.sum()), float(np.median(behind))


def main(seconds: float = 20.0) -> None:
    """Measure for a wall time [s]."""
    with ros(), tempfile.TemporaryDirectory() as folder:
        observer = Observer(rclpy.create_node("observer"))
        with SimulatorProcess(PARAMETERS, Path(folder) / "simulator.log") as simulator:
            observer.run(seconds)
            simulator.check()
        bare = timer_loop(min(seconds, BARE_SECONDS))
    wall, stamps = np.array(observer.clock).T
    print(HEAD)
    print(_row("interval of a bare loop", np.diff(bare)))
    print(_row("interval of /clock", np.diff(wall)))
    print(_row("delay from command to state", np.array(observer.delays)))
    expected = round((stamps[-1] - stamps[0]) * FREQ) + 1
    missing = expected - len(np.unique(stamps))
    behind, drift = _drift(wall, stamps)
    passed = wall[-1] - wall[0]
    print(
        f"\nIn {passed:.0f} s simulated time fell behind by {1e3 * behind:.2f} ms with all stalls, "
        f"and by {1e6 * drift:.2f} ppm in the median second; "
        f"{missing} of {expected} clock messages were missing."
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
