"""Speed, memory and start-up time of the node, with a process that subscribes to its topics.

    python -m benchmark.node [seconds]

Prints a Markdown table. The node runs as fast as possible and publishes at 100 Hz of simulated
time; all drones hover. The process subscribes to the clock, transforms, and each drone's odometry,
pose, IMU and joint states, or to the two swarm topics instead of these. The limit is a program in
C++ that sends the same messages to the same subscriber, bare_publisher.cpp.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import rclpy
from rclpy.client import Client
from std_srvs.srv import SetBool

from benchmark.processes import compiled, ros, running, with_rcl
from crazyflow_ros.demo.simulator import SimulatorProcess
from crazyflow_ros.resources import resource

RATE = 100  # Hz of simulated time, for all topics
READY_TIMEOUT = 120.0  # s
MIDDLEWARE = {
    "FASTDDS_DEFAULT_PROFILES_FILE": str(resource("config", "fastdds.xml")),
    "RMW_FASTRTPS_USE_QOS_FROM_XML": "1",
}
"""Environment variables that the node sets for itself."""
HEAD = (
    "| drones | topics | real-time factor | messages/s received | lost | bare publisher | lost"
    " | of the bare | cores used | memory | ready, cold | ready, warm |\n|---:|---|" + "---:|" * 10
)


@dataclass(frozen=True)
class Case:
    """A measured configuration."""

    drones: int
    each: bool
    """Whether to subscribe to the topics of each drone instead of the swarm topics."""

    @property
    def names(self) -> list[str]:
        """Names of the drones."""
        return [f"cf{i}" for i in range(self.drones)]

    @property
    def topics(self) -> list[str]:
        """Subscribed topics."""
        swarm = ["crazyflow/odometry", "crazyflow/joint_states"]
        kinds = ("odom", "pose", "imu", "joint_states")
        each = [f"{name}/{kind}" for name in self.names for kind in kinds]
        return ["clock", "tf", *(each if self.each else swarm)]

    @property
    def rate(self) -> int:
        """Messages per simulated second of all subscribed topics."""
        return RATE * len(self.topics)

    def parameters(self) -> dict[str, str]:
        """Parameters of the node: flying, as fast as possible."""
        places = [(i % 10, i // 10, 1, 0) for i in range(self.drones)]
        return {
            "drones": f"[{','.join(self.names)}]",
            "initial_poses": f"[{','.join(f'{x:.1f}' for place in places for x in place)}]",
            "real_time_factor": "0.0",
        }


CASES = (Case(1, True), Case(10, True), Case(100, True), Case(100, False))


class Received(NamedTuple):
    """What a subscriber received."""

    factor: float
    """Real-time factor."""
    rate: float
    """Messages per second of wall time."""
    arrived: float
    """Fraction of the messages sent."""

    @classmethod
    def of(
        cls, topics: Sequence[str], rate: float, seconds: float, file: Path = Path(os.devnull)
    ) -> Self:
        """Count messages in another process.

        Args:
            topics: Topics, first clock.
            rate: Messages per simulated second.
            seconds: Wall time [s].
            file: Gets the latest messages.
        """
        output = subprocess.run(
            [sys.executable, "-m", "benchmark.subscriber", str(seconds), str(file), *topics],
            stdout=subprocess.PIPE,
            check=True,
            timeout=seconds + 200,
        ).stdout
        seen = json.loads(output.splitlines()[-1])
        sent = seen["simulated"] * rate
        received = seen["received"]
        return cls(seen["simulated"] / seen["wall"], received / seconds, min(received / sent, 1.0))

    def __str__(self) -> str:
        """Format rate and loss as cells of a table."""
        return f"{self.rate:.0f} | {100 * (1 - self.arrived):.0f} %"


@dataclass(frozen=True)
class Result:
    """A row of the table."""

    case: Case
    node: Received
    bare: Received
    cores: float
    """Processor time of the node over wall time."""
    memory: float
    """Largest resident memory, MB."""
    ready_cold: float
    """Time from the start of the process to the first service response with an empty cache, s."""
    ready_warm: float
    """The same with the cache of an earlier run, s."""

    def row(self) -> str:
        """Format the row as Markdown."""
        return (
            f"| {self.case.drones} | {'each' if self.case.each else 'swarm'}"
            f" | {self.node.factor:.1f} | {self.node} | {self.bare}"
            f" | {self.node.rate / self.bare.rate:.2f} | {self.cores:.2f} | {self.memory:.0f} MB"
            f" | {self.ready_cold:.1f} s | {self.ready_warm:.1f} s |"
        )


def measure(case: Case, publisher: str, seconds: float, folder: Path) -> Result:
    """Run the node twice with its own compilation cache, the second time with a subscriber.

    Args:
        case: The configuration.
        publisher: Program that sends the same messages.
        seconds: Wall time of the measurement [s].
        folder: Empty folder for the cache and the node's log.
    """
    parameters = case.parameters()
    environment = {"XDG_CACHE_HOME": str(folder)}
    log = folder / "simulator.log"
    with SimulatorProcess(parameters, log, environment) as simulator:
        cold = time_until_ready(simulator)
    with SimulatorProcess(parameters, log, environment) as simulator:
        warm = time_until_ready(simulator)
        used, began = processor_time(simulator.pid), time.monotonic()
        messages = folder / "messages"
        node = Received.of(case.topics, case.rate, seconds, messages)
        simulator.check()
        memory = _peak_memory(simulator.pid)
        cores = (processor_time(simulator.pid) - used) / (time.monotonic() - began)
    with running(publisher, str(messages), environment=MIDDLEWARE):
        bare = Received.of(case.topics, case.rate, seconds)
    return Result(case, node, bare, cores, memory, cold, warm)


def time_until_ready(simulator: SimulatorProcess) -> float:
    """Return the seconds until a node just started responds to a service call."""
    began = time.monotonic()
    node = rclpy.create_node("benchmark")
    client: Client[Any, Any] = node.create_client(SetBool, "crazyflow/pause")
    try:
        while time.monotonic() < began + READY_TIMEOUT:
            simulator.check()
            if not client.wait_for_service(0.05):
                continue
            reply = client.call_async(SetBool.Request(data=False))
            rclpy.spin_until_future_complete(node, reply, timeout_sec=READY_TIMEOUT)
            return time.monotonic() - began
        raise TimeoutError(f"the node was not ready after {READY_TIMEOUT:g} s")
    finally:
        node.destroy_node()


def processor_time(pid: int) -> float:
    """Return the processor time of all threads of a process [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(line.split() for line in lines if line.startswith("VmHWM"))
    return int(peak[1]) * 1024 / 1e6


def main(seconds: float = 10.0) -> None:
    """Measure each row for a wall time [s]."""
    with tempfile.TemporaryDirectory() as name, ros():
        publisher = compiled("benchmark/bare_publisher.cpp", Path(name), *with_rcl())
        print(HEAD, flush=True)
        for case in CASES:
            with tempfile.TemporaryDirectory(dir=name) as folder:
                print(measure(case, publisher, seconds, Path(folder)).row(), flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
