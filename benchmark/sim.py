"""`Sim` compared with Crazyflow's, row by row in one run.

python -m benchmark.sim [ROW...]    rows are WORLDS:MODE, 1:contacts, first:MODE, or 1:limits,
    which adds the fraction of the machine's limits that the others reach; default: all
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MODES = ("rotor_vel", "force_torque", "body_rate", "attitude", "state")
STEPS = [f"{n}:{mode}" for n in (1, 1024, 16384, 262144) for mode in MODES]
WAITS = {
    "1:contacts": [("us_per_contacts", "contacts of one world, after a step, us")],
    **{
        f"first:{mode}": [
            ("s", f"first `Sim` and step of 1024 worlds, {mode}, s"),
            ("s_of_cpu", "the same, s of processor time"),
        ]
        for mode in MODES
    },
}
"""Waiting times of a caller: keys of a worker's results, and descriptions."""
LIMITS = "1:limits"
ROWS = [*STEPS, *WAITS, LIMITS]
WORKER = Path(__file__).with_name("sim_worker.py")


def measure(python: str, library: str, row: str, devices: int = 1) -> dict[str, float]:
    """Run one row in a separate process, ours on `devices` cores.

    Raises:
        RuntimeError: The process failed; the message has the end of its output.
    """
    result = subprocess.run(
        [python, str(WORKER), library, str(devices), row],
        capture_output=True,
        text=True,
        timeout=900,
    )
    if result.returncode != 0:
        raise RuntimeError(f"{library} {row}: {result.stderr.strip()[-500:]}")
    row_of_json: dict[str, float] = json.loads(result.stdout.strip().splitlines()[-1])
    return row_of_json


def main(rows: Sequence[str] = ROWS) -> None:
    """Print the comparison as Markdown tables: steps, then waiting times."""
    crazyflow = os.environ.get("CRAZYFLOW_PYTHON")
    if crazyflow is None:
        sys.exit("CRAZYFLOW_PYTHON must name the Python that has crazyflow; use `make bench`")
    cores = len(os.sched_getaffinity(0))
    if unknown := set(rows) - set(ROWS):
        sys.exit(f"unknown rows {', '.join(sorted(unknown))}; have {', '.join(ROWS)}")
    reached: list[tuple[str, dict[str, float], dict[str, float]]] = []
    print(f"ours on 1 core, and on {cores} (a device each); Crazyflow uses all of them\n")
    print(
        "| worlds | control | us a call, ours | Crazyflow | ratio | us command, 5 ticks, state,",
        end="",
    )
    print(
        " ours | Crazyflow | ratio | M steps/s, ours | on all cores | Crazyflow | ratio | on all |",
        end="",
    )
    print(" MB, ours | Crazyflow |")
    print("|---" * 15 + "|")
    for row in (row for row in rows if row in STEPS):
        n_worlds, mode = row.split(":")
        ours = measure(sys.executable, "crazyflow_ros", row)
        theirs = measure(crazyflow, "crazyflow", row)
        divided = (
            ours if int(n_worlds) % cores else measure(sys.executable, "crazyflow_ros", row, cores)
        )
        reached.append((row, ours, divided))
        cells = [n_worlds, mode]
        for key in ("us_per_call", "us_per_cycle"):
            a, b = ours[key], theirs[key]
            cells += [f"{a:.0f}", f"{b:.0f}", f"{b / a:.1f}"]
        a, b, c = (x["steps_per_s"] / 1e6 for x in (ours, divided, theirs))
        cells += [f"{a:.2f}", f"{b:.2f}", f"{c:.2f}", f"{a / c:.1f}", f"{b / c:.1f}"]
        cells += [f"{x['peak_mb']:.0f}" for x in (ours, theirs)]
        print("| " + " | ".join(cells) + " |", flush=True)
    if LIMITS in rows and reached:
        print_shares(reached, cores)
    if waits := [row for row in rows if row in WAITS]:
        print("\n| | ours | Crazyflow | ratio |\n|---|---:|---:|---:|")
        for row in waits:
            ours, theirs = (
                measure(sys.executable, "crazyflow_ros", row),
                measure(crazyflow, "crazyflow", row),
            )
            for key, what in WAITS[row]:
                a, b = ours[key], theirs[key]
                print(f"| {what} | {a:.3g} | {b:.3g} | {b / a:.1f} |")


def print_shares(
    reached: Sequence[tuple[str, dict[str, float], dict[str, float]]], cores: int
) -> None:
    """Print the fraction of the machine's limits that each row reaches, on one core and on all."""
    limits = [measure(sys.executable, "crazyflow_ros", LIMITS, n) for n in (1, cores)]
    on = ("one core", f"{cores} cores")
    for name, limit in zip(on, limits):
        flops, copied = limit["flops_per_s"] / 1e9, limit["bytes_per_s"] / 1e9
        print(f"\n{name}: float32 matrix product {flops:.0f} GFLOP/s, copying {copied:.1f} GB/s")
    print("\n| worlds | control | FLOP a step |", end="")
    print("".join(f" GFLOP/s on {name} | of the product |" for name in on), end="")
    print(" GB/s, a tick a call, on one core | of copying |\n|---" + "|---" * 8 + "|")
    for row, *runs in reached:
        flops = runs[0]["flops_per_step"]
        cells = [*row.split(":"), f"{flops:.0f}"]
        for run, limit in zip(runs, limits):
            rate = run["steps_per_s"] * flops
            cells += [f"{rate / 1e9:.1f}", f"{rate / limit['flops_per_s']:.2f}"]
        worlds, called = int(row.split(":")[0]), runs[0]["us_per_call"] / 1e6
        rate = worlds * runs[0]["bytes_per_step"] / called
        cells += [f"{rate / 1e9:.2f}", f"{rate / limits[0]['bytes_per_s']:.2f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1:] or ROWS)
