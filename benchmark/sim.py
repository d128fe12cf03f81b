"""`Sim` compared with Crazyflow's, row by row in one run.

python -m benchmark.sim [ROW...]    by default all rows, see LOOPS, STEPS and WAITS
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MODES = ("rotor_vel", "force_torque", "body_rate", "attitude", "state")
BATCHES = (1, 1024, 16384)
LOOPS = [
    *(f"policy:{n}" for n in BATCHES),
    "rollout:1",
    *(f"environment:{n}" for n in (64, *BATCHES[1:])),
    *(f"learning:{n}:{ticks}" for n in (64, 1024) for ticks in (1, 5)),
    *(f"gradient:{n}" for n in (64, 1024)),
    *(f"python:{n}:{mode}" for n in BATCHES for mode in MODES),
]
STEPS = [f"steps:{n}:{mode}" for n in (*BATCHES, 262144) for mode in MODES]
WAITS = {
    "contacts": [("us_per_contacts", "contacts of one world, after a step, us")],
    **{
        f"first:{mode}": [
            ("s", f"first `Sim` and step of 1024 worlds, {mode}, s"),
            ("s_of_cpu", "the same, s of processor time"),
        ]
        for mode in MODES
    },
}
"""Waiting times of a caller: keys of a worker's results, and descriptions."""
ROWS = [*LOOPS, *STEPS, *WAITS]
WORKER = Path(__file__).with_name("sim_worker.py")

_FORMATS: dict[str, tuple[str, Callable[[int, float], float]]] = {
    "policy": ("policy in `jit(scan)`, M ticks/s", lambda n, s: 5e-6 * n / s),
    "rollout": ("50 cycles of a policy in one call of `jit(scan)`, us", lambda _, s: 1e6 * s),
    "environment": ("Gymnasium, reach, M steps/s", lambda n, s: 1e-6 * n / s),
    "learning": (
        "gradient of a policy that acts every {} ticks, 100 ticks, ms",
        lambda _, s: 1e3 * s,
    ),
    "gradient": ("gradient of one command for 100 ticks, ms", lambda _, s: 1e3 * s),
    "python": ("from Python, {}, us a cycle", lambda _, s: 1e6 * s),
}
"""Descriptions of loops, and their figures by number of worlds and seconds a cycle."""


