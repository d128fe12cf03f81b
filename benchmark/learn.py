"""Hovering learned from scratch: three seeds, in processes of their own.

python -m benchmark.learn [bptt|ppo ...]

Seconds are those of a whole process: start of Python, imports, compilation without a cache,
training and the policy's file.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

SEEDS = (0, 1, 2)


def main(algorithms: Sequence[str] = ("bptt", "ppo")) -> None:
    """Print a Markdown table of seconds, samples and successful flights."""
    print("| algorithm | seed | s | s of processor time | M samples | within 5 cm after 5 s |")
    print("|---|---:|---:|---:|---:|---:|")
    for algorithm in algorithms:
        for seed in SEEDS:
            print("| " + " | ".join(row(algorithm, seed)) + " |", flush=True)


def row(algorithm: str, seed: int) -> list[str]:
    """Train and evaluate one policy, and return the cells of its row."""
    command = [sys.executable, "-m", "crazyflow_ros.learn"]
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "hover.policy"))
        options = ["--algorithm", algorithm, "--seed", str(seed), "--out", file]
        before, started = _processor_time(), time.perf_counter()
        trained = _output([*command, "hover", *options])
        seconds, used = time.perf_counter() - started, _processor_time() - before
        flown = _output([*command, "evaluate", file])
    samples = re.findall(r"([\d.]+) M samples", trained)[-1]
    return [algorithm, str(seed), f"{seconds:.1f}", f"{used:.1f}", samples, flown.split(" of ")[0]]


def _output(command: list[str]) -> str:
    # Without compiled code of earlier runs.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1800, check=True
    )
    return result.stdout


def _processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(sys.argv[1:] or ("bptt", "ppo"))
