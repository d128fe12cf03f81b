"""Flies groups of missions, in two processes if need be, and tabulates what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from benchmark.flights.conditions import described
from benchmark.flights.flown import fly, group
from benchmark.flights.judge import Verdict, judge

SIZE = 128
"""Drones of a group."""
_WORST = 5  # flights that are named, of each kind of worst
_METRES = "{:.2f} m".format


class Result(NamedTuple):
    """One flight of the campaign."""

    name: str
    """Seed of the group and number of the drone, for `--replay`."""
    kind: str
    conditions: str
    verdict: Verdict


def flown(seed: int) -> list[Result]:
    """Fly and judge one group."""
    conditions, missions = group(seed, SIZE)
    records = fly(conditions, missions, seed)
    return [
        Result(f"{seed}/{i}", record.mission.kind, described(conditions), judge(conditions, record))
        for i, record in enumerate(records)
    ]


def groups(seed: int, missions: int, processes: int) -> Iterator[list[Result]]:
    """Fly at least so many missions in groups of `SIZE`, and yield the results of each group."""
    seeds = range(seed, seed + -(-missions // SIZE))
    if processes == 1:
        yield from map(flown, seeds)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(flown, seeds)


def report(results: Sequence[Result]) -> str:
    """Return a table by kind of mission, which names its worst flights, and the worst of all."""
    lines = [
        "| mission | flights | failed | most tilted | farthest from its course | "
        "farthest from the start at the end | slowest | fastest | largest drift | lowest |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind in [*sorted({result.kind for result in results}), "all"]:
        own = [r for r in results if kind in (r.kind, "all")]
        failed = sum(bool(result.verdict.fault) for result in own)
        verdicts = [result.verdict for result in own]
        lines.append(
            f"| {kind} | {len(own)} | {failed} "
            f"| {_worst(own, 'tilt', lambda x: f'{np.degrees(x):.0f}°')} "
            f"| {_worst(own, 'off', _METRES)} | {_worst(own, 'error', _METRES)} "
            f"| {_worst(own, 'speed', lambda x: f'{x:.1f} m/s', min)} "
            f"| {max(v.speed for v in verdicts):.1f} m/s "
            f"| {max(v.drift for v in verdicts):.2f} m | {min(v.low for v in verdicts):.2f} m |"
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
    return "\n".join(lines)


def _worst(
    results: Sequence[Result],
    field: str,
    shown: Callable[[float], str],
    worst: Callable[..., Result] = max,
) -> str:
    """Return the worst value of a field, and the flight that has it; missions may have none."""
    found = worst(results, key=lambda result: getattr(result.verdict, field))
    value = getattr(found.verdict, field)
    return f"{shown(value)} ({found.name})" if value else "-"