def measure(python: str, library: str, row: str, devices: int = 1) -> dict[str, Any]:
    """Run one row in a separate process, with a number of devices of JAX.

    Ours uses as many cores, but all of them in the rows `python` and `environment`.

    Raises:
        RuntimeError: The process failed; the message has the end of its output.
    """
    result = subprocess.run(
        [python, str(WORKER), library, row],
        env={**os.environ, "JAX_NUM_CPU_DEVICES": str(devices)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    if result.returncode != 0:
        raise RuntimeError(f"{library} {row}: {result.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    return found


def both(row: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results of a row, ours and Crazyflow's, measured one after the other."""
    crazyflow = os.environ.get("CRAZYFLOW_PYTHON")
    if crazyflow is None:
        sys.exit("CRAZYFLOW_PYTHON must name the Python that has crazyflow; use `make bench`")
    return measure(sys.executable, "crazyflow_ros", row), measure(crazyflow, "crazyflow", row)


def main(rows: Sequence[str] = ROWS) -> None:
    """Print the comparison as Markdown tables: loops, steps, then waiting times."""
    if unknown := set(rows) - set(ROWS):
        sys.exit(f"unknown rows {', '.join(sorted(unknown))}; have {', '.join(ROWS)}")
    for rows_of_table, print_table in (
        (LOOPS, print_loops),
        (STEPS, print_steps),
        (WAITS, print_waits),
    ):
        if chosen := [row for row in rows if row in rows_of_table]:
            print_table(chosen)


def print_loops(rows: Sequence[str]) -> None:
    """Print the loops that people run, and the share that ours reaches of their limits."""
    print("| loop | worlds | ours | Crazyflow | ratio | of the limit |\n|---|" + "---:|" * 5)
    differences = []
    for row in rows:
        kind, worlds, *mode = row.split(":")
        what, figure = _FORMATS[kind]
        ours, theirs = both(row)
        ways = {what.format(*mode): ours}
        cores = len(os.sched_getaffinity(0))
        if kind == "policy" and int(worlds) % cores == 0:
            ways["the same on all cores"] = measure(sys.executable, "crazyflow_ros", row, cores)
        for way, each in ways.items():
            cells = [way, worlds]
            figures = [figure(int(worlds), x["s"]) for x in (each, theirs)]
            cells += [f"{x:.0f}" if x > 100 else f"{x:.3g}" for x in figures]
            cells += [f"{theirs['s'] / each['s']:.1f}", f"{each['least'] / each['s']:.2f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
        if "gradient" in ours:
            a, b = np.array(ours["gradient"]), np.array(theirs["gradient"])
            differences.append(np.abs(a - b).max() / np.abs(b).max())
    if differences:
        print(f"\nlargest difference of gradients: {max(differences):.1e} of the largest one")


def print_steps(rows: Sequence[str]) -> None:
    """Print steps per second on one core and on all, and the share of the machine's limits.

    The limits are a matrix product in float32 for operations of many ticks in a call, and copying
    for bytes of state and command in calls of one tick.
    """
    cores = len(os.sched_getaffinity(0))
    limits = [measure(sys.executable, "crazyflow_ros", f"limits:{n}") for n in (1, cores)]
    for n, limit in zip((1, cores), limits):
        flops, copied = limit["flops_per_s"] / 1e9, limit["bytes_per_s"] / 1e9
        print(f"{n} core(s): matrix product {flops:.0f} GFLOP/s, copying {copied:.1f} GB/s  ")
    print(f"ours on 1 core, and on {cores}, with a device each for few worlds; ", end="")
    print("Crazyflow uses all of them\n")
    print("| worlds | control | us a call, ours | Crazyflow | ratio | M steps/s, ours ", end="")
    print("| on all cores | Crazyflow | ratio | on all | MB, ours | Crazyflow ", end="")
    print(
        "| FLOP a step | of the product | on all | of copying, a tick a call |\n"
        + "|---" * 16
        + "|"
    )
    for row in rows:
        n_worlds, mode = row.split(":")[1:]
        ours, theirs = both(row)
        divided = (
            ours if int(n_worlds) % cores else measure(sys.executable, "crazyflow_ros", row, cores)
        )
        called, by_peer = ours["us_per_call"], theirs["us_per_call"]
        a, b, c = (x["steps_per_s"] for x in (ours, divided, theirs))
        cells = [n_worlds, mode, f"{called:.0f}", f"{by_peer:.0f}", f"{by_peer / called:.1f}"]
        cells += [*(f"{x / 1e6:.2f}" for x in (a, b, c)), f"{a / c:.1f}", f"{b / c:.1f}"]
        cells += [f"{x['peak_mb']:.0f}" for x in (ours, theirs)]
        flops, moved = ours["flops_per_step"], int(n_worlds) * ours["bytes_per_step"]
        cells += [f"{flops:.0f}"]
        cells += [f"{x * flops / y['flops_per_s']:.2f}" for x, y in zip((a, b), limits)]
        cells += [f"{1e6 * moved / called / limits[0]['bytes_per_s']:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def print_waits(rows: Sequence[str]) -> None:
    """Print the waiting times of a caller."""
    print("\n| | ours | Crazyflow | ratio |\n|---|---:|---:|---:|")
    for row in rows:
        ours, theirs = both(row)
        for key, what in WAITS[row]:
            a, b = ours[key], theirs[key]
            print(f"| {what} | {a:.3g} | {b:.3g} | {b / a:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ROWS)
