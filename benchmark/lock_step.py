"""Lock-step over shared memory, compared with bare futexes and with topics.

    python -m benchmark.lock_step

Prints a Markdown table for one drone, a control period of one tick, and a controller in C++. Row 1
is two futexes between the controller and Python, row 2 states and commands without physics, row 3
the simulation without ROS. Row 4 is the node, which publishes /clock in each control period: what a
controller manager gets. The last rows are the route of ros2_control's topic plugins, with Python on
the other side.
"""

from __future__ import annotations

import logging
import mmap
import os
import select
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from benchmark import topic_route
from benchmark.processes import compiled, running, states_of
from crazyflow_ros.client.simulator_process import SimulatorProcess, choose_domain
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.lockstep.futex import Futex
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.ros.parameters.parameter_groups import PublishRates
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot

CYCLES = 20_000  # a multiple of the cycles per second
TIMEOUT = 600.0  # s
HEAD = (
    "| | cycles/s | us a cycle | of the ping-pong | command to state, ticks |\n"
    "|---|---:|---:|---:|---:|"
)
CONFIG = SimulationConfig(real_time_factor=0.0, start_paused=True)


def _link(name: str) -> SharedMemoryLink:
    return SharedMemoryLink(
        name,
        ["cf0"],
        drone_model=CONFIG.drone_model,
        freq=CONFIG.freq,
        rate=CONFIG.freq,
        lock_step=True,
        range_rate=PublishRates().range,
        logger=logging.getLogger(__name__),
    )


def ping_pong(folder: Path) -> float:
    """Return the seconds per round of two futexes."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.truncate(128)
        memory = mmap.mmap(file.fileno(), 128)
        address = int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])
        ping, pong = Futex(address), Futex(address + 64)
        with running(compiled("benchmark/ping_pong.cpp", folder), file.name):
            for i in range(2 * CYCLES):
                if i == CYCLES:
                    began = time.perf_counter()
                ping.add()
                while pong.value == i:
                    pong.wait(i, 1.0)
            return (time.perf_counter() - began) / CYCLES


def without_physics(client: str, name: str) -> float:
    """Return the seconds per cycle of states and commands, without physics."""
    physics = PhysicsThread(CONFIG, ["cf0"])  # not started, used for its mirror
    first, link = physics.snapshot, _link(name)
    command, level = np.zeros((1, 4)), np.zeros(1)
    fields = dict(vars(first))
    try:
        link.show(first, physics.mirror)
        with running(client, name, str(2 * CYCLES + 1), "-", "cf0") as process:
            while not link.status().attached:
                time.sleep(0.01)
            for i in range(2 * CYCLES):
                if i == CYCLES:
                    began = time.perf_counter()
                snapshot = Snapshot(**fields | {"tick": first.tick + i})
                link.collect(snapshot, command, level, lambda: False)
                link.show(Snapshot(**fields | {"tick": first.tick + i + 1}), physics.mirror)
            seconds = time.perf_counter() - began
            process.wait(TIMEOUT)
        return seconds / CYCLES
    finally:
        link.close()


def simulation(client: str, name: str, folder: Path) -> tuple[float, int]:
    """Measure the simulation in this process, with an event in each cycle.

    Args:
        client: Program of the controller.
        name: Name of the shared memory.
        folder: Folder for logs.

    Returns:
        Seconds per cycle, and ticks from a command to the first state with its effect.
    """
    link, log, times = _link(name), folder / "log", dict[int, float]()
    physics = PhysicsThread(CONFIG, ["cf0"], link)
    marks = (CYCLES, 2 * CYCLES)

    def note(snapshot: Snapshot) -> None:
        if snapshot.tick in marks:
            times[snapshot.tick] = time.perf_counter()

    physics.every(CONFIG.freq, note, "benchmark")
    physics.start()
    try:
        with running(client, name, str(2 * CYCLES), str(log), "cf0") as process:
            while not link.status().attached:
                time.sleep(0.01)
            physics.resume().result(TIMEOUT)
            process.wait(TIMEOUT)
    finally:
        physics.stop()
    return (times[marks[1]] - times[marks[0]]) / CYCLES, _delay(log)


def node(client: str, name: str, folder: Path) -> tuple[float, int]:
    """Measure the node, started as for a controller manager; see `simulation`."""
    log, rate = folder / "log", str(CONFIG.freq)
    parameters = {
        "ros2_control.mode": "lock_step",
        "ros2_control.shared_memory": name,
        "freq": rate,
        "ros2_control.rate": rate,
        "publish_rates.clock": rate,
        "real_time_factor": "0.0",
    }
    choose_domain()
    with (
        SimulatorProcess(parameters, folder / "simulator.log") as process,
        running(client, name, str(2 * CYCLES), str(log), "cf0") as controller,
    ):
        assert controller.stdout is not None
        deadline = time.monotonic() + TIMEOUT
        while not select.select([controller.stdout], [], [], 1.0)[0]:
            process.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"no shared memory within {TIMEOUT:g} s")
        ticks = states_of(name, 1)["stamp"]["tick"]
        while (first := int(ticks.max())) < CYCLES:  # compilation is over, too
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {CYCLES} ticks within {TIMEOUT:g} s")
            time.sleep(0.001)
        began = time.perf_counter()
        controller.wait(TIMEOUT)
        return (time.perf_counter() - began) / (2 * CYCLES - first), _delay(log)


def _delay(log: Path) -> int:
    """Return the ticks from a command to the first state with its effect."""
    ticks, _, shown, commanded = np.fromfile(log).reshape(-1, 8)[:, :4].T
    change = np.flatnonzero(np.diff(commanded))[0] + 1
    return int(
        ticks[np.flatnonzero(shown[change:] == commanded[change])[0] + change] - ticks[change]
    )


def compiled_call() -> float:
    """Return the seconds of the engine's call for one tick."""
    engine = Engine(CONFIG, ["cf0"], by_door=["cf0"])
    engine.level[:] = Level.rotor_velocity
    return _fastest(lambda: engine.advance(1, [1], 0))


def _fastest(function: Callable[[], object], n: int = 2000) -> float:
    rounds = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(n):
            function()
        rounds.append((time.perf_counter() - began) / n)
    return min(rounds)


def main() -> None:
    """Measure all rows."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # as the node does
    if shutil.which("g++") is None:
        print("needs a C++ compiler, g++")
        return
    with tempfile.TemporaryDirectory() as name:
        folder, memory = Path(name), f"benchmark.{os.getpid()}"
        client = compiled("test/lockstep/lock_step_client.cpp", folder)
        bare, call = ping_pong(folder), compiled_call()
        without = without_physics(client, memory)
        library = simulation(client, memory, folder)
        whole = node(client, memory, folder)
    rows: dict[str, tuple[float, float | None]] = {
        "two futexes": (bare, None),
        "states and commands": (without, None),
        "simulation, with an event in each cycle": library,
        "node, with `/clock` in each cycle": whole,
        "topics, in real time": topic_route.measure(1.0),
        "topics, as fast as possible": topic_route.measure(0.0),
    }
    print(HEAD)
    for row, (seconds, ticks) in rows.items():
        figures = f"{1 / seconds:.0f} | {seconds * 1e6:.0f} | {bare / seconds:.3f}"
        print(f"| {row} | {figures} | {'' if ticks is None else f'{ticks:g}'} |")
    print(
        f"\nThe compiled call of one tick takes {call * 1e6:.0f} us. A tick is a control period, "
        f"in real time there are {CONFIG.freq} cycles per second."
    )


if __name__ == "__main__":
    main()
