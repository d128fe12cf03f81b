"""`Sim` beside Crazyflow's, row by row in one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROWS = [f"{n}:{mode}" for n in (1, 1024, 16384) for mode in ("rotor_vel", "attitude", "state")]
WORKER = Path(__file__).with_name("sim_worker.py")


def measure(python: str, library: str, row: str) -> dict[str, float]:
    """Run one row in a process of its own.

    Raises:
        RuntimeError: The process failed; the message holds what it said last.
    """
    result = subprocess.run(
        [python, str(WORKER), library, row], capture_output=True, text=True, timeout=900
    )
    if result.returncode != 0:
        raise RuntimeError(f"{library} {row}: {result.stderr.strip()[-500:]}")
    row_of_json: dict[str, float] = json.loads(result.stdout.strip().splitlines()[-1])
    return row_of_json


def main() -> None:
    """Print the comparison as a Markdown table."""
    crazyflow = os.environ.get("CRAZYFLOW_PYTHON")
    if crazyflow is None:
        sys.exit("CRAZYFLOW_PYTHON must name the Python that has crazyflow; use `make bench`")
    print("| worlds | control | us a call, ours | Crazyflow | ratio |", end="")
    print(" M steps/s, ours | Crazyflow | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        ours = measure(sys.executable, "crazyflow_ros", row)
        theirs = measure(crazyflow, "crazyflow", row)
        calls, steps = ((ours[key], theirs[key]) for key in ("us_per_call", "steps_per_s"))
        n_worlds, mode = row.split(":")
        print(
            f"| {n_worlds} | {mode} | {calls[0]:.0f} | {calls[1]:.0f} | {calls[1] / calls[0]:.1f} |"
            f" {steps[0] / 1e6:.2f} | {steps[1] / 1e6:.2f} | {steps[0] / steps[1]:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
