"""Two simulators that share a time, beside one with all drones.

    python -m benchmark.hosts [drones ...]

Prints a Markdown table: how much faster than real time the drones fly with one simulator, and with
two on this machine over loopback, each with half of them; the processor time of a simulated second
in each process; and what a round costs in wall time. Rounds have the rate of the position
controller, and all drones get a new pose twice a second; at 500 Hz it is that of the attitude
controller, and the drones stand on the floor.
"""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from crazyflow_ros.checks.plain_values import convert
from crazyflow_ros.flight import Pose
from crazyflow_ros.hosts import Hosts, SharedThread
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot
from crazyflow_ros.xla.compiled_files import open_cache

FREQ, WINDOW, WINDOWS = 500, 1000, 6  # Hz, ticks, of which the fastest one counts
RATES = (50, 100, 500)  # Hz
DRONES = (20,)
T = 1800.0  # s
HEAD = (
    "| drones | rounds [Hz] | one simulator | two | processor time of one [ms] | of each of two | "
    "a round [us] |\n|---:|---:|---:|---:|---:|---:|---:|"
)


class Cost(NamedTuple):
    """Of a simulated second [s]."""

    wall: float
    processor: float


def fly(settings: Mapping[str, Any]) -> None:
    """Fly in this process, and print what the fastest stretch took."""
    n, rate = settings["drones"], settings["rate"]
    names = [f"cf{i}" for i in range(n)]
    control = {"state_freq": rate} if rate < FREQ else {"control": "attitude"}
    config = SimulationConfig(
        freq=FREQ, start_paused=True, real_time_factor=0.0, downwash=True, **control
    )
    physics: PhysicsThread
    if "hosts" in settings:
        hosts: Hosts = convert(settings["hosts"], Hosts, "hosts")
        own, shared = list(hosts.drones), SharedThread(config, names, hosts)
        physics = cast(PhysicsThread, shared)  # it has all that one has
    else:
        own, physics = names, PhysicsThread(config, names)

    def command(now: Snapshot) -> None:
        places = np.random.default_rng(now.tick).uniform((-9, -9, 0.5), (9, 9, 2), (n, 3))
        goals = {name: Pose(tuple(place), 0.0) for name, place in zip(names, places)}
        physics.command_all({name: goals[name] for name in own})

    if config.control == "state":
        physics.every(2, command, "commands")
    physics.start()
    costs = []
    for _ in range(WINDOWS):
        began, spent = time.perf_counter(), _spent()
        if settings["leads"]:
            physics.step(WINDOW).result(T)
        else:
            end = physics.snapshot.tick + WINDOW
            while physics.snapshot.tick < end:
                time.sleep(0.001)
        wall, processor = time.perf_counter() - began, _spent() - spent
        costs.append(Cost(wall * FREQ / WINDOW, processor * FREQ / WINDOW))
    print(json.dumps(Cost(*map(min, zip(*costs)))), flush=True)
    sys.stdin.read()
    physics.stop()


def measured(*settings: dict[str, Any]) -> list[Cost]:
    """Return the costs of processes that fly at the same time."""
    command, pipe = [sys.executable, "-m", "benchmark.hosts"], subprocess.PIPE
    processes = [
        subprocess.Popen([*command, json.dumps(one)], stdin=pipe, stdout=pipe, text=True)
        for one in settings
    ]
    costs = []
    for process in processes:
        assert process.stdout is not None
        costs.append(next(Cost(*json.loads(line)) for line in process.stdout if line[0] == "["))
    for process in processes:
        process.communicate()
    return costs


def shared(settings: dict[str, Any]) -> list[Cost]:
    """Return the costs of two simulators with half of the drones each."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"tcp/127.0.0.1:{free.getsockname()[1]}"
    names = [f"cf{i}" for i in range(settings["drones"])]
    left = {"name": "left", "peers": ["right"], "drones": names[::2], "listen": [endpoint]}
    right = {"name": "right", "peers": ["left"], "drones": names[1::2], "connect": [endpoint]}
    return measured(settings | {"hosts": left}, settings | {"hosts": right, "leads": False})


def row(n_drones: int, rate: int) -> str:
    """Return a row of the table."""
    settings = {"drones": n_drones, "rate": rate, "leads": True}
    (alone,), two = measured(settings), shared(settings)
    each = max(cost.processor for cost in two)
    extra = (two[0].wall - alone.wall) / rate * 1e6
    return (
        f"| {n_drones} | {rate} | {1 / alone.wall:.1f} | {1 / two[0].wall:.1f} | "
        f"{alone.processor * 1e3:.0f} | {each * 1e3:.0f} | {extra:.0f} |"
    )


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(arguments: list[str]) -> None:
    """Print the table."""
    print(HEAD)
    for n_drones in [int(word) for word in arguments] or DRONES:
        for rate in RATES:
            print(row(n_drones, rate), flush=True)


if __name__ == "__main__":
    open_cache(lambda _: None)
    if sys.argv[1:] and sys.argv[1].startswith("{"):
        fly(json.loads(sys.argv[1]))
    else:
        main(sys.argv[1:])
