"""Speed of crazyswarm2's server with the topics of its own configuration on.

    python -m benchmark.crazyswarm [seconds]

Prints a Markdown table. The drones hover, and a process subscribes to /clock, /tf, and each drone's
pose at 10 Hz and status at 1 Hz. crazyswarm2's own simulator, of which only /clock is subscribed,
stands beside it if the variable CRAZYSWARM2 is set to a checkout of crazyswarm2, and
CRAZYSWARM2_PYTHON to a Python with rclpy, rowan and the firmware's Python bindings.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

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

CHECKOUT, PYTHON = "CRAZYSWARM2", "CRAZYSWARM2_PYTHON"
"""Variables with the folder of crazyswarm2, and with a Python that can run its simulator."""
QUOTED = {1: 0.70, 5: 0.15, 16: 0.05}
"""Real-time factors by number of drones, from https://github.com/IMRCLab/crazyswarm2/issues/890."""
READY_TIMEOUT = 120.0  # s
SETTLE = 3.0  # s of wall time between take-off and measurement
HEAD = (
    "| drones | real-time factor | messages/s received | crazyswarm2's simulator | ratio"
    " | crazyswarm2's, in its issue 890 |\n|---:|---:|---:|---:|---:|---:|"
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


class Measured(NamedTuple):
    """What was measured."""

    factor: float
    """Real-time factor."""
    rate: float
    """Messages received per second of wall time."""


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


@contextmanager
def ours(n_drones: int) -> Iterator[None]:
    """Run this project's server."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crazyflies.yaml"
        path.write_text(yaml.safe_dump(configuration(n_drones)))
        parameters = (f"crazyflies_yaml_file:={path}", "real_time_factor:=0.0")
        arguments = [text for parameter in parameters for text in ("-p", parameter)]
        program = (sys.executable, "-m", "crazyflow_ros", "crazyflie-server", "--ros-args")
        with running(*program, *arguments):
            yield


@contextmanager
def theirs(n_drones: int) -> Iterator[None]:
    """Run crazyswarm2's simulator, as its own files configure it but without transforms."""
    checkout = Path(os.environ[CHECKOUT])
    simulation = yaml.safe_load((checkout / "crazyflie/config/server.yaml").read_text())
    parameters = simulation["/crazyflie_server"]["ros__parameters"] | configuration(n_drones)
    parameters["sim"]["visualizations"] = {"rviz": {"enabled": False}}  # /tf needs tf2_ros
    parameters["robot_types"] = {"cf21": {"connection": "crazyflie"}}
    parameters["robot_description"] = "<robot name='$NAME'/>"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/crazyflie_server": {"ros__parameters": parameters}}))
        program = "from crazyflie_sim.crazyflie_server import main; main()"
        arguments = ("--ros-args", "--params-file", str(path))
        packages = [str(checkout / "crazyflie_sim"), os.environ.get("PYTHONPATH", "")]
        environment = {"PYTHONPATH": os.pathsep.join(packages)}
        with running(os.environ[PYTHON], "-c", program, *arguments, environment=environment):
            yield


def measure(server: AbstractContextManager[None], n_drones: int, seconds: float) -> Measured:
    """Run a server, and measure it for a wall time [s]."""
    with server:
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
) -> Measured:
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
    return Measured(
        (counter.time - time_before) / wall, (counter.received - received_before) / wall
    )


def main(seconds: float = 10.0) -> None:
    """Print the table."""
    print(HEAD)
    with ros():
        for n_drones, quoted in QUOTED.items():
            factor, rate = measure(ours(n_drones), n_drones, seconds)
            beside = "not run | "
            if os.environ.get(CHECKOUT) and os.environ.get(PYTHON):
                their_factor = measure(theirs(n_drones), n_drones, seconds).factor
                beside = f"{their_factor:.3f} | {factor / their_factor:.0f}"
            print(
                f"| {n_drones} | {factor:.1f} | {rate:.0f} | {beside} | {quoted:.2f} |", flush=True
            )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
