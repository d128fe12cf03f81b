"""Speed, memory and start-up time of the node, with a process that subscribes to its topics.

    python -m benchmark.node [seconds]

Prints a Markdown table. The node runs as fast as possible and publishes at 100 Hz of simulated
time; all drones hover, or fly circles. The process subscribes to the clock, transforms, and each
drone's odometry, pose, IMU and joint states, or to the two swarm topics instead of these, or also
to an IMU, a ranger and a lidar of 360 rays of each drone. The limit is a program in C++ that sends
the same messages to the same subscriber, bare_publisher.cpp.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from std_srvs.srv import SetBool

from benchmark.processes import compiled, ros, running, with_rcl
from crazyflow_ros.client import Session
from crazyflow_ros.client.simulator_process import SimulatorProcess
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


SENSORS = """
all:
  imu: {type: imu, rate: 500}
  tof: {type: range, rate: 50}
  scan: {type: lidar, rate: 10}
"""
OF_SENSORS = {"imu/data_raw": 500, "tof": 50, "scan": 10}
"""Rates of the sensor topics of each drone [Hz]; 40 does not divide 500."""


@dataclass(frozen=True)
class Case:
    """A measured configuration."""

    drones: int
    subscribed: Literal["each", "sensors", "swarm"]
    """Topics of each drone, the same with those of its sensors, or the swarm topics instead."""
    flies: bool = False
    """Whether the drones fly circles instead of hovering."""

    @property
    def names(self) -> list[str]:
        """Names of the drones."""
        return [f"cf{i}" for i in range(self.drones)]

    @property
    def rates(self) -> dict[str, int]:
        """Messages per simulated second of the subscribed topics."""
        rates = dict.fromkeys(("clock", "tf"), RATE)
        if self.subscribed == "swarm":
            return rates | dict.fromkeys(("crazyflow/odometry", "crazyflow/joint_states"), RATE)
        each = dict.fromkeys(("odom", "pose", "imu", "joint_states"), RATE)
        each |= OF_SENSORS if self.subscribed == "sensors" else {}
        return rates | {f"{x}/{kind}": rate for x in self.names for kind, rate in each.items()}

    @property
    def has_limit(self) -> bool:
        """Whether it is one of those that the bare publisher stands beside."""
        return not self.flies and self.subscribed != "sensors"

    def parameters(self, folder: Path) -> dict[str, str]:
        """Parameters of the node: in the air, as fast as possible, with files in a folder."""
        places = [(i % 10, i // 10, 1, 0) for i in range(self.drones)]
        parameters = {
            "drones": f"[{','.join(self.names)}]",
            "initial_poses": f"[{','.join(f'{x:.1f}' for place in places for x in place)}]",
            "real_time_factor": "0.0",
        }
        if self.subscribed == "sensors":
            (folder / "sensors.yaml").write_text(SENSORS)
            parameters["sensors"] = str(folder / "sensors.yaml")
        return parameters

    def count(self, seconds: float, file: Path) -> Received:
        """Count messages in another process for a wall time [s]; the file gets the latest ones."""
        mode = "fly" if self.flies else "hover"
        output = subprocess.run(
            [
                *(sys.executable, "-m", "benchmark.subscriber"),
                *(str(seconds), str(file), mode, *self.rates),
            ],
            stdout=subprocess.PIPE,
            check=True,
            timeout=seconds + 200,
        ).stdout
        seen = json.loads(output.splitlines()[-1])
        sent, received = seen["simulated"] * sum(self.rates.values()), seen["received"]
        return Received(seen["simulated"] / seen["wall"], received / seconds, 1 - received / sent)


CASES = (
    *(Case(n, "each") for n in (1, 10, 100)),
    Case(100, "swarm"),
    Case(10, "each", flies=True),
    Case(10, "sensors"),
)


class Received(NamedTuple):
    """What a subscriber received."""

    factor: float
    """Real-time factor."""
    rate: float
    """Messages per second of wall time."""
    lost: float
    """Fraction of the messages sent."""

    def __str__(self) -> str:
        """Format rate and loss as cells of a table."""
        return f"{self.rate:.0f} | {100 * max(self.lost, 0):.0f} %"


@dataclass(frozen=True)
class Result:
    """A row of the table."""

    case: Case
    node: Received
    bare: Received | None
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
        bare = f"{self.bare} | {self.node.rate / self.bare.rate:.2f}" if self.bare else " |  | "
        return (
            f"| {self.case.drones} | {self.case.subscribed}{', flying' if self.case.flies else ''}"
            f" | {self.node.factor:.1f} | {self.node} | {bare}"
            f" | {self.cores:.2f} | {self.memory:.0f} MB"
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
    parameters = case.parameters(folder)
    environment = {"XDG_CACHE_HOME": str(folder)}
    log = folder / "simulator.log"
    with SimulatorProcess(parameters, log, environment) as simulator:
        cold = time_until_ready(simulator)
    with SimulatorProcess(parameters, log, environment) as simulator:
        warm = time_until_ready(simulator)
        used, began = processor_time(simulator.pid), time.monotonic()
        messages = folder / "messages"
        node = case.count(seconds, messages)
        simulator.check()
        memory = peak_memory(simulator.pid)
        cores = (processor_time(simulator.pid) - used) / (time.monotonic() - began)
    bare = None
    if case.has_limit:
        with running(publisher, str(messages), environment=MIDDLEWARE):
            bare = case.count(seconds, Path(os.devnull))
    return Result(case, node, bare, cores, memory, cold, warm)


def time_until_ready(simulator: SimulatorProcess) -> float:
    """Return the seconds until a node just started responds to a service call."""
    began = time.monotonic()
    with Session("benchmark", check=simulator.check) as session:
        session.call(SetBool, "crazyflow/pause", READY_TIMEOUT, data=False)
        return time.monotonic() - began


def processor_time(pid: int) -> float:
    """Return the processor time of all threads of a process [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid: int) -> float:
    """Return the largest resident memory of a process [MB]."""
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
