"""Speed of crazyswarm2's server with the topics of its own configuration on.

    python -m benchmark.crazyswarm [seconds]

Prints a Markdown table. The drones hover, and a process subscribes to /clock, /tf, and each drone's
pose at 10 Hz and status at 1 Hz. Beside it are the factors that crazyswarm2's issue 890 has for its
own simulator.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import rclpy
import yaml
from builtin_interfaces.msg import Duration
from crazyflie_interfaces.msg import Status
from crazyflie_interfaces.srv import Takeoff
from geometry_msgs.msg import PoseStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from tf2_msgs.msg import TFMessage

from benchmark.processes import ros, running

THEIRS = {1: 0.70, 5: 0.15, 16: 0.05}
"""Real-time factors by number of drones, from https://github.com/IMRCLab/crazyswarm2/issues/890."""
READY_TIMEOUT = 120.0  # s
SETTLE = 3.0  # s of wall time between take-off and measurement
HEAD = (
    "| drones | real-time factor | messages/s received | crazyswarm2's simulator (issue 890) |\n"
    "|---:|---:|---:|---:|"
)


def configuration(n_drones: int) -> dict[str, Any]:
    """Return a crazyflies.yaml with what is logged in crazyswarm2's own."""
    logging = {"pose": {"frequency": 10}, "status": {"frequency": 1}}
    robots = {
        f"cf{i}": {
            "enabled": True,
            "uri": f"radio://0/80/2M/E7E7E7E7{i:02X}",
            "initial_position": [float(i % 4), float(i // 4), 0.0],
            "type": "cf21",
        }
        for i in range(n_drones)
    }
    return {
        "fileversion": 3,
        "robots": robots,
        "all": {"firmware_logging": {"enabled": True, "default_topics": logging}},
    }


class Counter:
    """Counts messages, and notes the simulated time."""

    def __init__(self, node: Node, n_drones: int) -> None:
        self.received, self._latest = 0, b""
        node.create_subscription(Clock, "/clock", self._note, 100, raw=True)
        topics = {"/tf": TFMessage}
        for i in range(n_drones):
            topics |= {f"/cf{i}/pose": PoseStamped, f"/cf{i}/status": Status}
        for topic, kind in topics.items():
            node.create_subscription(kind, topic, self._count, 100, raw=True)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        if not self._latest:
            return 0.0
        clock = deserialize_message(self._latest, Clock).clock
        return float(clock.sec + clock.nanosec * 1e-9)

    def _note(self, data: bytes) -> None:
        self.received, self._latest = self.received + 1, data

    def _count(self, _: bytes) -> None:
        self.received += 1


def measure(n_drones: int, seconds: float) -> tuple[float, float]:
    """Return real-time factor and received messages per second."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crazyflies.yaml"
        path.write_text(yaml.safe_dump(configuration(n_drones)))
        parameters = (f"crazyflies_yaml_file:={path}", "real_time_factor:=0.0")
        arguments = [text for parameter in parameters for text in ("-p", parameter)]
        program = (sys.executable, "-m", "crazyflow_ros", "crazyflie-server", "--ros-args")
        with running(*program, *arguments):
            node = rclpy.create_node("benchmark")
            executor = SingleThreadedExecutor()
            executor.add_node(node)
            try:
                return _measure(node, executor, n_drones, seconds)
            finally:
                executor.shutdown()
                node.destroy_node()


def _measure(
    node: Node, executor: SingleThreadedExecutor, n_drones: int, seconds: float
) -> tuple[float, float]:
    takeoff: Any = node.create_client(Takeoff, "all/takeoff")
    if not takeoff.wait_for_service(READY_TIMEOUT):
        raise TimeoutError(f"the server is not ready after {READY_TIMEOUT} s")
    counter = Counter(node, n_drones)
    future = takeoff.call_async(Takeoff.Request(height=1.0, duration=Duration(sec=3)))
    executor.spin_until_future_complete(future, READY_TIMEOUT)

    def spin(seconds: float) -> float:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            executor.spin_once(seconds - passed)
        return passed

    spin(SETTLE)
    time_before, received_before = counter.time, counter.received
    wall = spin(seconds)
    return (counter.time - time_before) / wall, (counter.received - received_before) / wall


def main(seconds: float = 10.0) -> None:
    """Print the table."""
    print(HEAD)
    with ros():
        for n_drones, theirs in THEIRS.items():
            factor, rate = measure(n_drones, seconds)
            print(f"| {n_drones} | {factor:.1f} | {rate:.0f} | {theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
