"""Hostile input of all kinds: `make hostile`.

    make hostile ARGS="--inputs 2000 --seed 7"

Most of it is sent to a simulator while a drone flies a figure (`hostile_node`): messages, requests,
goals and parameters whose fields are plausible names and numbers, of which some are replaced by
what nobody should send; files that are whole, damaged, huge, or no files at all; worlds and robots
that are wrong, or more than they look (`hostile_descriptions`). Policies reach a node only at its
start, so files of them are read beside it, as a node that starts does (`hostile_policies`). Other
files are read one after the other (`hostile_readers`), the memory that a simulator shares with
controllers is written over (`hostile_memory`), another DDS sends bytes that ROS cannot send
(`hostile_wire`), and processes are stopped, robbed of their memory, clock or output, or doubled
(`hostile_processes`).

Nothing of that may end or hang the simulator, fail inside of it, or make its memory grow.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hostile_memory import scribble_over
from hostile_node import Hostile, arguments, check
from hostile_processes import FAULTS
from hostile_readers import CrazyswarmFiles, Reader
from hostile_recordings import Recordings
from hostile_wire import send_bytes
from ros_client import SimulatorProcess, own_domain

SHARES = {"files": 0.1, "memory": 0.1, "wire": 0.1}
"""Of the inputs; all others are sent to the node."""
STOPPED = 60.0  # s for which the node is stopped

Counts = dict[str, Counter[str]]


def main() -> None:
    """Send inputs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, n, domain = random.Random(options.seed), options.inputs, own_domain("hostile")
    counts: Counts = {}
    shares = {name: round(share * n) for name, share in SHARES.items()}
    try:
        wrong = _node(n - sum(shares.values()), rng, domain, counts)
        _read_files(shares["files"], rng, domain, counts)
        counts["memory shared with controllers"] = scribble_over(shares["memory"], rng, domain)
        _send_bytes(shares["wire"], rng, domain, counts)
        _provoke_faults(domain, counts)
    finally:  # what has been tried when one of them fails
        _print_table(counts)
    print(*wrong, sep="\n")
    sys.exit(bool(wrong))


def _read_files(n: int, rng: random.Random, domain: int, counts: Counts) -> None:
    """Read files of other programs."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        readers: list[Reader] = [CrazyswarmFiles(place, rng, domain), Recordings(place, rng)]
        for reader in readers:
            counts[f"files {reader.name}"] = reader.counts
            reader.run(n // len(readers))
            reader.close()
            print(f"{reader.name}: read within {reader.slowest:.2f} s at most")


def _send_bytes(n: int, rng: random.Random, domain: int, counts: Counts) -> None:
    """Send bytes to all that a simulator reads."""
    try:
        counts["bytes on the wire"] = send_bytes(n, rng, domain)
    except pytest.skip.Exception as why:
        print(f"left out: {why}")


def _provoke_faults(domain: int, counts: Counts) -> None:
    """Let each fault happen once."""
    for name, fault in FAULTS.items():
        print(f"fault: {name}")
        try:
            fault(domain)
        except pytest.skip.Exception as why:
            print(f"left out: {why}")
        else:
            counts[f"fault {name}"] = Counter(tried=1)


def _node(n: int, rng: random.Random, domain: int, counts: Counts) -> list[str]:
    """Send inputs to a node, print what it counts, and return what went wrong."""
    with TemporaryDirectory() as folder, SimulatorProcess(domain, arguments(Path(folder))) as it:
        hostile = Hostile(it, domain, rng, Path(folder))
        try:
            hostile.run(n)
            hostile.stop(STOPPED)
            wrong, figures = check(hostile, it), hostile.figures()
            reading = getrusage(RUSAGE_CHILDREN).ru_maxrss / 1024  # MB, before the simulator ends
        finally:
            counts |= hostile.counts
            hostile.client.close()
        code, _ = it.end()
    print(*(f"{name}: {value:g}" for name, value in figures.items()), sep=", ")
    pauses, memory = np.array(hostile.pauses) * 1e3, hostile.memory
    print(
        f"{len(pauses)} times pause answered within {np.median(pauses):.1f} ms in the median, "
        f"{pauses.max():.0f} ms at most, {(pauses > 100).sum()} times after more than 100 ms"
    )
    print(
        f"memory {memory[0]:.0f} MB at first, {max(memory):.0f} at most, {memory[-1]:.0f} at last; "
        f"{hostile.sandboxes.peak:.0f} MB at most of the {hostile.sandboxes.started} processes "
        f"in which descriptions were tried out, {reading:.0f} MB at most to read a policy"
    )
    return [*wrong, *([f"exit code {code}"] if code else [])]


def _print_table(counts: Counts) -> None:
    totals: Counts = defaultdict(Counter)
    for name, each in sorted(counts.items()):
        totals[f"all of kind {name.split()[0]}"] += each
        totals["all"] += each
    print(f"{'':60} tried refused accepted")
    for name, each in (*sorted(counts.items()), *totals.items()):
        print(f"{name:60} {each['tried']:5} {each['refused']:7} {each['accepted']:8}")


if __name__ == "__main__":
    main()
