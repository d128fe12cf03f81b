"""Hovering learned from scratch: three seeds, in processes of their own.

python -m benchmark.learn [bptt|ppo|rltools ...]

Seconds are those of a whole process: start of Python, imports, compilation, training and the
policy's file. Cold is without a cache, warm the same again with it. RLTOOLS_PYTHON names a Python
that has rltools==2.2.1, which trains its own hovering Crazyflie: from attitudes of up to 90
degrees, without differences between drones.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ALGORITHMS = ("bptt", "ppo", "rltools")
SEEDS = (0, 1, 2)
RLTOOLS = Path(__file__).parent / "rltools" / "train.py"


def main(algorithms: Sequence[str] = ALGORITHMS) -> None:
    """Print a Markdown table of seconds, samples and successful flights."""
    rltools = os.environ.get("RLTOOLS_PYTHON")
    if rltools is None and "rltools" in algorithms:
        print("RLTOOLS_PYTHON names no Python that has rltools, which is left out\n")
        algorithms = [x for x in algorithms if x != "rltools"]
    print("| algorithm | seed | s, cold | warm | s of processor time, cold | warm ", end="")
    print("| M samples | flights |\n|---|---:|---:|---:|---:|---:|---:|---|")
    for algorithm in algorithms:
        for seed in SEEDS:
            print("| " + " | ".join(row(algorithm, seed)) + " |", flush=True)


def row(algorithm: str, seed: int) -> list[str]:
    """Train twice and evaluate one policy, and return the cells of its row."""
    with tempfile.TemporaryDirectory() as folder:
        train = _with_rltools if algorithm == "rltools" else _with_ours
        taken, used = [], []
        for _ in range(1 if algorithm == "rltools" else 2):  # it keeps no compiled code
            before, started = _processor_time(), time.perf_counter()
            samples, evaluate = train(algorithm, seed, folder)
            taken.append(f"{time.perf_counter() - started:.1f}")
            used.append(f"{_processor_time() - before:.1f}")
        cells = [x for pair in (taken, used) for x in (pair[0], pair[-1])]
        return [algorithm, str(seed), *cells, samples, evaluate()]


def _with_ours(algorithm: str, seed: int, folder: str) -> tuple[str, Callable[[], str]]:
    """Train, and return samples [M] and what counts successful flights."""
    command = [sys.executable, "-m", "crazyflow_ros.learn"]
    file = str(Path(folder, "hover.policy"))
    options = ["--algorithm", algorithm, "--seed", str(seed), "--out", file]
    trained = _output([*command, "hover", *options], XDG_CACHE_HOME=folder)

    def evaluate() -> str:
        share = _output([*command, "evaluate", file], XDG_CACHE_HOME=folder).split(" of ")[0]
        return f"{share} within 5 cm after 5 s"

    return re.findall(r"([\d.]+) M samples", trained)[-1], evaluate


def _with_rltools(_: str, seed: int, folder: str) -> tuple[str, Callable[[], str]]:
    """Do the same with RLtools, which counts the steps until a flight ends, 500 at most."""
    python = os.environ["RLTOOLS_PYTHON"]
    trained = _output([python, str(RLTOOLS), str(seed)], TMPDIR=folder)
    steps, length = re.findall(r"Step: (\d+)/.*episode length: ([\d.]+)", trained)[-1]
    return f"{int(steps) / 1e6:.2f}", lambda: f"mean of {float(length) / 100:.2f} s of 5 s"


def _output(command: list[str], **variables: str) -> str:
    # Without compiled code that JAX itself has kept.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
    environment |= variables
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1800, check=True
    )
    return result.stdout


def _processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(sys.argv[1:] or ALGORITHMS)
