"""Cost of the sensors of 10 drones for the node, with a process that subscribes to all topics.

    python -m benchmark.node_sensors [seconds]

Prints a Markdown table: the node at full speed with the default topics of each drone, and in turns
with an additional IMU at 500 Hz, time-of-flight ranger at 50 Hz (40 does not divide 500) and lidar
of 360 rays at 10 Hz on each drone: 5600 messages per simulated second in addition to 4200. No
reading is skipped; the table has the fraction of messages that arrived.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmark.node import Case, Received, time_until_ready
from benchmark.processes import ros
from crazyflow_ros.demo.simulator import SimulatorProcess

CASE = Case(10, True)
SENSORS = """
all:
  imu: {type: imu, rate: 500}
  tof: {type: range, rate: 50}
  scan: {type: lidar, rate: 10}
"""
RATES = {"imu/data_raw": 500, "tof": 50, "scan": 10}
"""Rates of the sensor topics of each drone [Hz]."""
ROUNDS = 2


def run(sensors: bool, seconds: float, folder: Path) -> Received:
    """Run the node, with or without sensors, and count its messages."""
    parameters = CASE.parameters()
    topics, rate = list(CASE.topics), float(CASE.rate)
    if sensors:
        (folder / "sensors.yaml").write_text(SENSORS)
        parameters["sensors"] = str(folder / "sensors.yaml")
        topics += [f"{name}/{topic}" for name in CASE.names for topic in RATES]
        rate += len(CASE.names) * sum(RATES.values())
    environment = {"XDG_CACHE_HOME": str(folder)}
    with SimulatorProcess(parameters, folder / "simulator.log", environment) as simulator:
        time_until_ready(simulator)
        received = Received.of(topics, rate, seconds)
        simulator.check()
    return received


def main(seconds: float = 10.0) -> None:
    """Measure each for a wall time [s], and print the best of the rounds."""
    with ros(), tempfile.TemporaryDirectory() as folder:
        results = [
            [run(sensors, seconds, Path(folder)) for sensors in (False, True)]
            for _ in range(ROUNDS)
        ]
    without, with_sensors = (max(pair[i] for pair in results) for i in (0, 1))
    print("| 10 drones | real-time factor | messages arrived | of the factor without |")
    print("|---|---:|---:|---:|")
    print(f"| without sensors | {without.factor:.1f} | {100 * without.arrived:.0f} % |  |")
    print(
        f"| with sensors | {with_sensors.factor:.1f} | {100 * with_sensors.arrived:.0f} %"
        f" | {with_sensors.factor / without.factor:.2f} |"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
