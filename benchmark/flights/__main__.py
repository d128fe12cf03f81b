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
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmark.flights.campaign import SIZE, Result, groups, report
from benchmark.flights.conditions import described
from benchmark.flights.flown import RATE, fly, group
from benchmark.flights.judge import judge


def main(arguments: Sequence[str] | None = None) -> int:
    """Fly the missions; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missions", type=int, default=1000, help=f"in groups of {SIZE}")
    parser.add_argument("--seed", type=int, default=0, help="of the first group")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--replay", metavar="SEED/DRONE", help="repeat one flight, and print it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    given = parser.parse_args(arguments)
    if given.replay:
        return _replay(given.replay)
    results: list[Result] = []
    began = time.monotonic()
    for found in groups(given.seed, given.missions, given.processes):
        results += found
        faults = sum(bool(result.verdict.fault) for result in results)
        spent = time.monotonic() - began
        print(
            f"{len(results)} flown, {faults} failed, {spent:.0f} s: {found[0].conditions}",
            flush=True,
        )
        for name, kind, _, verdict in found:
            if verdict.fault:
                print(f"  FAILED {name}, {kind}: {verdict.fault}", flush=True)
    if given.json:
        given.json.write_text(json.dumps([[*r[:3], r.verdict._asdict()] for r in results]))
    print(report(results))
    return int(any(result.verdict.fault for result in results))


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
