"""`Sim` beside Crazyflow's, row by row in one run.

python -m benchmark.sim [ROW...]    rows are WORLDS:MODE or 1:contacts; all of them by default
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MODES = ("rotor_vel", "attitude", "state")
CONTACTS = "1:contacts"
ROWS = [*(f"{n}:{mode}" for n in (1, 1024, 16384, 262144) for mode in MODES), CONTACTS]
WORKER = Path(__file__).with_name("sim_worker.py")


def measure(python: str, library: str, row: str, devices: int = 1) -> dict[str, float]:
    """Run one row in a process of its own, with ours on `devices` cores.

    Raises:
        RuntimeError: The process failed; the message holds what it said last.
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
    """Print the comparison as Markdown tables: steps, then what a caller waits for."""
    crazyflow = os.environ.get("CRAZYFLOW_PYTHON")
    if crazyflow is None:
        sys.exit("CRAZYFLOW_PYTHON must name the Python that has crazyflow; use `make bench`")
    cores = len(os.sched_getaffinity(0))
    asks_contacts = CONTACTS in rows
    rows = [row for row in rows if row != CONTACTS]
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
    for row in rows:
        n_worlds, mode = row.split(":")
        ours = measure(sys.executable, "crazyflow_ros", row)
        theirs = measure(crazyflow, "crazyflow", row)
        divided = (
            ours if int(n_worlds) % cores else measure(sys.executable, "crazyflow_ros", row, cores)
        )
        cells = [n_worlds, mode]
        for key in ("us_per_call", "us_per_cycle"):
            a, b = ours[key], theirs[key]
            cells += [f"{a:.0f}", f"{b:.0f}", f"{b / a:.1f}"]
        a, b, c = (x["steps_per_s"] / 1e6 for x in (ours, divided, theirs))
        cells += [f"{a:.2f}", f"{b:.2f}", f"{c:.2f}", f"{a / c:.1f}", f"{b / c:.1f}"]
        cells += [f"{x['peak_mb']:.0f}" for x in (ours, theirs)]
        print("| " + " | ".join(cells) + " |", flush=True)
    if asks_contacts:
        a, b = (
            measure(python, library, CONTACTS)["us_per_contacts"]
            for python, library in ((sys.executable, "crazyflow_ros"), (crazyflow, "crazyflow"))
        )
        print("\n| | us, ours | Crazyflow | ratio |\n|---|---:|---:|---:|")
        print(f"| contacts of one world | {a:.0f} | {b:.0f} | {b / a:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ROWS)
