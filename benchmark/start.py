"""Time from starting the node to its line that says ready, with an empty cache and a filled one.

    python -m benchmark.start [checkout] [turns]

Prints a Markdown table of medians, in seconds of wall time and of processor time. With the folder
of another checkout of this package, both are started in turns, and each row ends with the ratio of
its processor time to that of this package.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmark.node import processor_time
from crazyflow_ros.client.simulator_process import SimulatorProcess, choose_domain

READY = "ready: "
TIMEOUT = 180.0  # s
DRONES = (1, 10)
HERE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Start:
    """How long a start took, s."""

    wall: float
    processor: float


def start(checkout: Path, drones: int, cache: Path) -> Start:
    """Start the node of a checkout, wait until it is ready, and end it.

    Args:
        checkout: Folder of the checkout.
        drones: Number of drones.
        cache: Folder for compiled code; also receives the node's log.
    """
    names = ",".join(f"cf{i}" for i in range(drones))
    log = cache / "simulator.log"
    began = time.monotonic()
    environment = {
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPATH": str(checkout),
        "PYTHONSAFEPATH": "1",  # else this checkout would come first
    }
    with SimulatorProcess({"drones": f"[{names}]"}, log, environment) as simulator:
        wait_until_ready(simulator, TIMEOUT)
        return Start(time.monotonic() - began, processor_time(simulator.pid))


def wait_until_ready(simulator: SimulatorProcess, timeout: float) -> None:
    """Wait until the log of a node that has just been started says that it is ready."""
    deadline = time.monotonic() + timeout
    while READY not in simulator.log.read_text():
        simulator.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"the node was not ready after {timeout:g} s")
        time.sleep(0.01)


def measure(checkouts: Sequence[Path], drones: int, turns: int) -> None:
    """Print the rows for a number of drones."""
    starts: dict[tuple[str, Path], list[Start]] = {}
    for _ in range(turns):
        for checkout in checkouts:
            with tempfile.TemporaryDirectory() as folder:
                for state in ("cold", "warm"):
                    taken = start(checkout, drones, Path(folder))
                    starts.setdefault((state, checkout), []).append(taken)
    for state in ("cold", "warm"):
        ours = median(x.processor for x in starts[state, HERE])
        for checkout in checkouts:
            found = starts[state, checkout]
            wall, processor = median(x.wall for x in found), median(x.processor for x in found)
            name = "this" if checkout == HERE else checkout.name
            ratio = f"{processor / ours:.1f}"
            print(f"| {drones} | {state} | {name} | {wall:.1f} | {processor:.1f} | {ratio} |")


def main(checkout: str = "", turns: str = "3") -> None:
    """Measure this package, and another checkout if there is one."""
    choose_domain()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users do not compile modules at each start
    checkouts = [HERE, *([Path(checkout).resolve()] if checkout else [])]
    print("| drones | start | checkout | wall time, s | processor time, s | ratio |")
    print("|---:|---|---|---:|---:|---:|", flush=True)
    for drones in DRONES:
        measure(checkouts, drones, int(turns))


if __name__ == "__main__":
    main(*sys.argv[1:])
