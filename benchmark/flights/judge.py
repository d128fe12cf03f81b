"""Judges flights: who fell, touched the floor, left the limits or did not come back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmark.flights.conditions import Conditions
from benchmark.flights.flown import RATE, Record
from crazyflow_ros.control import Controller
from crazyflow_ros.flight import FlightState
from crazyflow_ros.flight.plan import Rules

TILT, ROUGH_TILT = np.radians(70.0), np.radians(95.0)
"""Largest tilts [rad]: of drones on their courses, and of drones that are pushed or caught."""
CLOSE, ROUGHLY = 0.25, 0.6
"""Largest distances from the start at the end [m], as the drone believes: usually, and in wind or
with a Flow deck."""
DRIFT, DRIFT_SPEED = 0.1, 0.05
"""Largest drift of a drone with a Flow deck: as a share of its way, and m/s."""

_TOUCH = 0.05  # of the weight
_CLEAR = 0.25  # m above the rest, of the reference of a drone that flies: with a load, some sag
_AFTER = 1.0  # s after the reference has left the floor, before the floor counts


class Verdict(NamedTuple):
    """Result of one flight."""

    fault: str
    """What went wrong, or an empty text."""
    tilt: float
    """Largest tilt, rad."""
    off: float
    """Largest distance from the reference on the way, m; 0 for rough missions."""
    error: float
    """Distance from the start at the end, as the drone believes, m."""
    drift: float
    """Error of what it believes at the end, m."""
    speed: float
    """Largest speed, m/s."""
    low: float
    """Least height between take-off and landing, above the rest, m."""


def judge(conditions: Conditions, record: Record) -> Verdict:
    """Judge a flight."""
    flown, rules = record.mission, Rules.of(conditions.drone, conditions.config(1, 0).flight)
    times = np.arange(1, len(record.tilt) + 1) / RATE
    up = record.reference[:, 2] > rules.rest_height + _CLEAR
    low = np.maximum.accumulate(np.where(up, 0.0, times))  # when the reference was there last
    in_flight = (times > low + _AFTER) & (times < flown.back)
    height = record.pos[:, 2] - rules.rest_height
    away = np.linalg.norm(record.believed - record.reference, axis=1)
    back = (times > flown.back - 1.0) & (times < flown.back)
    goal = (*flown.home, 2.0)
    error = float(np.linalg.norm(record.believed[back] - goal, axis=1).max())
    way = float(np.linalg.norm(np.diff(record.pos[times < flown.back], axis=0), axis=1).sum())
    most = DRIFT * way + DRIFT_SPEED * flown.back
    wrong = float(np.linalg.norm(record.believed[back] - record.pos[back], axis=1).max())
    verdict = Verdict(
        "",
        float(record.tilt[in_flight].max(initial=0.0)),
        0.0 if flown.rough else float(np.nanmax(away[in_flight], initial=0.0)),
        error,
        wrong,
        float(np.linalg.norm(record.vel[in_flight], axis=1).max(initial=0.0)),
        float(height[in_flight].min(initial=np.inf)),
    )
    touches = record.touches[in_flight] > _TOUCH * rules.weight
    return verdict._replace(fault=_fault(conditions, record, verdict, bool(touches.any()), most))


def _fault(
    conditions: Conditions, record: Record, verdict: Verdict, touches: bool, most_drift: float
) -> str:
    rough = record.mission.rough
    kinds = {event.kind: event for event in record.events}
    if "crashed" in kinds:
        return f"fell: {kinds['crashed'].text}"
    if "upside down" in kinds and not rough:
        return f"fell: {kinds['upside down'].text}"
    if touches:
        return f"touched the floor, at {verdict.low:.2f} m"
    if verdict.tilt > (ROUGH_TILT if rough else TILT):
        return f"tilted by {np.degrees(verdict.tilt):.0f} degrees"
    if "off course" in kinds and not rough:
        return kinds["off course"].text
    if verdict.error > _most_error(conditions):
        return f"was {verdict.error:.2f} m from its place at the end"
    if verdict.drift > most_drift:
        return f"believed to be elsewhere, by {verdict.drift:.2f} m"
    if record.state != FlightState.landed:
        return f"was {record.state} at the end, not landed"
    return ""


def _most_error(conditions: Conditions) -> float:
    # Brescianini's controller has no integral: wind moves it like a spring.
    springs = conditions.controller == Controller.brescianini
    if any(conditions.wind):
        return ROUGHLY * (2.0 if springs else 1.0)
    return ROUGHLY if conditions.positioning == "flow" else CLOSE
