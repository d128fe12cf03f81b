"""Four cameras of the node, drawn by OpenGL and by rays, and their first pictures.

    python -m benchmark.cameras [seconds]

Two drones stand in the room, each with two cameras of 320 x 240 pixels that take 10 pictures a
second; this process receives them.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image

from benchmark.processes import ros
from crazyflow_ros.client.simulator_process import SimulatorProcess

CAMERAS = [f"cf{drone}/{camera}" for drone in (0, 1) for camera in ("front", "back")]
SENSORS = """
all:
  front: {type: camera, rate: 10, renderer: RENDERER}
  back: {type: camera, rate: 10, renderer: RENDERER, pos: [-0.05, 0, 0.02], rpy: [0, 0, 180]}
"""
PARAMETERS = {
    "drones": "[cf0, cf1]",
    "scene": "room",
    "initial_poses": "[0.9,1.0,0.9,1.8,0.0,0.0,1.0,0.0]",
}
READY_TIMEOUT = 300.0  # s
WARM = 5  # pictures of each camera before the measurement
HEAD = """
| renderer | pictures/s of a camera | times real time | processor time of a second | without |
|---|---:|---:|---:|---:|"""


class Receiver:
    """Counts pictures, and follows the simulated time."""

    def __init__(self, node: Node, simulator: SimulatorProcess) -> None:
        self._simulator = simulator
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._node = node
        self.received: Counter[str] = Counter()
        self.now = 0.0
        node.create_subscription(Clock, "/clock", self._on_clock, 1)
        self._pictures: list[object] = []

    def look(self) -> None:
        """Subscribe to all cameras; messages stay serialised."""
        for name in CAMERAS:
            note = partial(self._note, name)
            topic = f"{name}/image_raw"
            self._pictures.append(self._node.create_subscription(Image, topic, note, 5, raw=True))

    def spin(self, until: Callable[[], object], timeout: float) -> None:
        """Receive until a condition holds.

        Raises:
            TimeoutError: It did not within `timeout` [s].
            SimulatorError: The simulator has ended.
        """
        deadline = time.monotonic() + timeout
        while not until():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing to see within {timeout:g} s")
            self._simulator.check()
            self._executor.spin_once(timeout_sec=0.01)

    def is_warm(self) -> bool:
        """Return whether each camera has taken some pictures."""
        return all(self.received[name] > WARM for name in CAMERAS)

    def measure(self, seconds: float) -> tuple[float, float, float]:
        """Return pictures a second of the slowest camera, times real time, and processor time."""
        before, start, now = Counter(self.received), time.monotonic(), self.now
        pid = self._simulator.pid
        used, end = processor_time(pid), start + seconds
        self.spin(lambda: time.monotonic() > end, seconds + 60.0)
        passed = time.monotonic() - start
        pictures = min(self.received[name] - before[name] for name in CAMERAS)
        factor = (self.now - now) / passed
        return pictures / passed, factor, (processor_time(pid) - used) / passed

    def _note(self, name: str, _: bytes) -> None:
        self.received[name] += 1

    def _on_clock(self, message: Clock) -> None:
        self.now = message.clock.sec + 1e-9 * message.clock.nanosec


def processor_time(pid: int) -> float:
    """Return the processor time of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def measure(renderer: str, seconds: float) -> tuple[list[float], list[str]]:
    """Return a row of the table, and what the log says about renderers."""
    with ros(), tempfile.TemporaryDirectory() as folder:
        file, log = Path(folder) / "sensors.yaml", Path(folder) / "simulator.log"
        file.write_text(SENSORS.replace("RENDERER", renderer))
        with SimulatorProcess(PARAMETERS | {"sensors": str(file)}, log) as simulator:
            receiver = Receiver(rclpy.create_node("observer"), simulator)
            receiver.spin(lambda: receiver.now > 2.0, READY_TIMEOUT)
            *_, alone = receiver.measure(seconds / 2)
            receiver.look()
            receiver.spin(
                lambda: min(map(receiver.received.__getitem__, CAMERAS)) > WARM, READY_TIMEOUT
            )
            figures = [*receiver.measure(seconds), alone]
        return figures, [line for line in log.read_text().splitlines() if "draws with" in line]


def first_pictures(folder: Path) -> float:
    """Return the processor time of first pictures by rays [s], with a folder of compiled code."""
    file, log = folder / "sensors.yaml", folder / "simulator.log"
    file.write_text(SENSORS.replace("RENDERER", "rays"))
    parameters = PARAMETERS | {"sensors": str(file)}
    with ros(), SimulatorProcess(parameters, log, {"XDG_CACHE_HOME": str(folder)}) as simulator:
        receiver = Receiver(rclpy.create_node("observer"), simulator)
        receiver.spin(lambda: receiver.now > 2.0, READY_TIMEOUT)
        *_, alone = receiver.measure(5.0)
        used, began = processor_time(simulator.pid), time.monotonic()
        receiver.look()
        receiver.spin(lambda: len(receiver.received) == len(CAMERAS), READY_TIMEOUT)
        return processor_time(simulator.pid) - used - alone * (time.monotonic() - began)


def main(seconds: float = 20.0) -> None:
    """Print a table, what the log says about renderers, and the times of first pictures."""
    print(HEAD)
    said: list[str] = []
    for renderer in ("opengl", "rays", "auto"):
        (pictures, factor, busy, alone), lines = measure(renderer, seconds)
        print(f"| {renderer} | {pictures:.1f} | {factor:.2f} | {busy:.2f} s | {alone:.2f} s |")
        said += lines
    print("\n" + "\n".join(said))
    with tempfile.TemporaryDirectory() as folder:
        first, after = (first_pictures(Path(folder)) for _ in range(2))
    print(f"\nFirst pictures by rays: {first:.1f} s of processor time, then {after:.1f} s")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
