"""Flies random missions and names the worst: `make flights ARGS="--missions 1000"`.

Groups of drones fly side by side, each its own mission, in conditions that they share. Exit code 1
if one fell, touched the floor, left its limits or did not come back. `--replay SEED/DRONE` repeats
a flight to the bit, and prints it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmark.flights.conditions import described
from benchmark.flights.flown import RATE, fly, group
from benchmark.flights.judge import Verdict, judge

SIZE = 64
"""Drones of a group."""
_WORST = 5  # flights that are named, of each kind of worst


class Result(NamedTuple):
    """One flight of the campaign."""

    name: str
    """Seed of the group and number of the drone, for `--replay`."""
    kind: str
    conditions: str
    verdict: Verdict


def flown(seed: int, size: int) -> list[Result]:
    """Fly and judge one group."""
    conditions, missions = group(seed, size)
    records = fly(conditions, missions, seed)
    return [
        Result(f"{seed}/{i}", record.mission.kind, described(conditions), judge(conditions, record))
        for i, record in enumerate(records)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fly the missions; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first group")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--replay", metavar="SEED/DRONE", help="repeat one flight, and print it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    given = parser.parse_args(arguments)
    if given.replay:
        return _replay(given.replay)
    results: list[Result] = []
    began = time.monotonic()
    for found in _groups(given.seed, given.missions, given.processes):
        results += found
        faults = sum(bool(result.verdict.fault) for result in results)
        spent = time.monotonic() - began
        print(
            f"{len(results)} flown, {faults} failed, {spent:.0f} s: {found[0].conditions}",
            flush=True,
        )
    if given.json:
        given.json.write_text(json.dumps([[*r[:3], r.verdict._asdict()] for r in results]))
    print(report(results))
    return int(any(result.verdict.fault for result in results))


def _groups(seed: int, missions: int, processes: int) -> Iterator[list[Result]]:
    sizes = [SIZE] * (missions // SIZE) + ([missions % SIZE] if missions % SIZE else [])
    seeds = range(seed, seed + len(sizes))
    if processes == 1:
        yield from map(flown, seeds, sizes)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(flown, seeds, sizes)


def report(results: Sequence[Result]) -> str:
    """Return a table by kind of mission, and the worst flights by name."""
    lines = [
        "| mission | flights | failed | largest tilt | farthest from the course | "
        "farthest from the start at the end | fastest | lowest |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind in [*sorted({result.kind for result in results}), "all"]:
        own = [r.verdict for r in results if kind in (r.kind, "all")]
        failed = sum(bool(verdict.fault) for verdict in own)
        lines.append(
            f"| {kind} | {len(own)} | {failed} "
            f"| {np.degrees(max(v.tilt for v in own)):.0f}° | {max(v.off for v in own):.2f} m "
            f"| {max(v.error for v in own):.2f} m | {max(v.speed for v in own):.1f} m/s "
            f"| {min(v.low for v in own):.2f} m |"
        )
    lines.append("")
    for what, field in (
        ("most tilted [rad]", "tilt"),
        ("farthest from its course [m]", "off"),
        ("farthest at the end [m]", "error"),
    ):
        found = sorted(((getattr(r.verdict, field), r.name) for r in results), reverse=True)
        named = ", ".join(f"{name} ({value:.2f})" for value, name in found[:_WORST])
        lines.append(f"{what}: {named}")
    for result in results:
        if result.verdict.fault:
            lines.append(
                f"FAILED {result.name}, {result.kind}, {result.conditions}: {result.verdict.fault}"
            )
    return "\n".join(lines)


def _replay(name: str) -> int:
    seed, number = map(int, name.split("/"))
    conditions, missions = group(seed, SIZE)
    record = fly(conditions, missions, seed)[number]
    verdict = judge(conditions, record)
    print(described(conditions), record.mission.kind, sep=", ")
    actions = [(t, f"{type(a).__name__} {a}") for t, a in record.mission.actions]
    actions += [(event.time_ns * 1e-9, f"EVENT {event.text}") for event in record.events]
    for i in range(0, len(record.tilt), RATE // 10):
        now = (i + 1) / RATE
        for time_s, text in sorted(actions):
            if now - 0.1 < time_s <= now:
                print(f"  {time_s:8.3f} s: {text[:150]}")
        pos, reference = record.pos[i].round(2), record.reference[i].round(2)
        tilt = np.degrees(record.tilt[i])
        print(f"{now:8.2f} s at {pos} m, reference {reference} m, tilt {tilt:.0f} degrees")
    print(record.state, record.refused, verdict)
    return int(bool(verdict.fault))


if __name__ == "__main__":
    sys.exit(main())
