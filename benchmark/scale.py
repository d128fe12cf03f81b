"""What a swarm costs: start, memory, and processor time by part, for 1 to 1,000 drones.

    python -m benchmark.scale [drones]...

Prints two Markdown tables. The first one is of the node with `interfaces:=swarm`, ready without and
with compiled code of an earlier start, and its processor time while a client reads the topics of
the swarm at 50 Hz. The second one is of its parts, each alone in this process, in ms of processor
time for a simulated second in which all drones fly to places: physics in calls of 10 ticks, what
the commander adds, a copy of the mirror and readings of all range sensors 50 times. Its last row is
the exponent with which each part grows from 100 drones to 1,000: 1 is linear, n log n is 1.18.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Transform, Vector3
from sensor_msgs.msg import MultiDOFJointState
from std_srvs.srv import SetBool

from benchmark.node import READY_TIMEOUT, peak_memory, processor_time
from benchmark.processes import ros
from benchmark.start import wait_until_ready
from crazyflow_ros.client import Session
from crazyflow_ros.client.simulator_process import SimulatorProcess
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene.frames import grid_2d
from crazyflow_ros.xla import compiled_files

DRONES = (1, 10, 100, 1000)
RATE = 50  # Hz of simulated time
SECONDS = 2  # simulated, of each measurement
TURNS = 3  # of which the shortest counts
PATIENCE = 1200.0  # s
PARTS = ("physics", "commander", "mirror", "range sensors")


class Start(NamedTuple):
    """A start of the node, and its run."""

    wall: float
    """s until it is ready."""
    processor: float
    """s of processor time until then."""
    second: float
    """Processor time of a simulated second [s]; NaN if it did not run."""
    memory: float
    """MB."""


def names_of(n_drones: int) -> list[str]:
    """Return the names of drones."""
    return [f"cf{i}" for i in range(n_drones)]


def started(n_drones: int, folder: Path, *, runs: bool) -> Start:
    """Start the node with compiled code in a folder, and let it run as fast as it can."""
    parameters = {
        "drones": f"[{','.join(names_of(n_drones))}]",
        "interfaces": "swarm",
        "publish_rates.swarm": f"{RATE}",
        "real_time_factor": "0.0",
        "start_paused": "true",
    }
    log, environment = folder / "simulator.log", {"XDG_CACHE_HOME": str(folder)}
    began = time.monotonic()
    with SimulatorProcess(parameters, log, environment) as simulator:
        wait_until_ready(simulator, PATIENCE)
        wall, processor = time.monotonic() - began, processor_time(simulator.pid)
        second = _second(simulator) if runs else math.nan
        return Start(wall, processor, second, peak_memory(simulator.pid))


def _second(simulator: SimulatorProcess) -> float:
    """Return the processor time of a simulated second of the node, with a reader of its topics."""
    with Session("benchmark", check=simulator.check) as session:
        seen: deque[MultiDOFJointState] = deque(maxlen=1)
        session.node.create_subscription(
            MultiDOFJointState, "crazyflow/odometry", lambda message: seen.append(message), 10
        )
        command = session.node.create_publisher(MultiDOFJointState, "crazyflow/drones/cmd_pose", 10)
        session.wait(lambda: seen and command.get_subscription_count(), "topics", READY_TIMEOUT)
        command.publish(_above(seen[-1]))
        session.call(SetBool, "crazyflow/pause", READY_TIMEOUT, data=False)
        session.wait(lambda: _time(seen[-1]) > 1, "flight", READY_TIMEOUT)
        first, used = _time(seen[-1]), processor_time(simulator.pid)
        session.wait(lambda: _time(seen[-1]) > first + SECONDS, "flight", READY_TIMEOUT)
        return (processor_time(simulator.pid) - used) / (_time(seen[-1]) - first)


def _time(message: MultiDOFJointState) -> float:
    return message.header.stamp.sec + message.header.stamp.nanosec / 1e9


def _above(state: MultiDOFJointState) -> MultiDOFJointState:
    """Return a command to all drones: 1 m above where they are."""
    command = MultiDOFJointState(joint_names=state.joint_names)
    for now in state.transforms:
        place = Vector3(x=now.translation.x, y=now.translation.y, z=now.translation.z + 1)
        command.transforms.append(Transform(translation=place))
    return command


def parts(n_drones: int) -> dict[str, float]:
    """Measure the parts by themselves, in ms of processor time for a simulated second."""
    names, goals = names_of(n_drones), np.random.default_rng(0).uniform(0.7, 1.3, (n_drones, 3))
    goals[:, :2] += grid_2d(n_drones) - 1
    config = SimulationConfig.of(RealisticOptions(), start_paused=True)
    engine, ticks = Engine(config, names), config.freq // RATE
    commands = np.zeros((n_drones, engine.command.shape[1] + 1))
    commands[:, :3], commands[:, -1] = goals, Level.state
    engine.set_commands(names, commands)
    tick = 0

    def fly() -> None:
        nonlocal tick
        for _ in range(RATE):
            engine.advance(tick, [ticks], 0)
            tick += ticks

    fly()
    physics = _shortest(fly)
    thread = PhysicsThread(config, names)
    thread.every(RATE, lambda _: None, "reader", observes=True)
    thread.start()
    try:
        for name, goal in zip(names, goals):
            thread.command(name, Pose(tuple(goal), 0.0))
        thread.step(config.freq).result(PATIENCE)
        together = _shortest(lambda: thread.step(config.freq).result(PATIENCE))
    finally:
        thread.stop(PATIENCE)
    data = thread.mirror.copy_physics_data()

    def copied() -> None:
        for _ in range(RATE):
            thread.mirror.copy_physics_data(data)

    def ranged() -> None:
        for _ in range(RATE):
            thread.mirror.range()

    found = physics, max(together - physics, 0.0), _shortest(copied), _shortest(ranged)
    return dict(zip(PARTS, found))


def _shortest(run: Callable[[], object]) -> float:
    """Return the shortest processor time of some runs [ms]."""
    times = []
    for _ in range(TURNS):
        began = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - began))
    return min(times)


def main(drones: Sequence[int] = DRONES) -> None:
    """Measure each number of drones."""
    found: dict[int, dict[str, float]] = {}
    head = ("drones", "ready, cold", "processor", "ready, warm", "processor", "simulated second")
    print(f"| {' | '.join((*head, 'memory'))} |\n|{'---:|' * (len(head) + 1)}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ros():
        for n in drones:
            cold, warm = (started(n, Path(folder), runs=runs) for runs in (False, True))
            cells = (cold.wall, cold.processor, warm.wall, warm.processor, warm.second)
            times = " | ".join(f"{x:.3g} s" for x in cells)
            print(f"| {n} | {times} | {warm.memory:.0f} MB |", flush=True)
        os.environ["XDG_CACHE_HOME"] = folder
        compiled_files.open_cache(print)
        print(f"\n| drones | {' | '.join(PARTS)} |\n|{'---:|' * (len(PARTS) + 1)}", flush=True)
        for n in drones:
            found[n] = parts(n)
            print(f"| {n} | {' | '.join(f'{x:.3g} ms' for x in found[n].values())} |", flush=True)
    if {100, 1000} <= found.keys():
        slopes = (math.log10(found[1000][part] / found[100][part]) for part in PARTS)
        print(f"| exponent | {' | '.join(f'{x:.2f}' for x in slopes)} |")


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or DRONES)
