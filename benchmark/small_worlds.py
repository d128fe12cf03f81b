"""A loop in Python over few and many drones, compared with HyperDrone's.

    HYPERDRONE_PYTHON=... python -m benchmark.small_worlds

A cycle commands the rotors, advances by one step, and reads the positions into NumPy.
`HYPERDRONE_PYTHON` names a Python that has hyperdrone, which compiles its code at the first use.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

DRONES = (1, 1024, 16384)
REPEATS = 15
SECONDS = 0.1  # of a repeat
ROTOR_SPEED = 19217.0  # RPM


def ours(n: int) -> Callable[[], object]:
    """Return a cycle of n worlds with a drone each."""
    from crazyflow_ros.sim import Sim

    sim = Sim(n_worlds=n, drone="cf2x_L250", control="rotor_vel")
    command = np.full((n, 1, 4), ROTOR_SPEED, np.float32)

    def cycle() -> np.ndarray:
        sim.rotor_vel_control(command)
        sim.step(1)
        return np.asarray(sim.data.states.pos)

    return cycle


def theirs(n: int) -> Callable[[], object]:
    """Return a cycle of n drones of HyperDrone."""
    from hyperdrone.dynamics import Sim  # type: ignore[import-not-found]

    sim, action = Sim(n), np.zeros((n, 4), np.float32)

    def cycle() -> object:
        sim.step(action)
        return sim.state["position"]

    return cycle


def seconds(cycle: Callable[[], object]) -> float:
    """Return the shortest mean time of a cycle."""
    began, calls = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        cycle()
        calls += 1
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(calls):
            cycle()
        times.append((time.perf_counter() - began) / calls)
    return min(times)


def main() -> None:
    """Print a table, or the time of a cycle for the library and number in the arguments."""
    if len(sys.argv) == 3:
        of = {"ours": ours, "theirs": theirs}[sys.argv[1]]
        print(seconds(of(int(sys.argv[2]))))
        return
    python = os.environ.get("HYPERDRONE_PYTHON")
    if python is None:
        print("needs HYPERDRONE_PYTHON, a Python that has hyperdrone")
        return
    find = "from importlib.metadata import version; print(version('hyperdrone'))"
    release = subprocess.check_output([python, "-c", find], text=True).strip()
    print(f"| drones | ours, us | HyperDrone {release}, us | ratio |\n|---:|---:|---:|---:|")
    for n in DRONES:
        times = [
            float(subprocess.check_output([program, __file__, side, str(n)]).split()[-1])
            for program, side in ((sys.executable, "ours"), (python, "theirs"))
        ]
        figures = " | ".join(f"{1e6 * x:.3g}" for x in times)
        print(f"| {n:,} | {figures} | {times[1] / times[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
