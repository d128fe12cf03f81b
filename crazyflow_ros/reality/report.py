"""Errors of flights as a table in Markdown and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crazyflow_ros.identification.open_loop import SHOWN, OpenLoop
from crazyflow_ros.reality.flight_comparison import Comparison


@dataclass(frozen=True)
class Unaided:
    """Errors of a flight of which the drone knows only the setpoints."""

    true: Comparison
    """With the true state, by the controllers alone."""
    true_by_packets: Comparison
    """The same by packets of the Crazyflie's protocol."""
    filtered: Comparison
    """With the estimate of a simulated Kalman filter, by the controllers alone."""
    filtered_by_packets: Comparison


_UNAIDED = (
    "flight",
    "controller",
    "true state, cm",
    "by packets, cm",
    "filter, cm",
    "by packets, cm",
    "real from setpoint, cm",
)
_HEAD = (
    "flight",
    "controller",
    "judged, s",
    "RMSE, cm",
    "x, y, z, cm",
    "worst, cm",
    "shifted, cm",
    "shift, ms",
    "attitude, deg",
    "real from setpoint, cm",
    "real from real, cm",
)


def table(found: Sequence[Comparison]) -> str:
    """Return a row for each flight, then median and worst of each controller."""
    rows = [
        _row(c.name, [c], np.max, f"{c.begin:.1f} to {c.end:.1f}", f"{1e3 * c.shift:.0f}")
        for c in found
    ]
    for own in _by_controller(found).values():
        count = f"{len(own)} flight{'s' if len(own) > 1 else ''}"
        for name, pick in (("median", np.nanmedian), ("worst", np.nanmax)):
            rows.append(_row(f"**{name}**", own, pick, count))
    return markdown(_HEAD, rows)


def unaided_table(found: Sequence[Unaided]) -> str:
    """Return a row for each flight, then median and worst of each controller."""
    errors = np.array([[way.rmse for way in vars(each).values()] for each in found])
    real = np.array([each.true.real_from_setpoint for each in found])[:, None]
    table, kinds = np.hstack((errors, real)), [each.true.controller for each in found]
    rows = [[each.true.name, kind, *map(_cm, row)] for each, kind, row in zip(found, kinds, table)]
    for kind in dict.fromkeys(kinds):
        own = table[[other == kind for other in kinds]]
        for name, values in (("median", np.median(own, axis=0)), ("worst", own.max(axis=0))):
            rows.append([f"**{name}** of {len(own)}", kind, *map(_cm, values)])
    return markdown(_UNAIDED, rows)


def open_loop_table(found: Sequence[OpenLoop]) -> str:
    """Return a row for each flight, then the medians of those with the same source."""
    head = [f"after {seconds:g} s, {unit}" for unit in ("cm", "rad") for seconds in SHOWN]
    groups = [(each.name, each.source, [each]) for each in found]
    for source in dict.fromkeys(each.source for each in found):
        groups.append(("**median**", source, [each for each in found if each.source == source]))
    rows = []
    for name, source, own in groups:
        errors = np.median([[each.at(seconds) for seconds in SHOWN] for each in own], axis=0)
        cells = [*(f"{100 * far:.2f}" for far in errors[:, 0]), *(f"{x:.3f}" for x in errors[:, 1])]
        rows.append([name, source, *cells])
    return markdown(["flight", "from", *head], rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first two are right-aligned."""
    columns = [list(column) for column in zip(head, *rows)]
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for cells in (head, *rows):
        shown = [
            f"{cell:<{width}}" if i < 2 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(cells, widths))
        ]
        lines.append(f"| {' | '.join(shown)} |")
    rule = [
        f"{'-' * width}" if i < 2 else f"{'-' * (width - 1)}:" for i, width in enumerate(widths)
    ]
    return "\n".join([lines[0], f"| {' | '.join(rule)} |", *lines[1:]])


def summary(found: Sequence[Comparison]) -> dict[str, dict[str, float]]:
    """Return number of flights, median and worst errors [m] by controller."""
    result = {}
    for controller, own in _by_controller(found).items():
        rmse, shifted = [each.rmse for each in own], [each.shifted_rmse for each in own]
        result[controller] = {
            "flights": len(own),
            "falls": sum(each.fall is not None for each in own),
            "median_rmse": float(np.median(rmse)),
            "worst_rmse": max(rmse),
            "median_shifted_rmse": float(np.median(shifted)),
            "worst_shifted_rmse": max(shifted),
        }
    return result


def as_json(
    settings: Mapping[str, Any], judged: Mapping[str, Sequence[Any]], refused: Sequence[str]
) -> str:
    """Return the figures of tables in SI units, in JSON.

    Args:
        settings: How the flights were flown.
        judged: Dataclasses of errors by the names of tables.
        refused: Why flights were not judged.
    """
    content = {
        "settings": dict(settings),
        "summary": summary(judged.get("closed-loop", ())),
        **{name: [asdict(each) for each in found] for name, found in judged.items()},
        "not_judged": list(refused),
    }
    return json.dumps(_finite(content), indent=1) + "\n"


def _row(
    name: str, own: Sequence[Comparison], pick: Any, judged: str, shift: str = ""
) -> list[str]:
    """Return what `pick` makes of the errors of flights with one controller."""

    def cm(field: str) -> str:
        return _cm(float(pick([getattr(each, field) for each in own])))

    pairs = [each.repetitions for each in own if each.repetitions is not None]
    axes = pick(np.array([each.rmse_axes for each in own]), axis=0)
    return [
        name,
        own[0].controller,
        judged,
        cm("rmse"),
        ", ".join(map(_cm, axes)),
        cm("worst"),
        cm("shifted_rmse"),
        shift,
        f"{np.degrees(pick([each.attitude_rmse for each in own])):.1f}",
        cm("real_from_setpoint"),
        _cm(float(pick(pairs))) if pairs else "",
    ]


def _by_controller(found: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    groups: dict[str, list[Comparison]] = {}
    for each in found:
        groups.setdefault(each.controller, []).append(each)
    return groups


def _cm(metres: float) -> str:
    return f"{100 * metres:.1f}"


def _finite(value: Any) -> Any:
    """Return JSON values without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
