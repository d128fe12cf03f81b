"""Longest gap of /clock while drones and objects are added to a running simulation.

    python -m benchmark.spawn_gap [seconds]

Prints a Markdown table. At a real-time factor of 1 the clock is published at 500 Hz, and this
process records its times of arrival. Three things are spawned that need compilation: the first
object that drones collide with, a drone without a free slot, and an object with more shapes than
free slots. The first row is the time before. The cache is empty in the first run of the simulator;
in the second run everything is in it.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rclpy
from geometry_msgs.msg import Point, Pose, PoseStamped
from rclpy.executors import SingleThreadedExecutor
from rosgraph_msgs.msg import Clock
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import SpawnEntity

from benchmark.processes import ros
from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.client.connection import checked
from crazyflow_ros.client.simulator_process import SimulatorProcess

FREQ = 500  # Hz
READY_TIMEOUT = 300.0  # s
SPAWN_TIMEOUT = 600.0  # s
PARAMETERS = {"freq": str(FREQ), "publish_rates.clock": str(FREQ)}
DRONE = "cf2x_L250"
BOX = "<mujoco><worldbody><body pos='0 0 0'>{}</body></worldbody></mujoco>"
SHAPE = "<geom type='box' size='.1 .1 .1' pos='{} 0 0'/>"
SHAPES = 40  # more than the slots added for the first object


class Watch:
    """A recorder of the clock's times of arrival, with its own thread."""

    def __init__(self) -> None:
        self.arrivals: list[float] = []
        self._context = rclpy.Context()
        self._context.init()
        node = rclpy.create_node("watch", context=self._context)
        node.create_subscription(Clock, "/clock", self._note, 1000)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(node)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._main)
        self._thread.start()

    def _note(self, _: Clock) -> None:
        self.arrivals.append(time.monotonic())

    def _main(self) -> None:
        while not self._ended.is_set():
            self._executor.spin_once(timeout_sec=0.1)

    def gap(self, do: Callable[[], object]) -> tuple[float, float]:
        """Return the longest gap of the clock during an action, and the action's duration [s]."""
        began = time.monotonic()
        do()
        took = time.monotonic() - began
        time.sleep(0.5)  # s for delayed messages to arrive
        arrivals = np.array([began, *[t for t in list(self.arrivals) if t > began]])
        self.arrivals.clear()
        return float(np.diff(arrivals).max()), took

    def close(self) -> None:
        """Stop the thread."""
        self._ended.set()
        self._thread.join()
        self._context.shutdown()


def spawner(
    simulation: SimulatorClient, name: str, x: float, resource: Resource
) -> Callable[[], None]:
    """Return a function that spawns something and waits for it."""

    def spawn() -> None:
        pose = PoseStamped(pose=Pose(position=Point(x=x, z=1.0)))
        checked(
            simulation.call(
                SpawnEntity,
                "crazyflow/spawn_entity",
                SPAWN_TIMEOUT,
                name=name,
                entity_resource=resource,
                initial_pose=pose,
            )
        )

    return spawn


def measure(folder: Path, seconds: float) -> list[tuple[str, float, float]]:
    """Return each action with the longest gap and its duration [s]."""
    environment = {"XDG_CACHE_HOME": str(folder)}
    with (
        SimulatorProcess(PARAMETERS, folder / "simulator.log", environment) as simulator,
        SimulatorClient(timeout=READY_TIMEOUT, check=simulator.check) as simulation,
    ):
        watch = Watch()
        try:
            simulation.wait(lambda: watch.arrivals, "the clock has not arrived")
            box = Resource(resource_string=BOX.format(SHAPE.format(0)))
            many = Resource(
                resource_string=BOX.format("".join(SHAPE.format(i) for i in range(SHAPES)))
            )
            jobs = {
                "nothing": lambda: time.sleep(seconds),
                "the first object": spawner(simulation, "first", 3.0, box),
                "a drone beyond max_drones": spawner(simulation, "cf1", 1.0, Resource(uri=DRONE)),
                f"an object of {SHAPES} shapes": spawner(simulation, "many", 6.0, many),
            }
            rows = [(name, *watch.gap(job)) for name, job in jobs.items()]
            simulator.check()
        finally:
            watch.close()
        return rows


def main(seconds: float = 5.0) -> None:
    """Measure, first for a wall time [s] without spawning."""
    print(
        "| spawned | compiled before | longest gap of /clock [ms] | until it is there [s] |\n"
        "|---|---|---:|---:|"
    )
    with ros(), tempfile.TemporaryDirectory() as folder:
        for before in ("no", "yes"):
            for name, gap, took in measure(Path(folder), seconds):
                print(f"| {name} | {before} | {1e3 * gap:.0f} | {took:.1f} |", flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
