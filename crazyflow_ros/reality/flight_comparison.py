"""How far the simulated flight is from the recorded one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.identification.fit import rms
from crazyflow_ros.reality.closed_loop import Flown
from crazyflow_ros.reality.recorded import RATE, RISEN, Recorded

SKIPPED = 2.0
"""Time after take-off, or after a beginning in the air, that is not judged [s]."""
SHIFTS = np.arange(-0.08, 0.1401, 0.005)
"""Shifts in time that are tried [s]: positive ones delay the simulated flight."""

_JUMP, _JUMP_SAMPLES, _ONTO = 0.08, 5, 0.35  # m, samples, share of the distance from the drone
_HELD = 0.1  # m from the drone, below which a setpoint that jumps has not jumped onto it
_LANDED = 0.03  # m above the floor
_REPETITION = re.compile(r"[_-]?rep\d+$")
_ALIGNED = np.arange(-1.0, 1.001, 0.01)  # s, shifts between two repetitions


@dataclass(frozen=True)
class Comparison:
    """Errors of a flight: simulated minus recorded."""

    name: str
    controller: str
    begin: float
    """First judged sample [s since the first pose]."""
    end: float
    """Last one [s since the first pose]."""
    rmse: float
    """Root of the mean square of the distance [m]."""
    rmse_axes: tuple[float, ...]
    """Along x, y and z [m]."""
    mean_axes: tuple[float, ...]
    """Mean difference [m]."""
    worst: float
    """Greatest distance [m]."""
    shift: float
    """The one of `SHIFTS` with the least error [s]."""
    shifted_rmse: float
    """`rmse` with that shift of the same simulated path [m]."""
    attitude_rmse: float
    """Of the angle between the attitudes, without the angle of the markers [rad]."""
    real_from_setpoint: float
    """Of the real drone's distance from its setpoint [m]."""
    fall: str | None
    """What became of the simulated drone, if it fell."""
    repetitions: float | None = None
    """Median distance between two real repetitions [m], each with the best shift in time; None if
    the flight was not repeated."""


def compare(flown: Flown) -> Comparison:
    """Compare a flight.

    From `SKIPPED` after take-off to touch-down, or until the setpoint jumps onto the drone: then
    the firmware's planner has taken over, which begins where the drone is. Its controllers are then
    reset, which logs do not show.

    Raises:
        ValueError: The real drone did not fly, or not for long enough.
    """
    real = flown.real
    judged = judged_part(real)
    time = real.time[judged]
    difference = flown.pos[judged] - real.pos[judged]
    distance = np.linalg.norm(difference, axis=1)
    errors = [_shifted_error(flown, judged, shift) for shift in SHIFTS]
    best = int(np.argmin(errors))
    start = real.log.pose.time[0]
    return Comparison(
        real.log.name,
        str(flown.controller),
        float(time[0] - start),
        float(time[-1] - start),
        rms(distance),
        tuple(np.sqrt((difference**2).mean(axis=0)).tolist()),
        tuple(difference.mean(axis=0).tolist()),
        float(distance.max()),
        float(SHIFTS[best]),
        errors[best],
        _attitude_error(real.quat[judged], flown.quat[judged]),
        rms(np.linalg.norm(real.setpoint[judged, :3] - real.pos[judged], axis=1)),
        _fall(flown, judged),
    )


def between_repetitions(flights: Sequence[Recorded]) -> dict[str, float]:
    """Return the median distance between two real flights of the same kind, by name of flight.

    Flights are of the same kind if the same controller flew, and if their names differ by the
    number after `rep` alone.
    """
    kinds: dict[tuple[str, str | None], list[Recorded]] = {}
    for flight in flights:
        name = _REPETITION.sub("", flight.log.name)
        kinds.setdefault((name, flight.log.controller), []).append(flight)
    found: dict[str, float] = {}
    for some in kinds.values():
        pairs = [_repetition_error(a, b) for a, b in combinations(some, 2)]
        if pairs:
            found |= {flight.log.name: float(np.median(pairs)) for flight in some}
    return found


def judged_part(real: Recorded) -> slice:
    """Return the samples that are judged, see `compare`.

    Raises:
        ValueError: The real drone did not fly, or not for long enough.
    """
    flying = real.flying
    first = flying.start + int(SKIPPED * RATE)
    last = min(flying.stop, _hand_over(real, first))
    if last - first < RATE:
        raise ValueError(
            f"{real.log.name}: after the first {SKIPPED:g} s, the drone must fly for 1 s at least, "
            f"got {max(last - first, 0) / RATE:g} s"
        )
    return slice(first, last)


def _hand_over(real: Recorded, first: int) -> int:
    """Return the sample at which the setpoint jumps onto the drone, or the number of samples."""
    before, after = real.setpoint[:-_JUMP_SAMPLES, :3], real.setpoint[_JUMP_SAMPLES:, :3]
    there = real.pos[:-_JUMP_SAMPLES]
    old, new = (np.linalg.norm(x - there, axis=1) for x in (before, after))
    jumps = np.linalg.norm(after - before, axis=1) > _JUMP
    onto = np.flatnonzero(jumps & (old > _HELD) & (new < _ONTO * old))
    onto = onto[onto >= first]
    return int(onto[0]) if len(onto) else len(real.time)


def _shifted_error(flown: Flown, judged: slice, shift: float) -> float:
    time = flown.real.time
    pos = np.stack([np.interp(time[judged] - shift, time, x) for x in flown.pos.T], axis=1)
    return rms(np.linalg.norm(pos - flown.real.pos[judged], axis=1))


def _attitude_error(real: np.ndarray, simulated: np.ndarray) -> float:
    turned = (Rotation.from_quat(real).inv() * Rotation.from_quat(simulated)).as_rotvec()
    return rms(np.linalg.norm(turned - np.median(turned, axis=0), axis=1))


def _repetition_error(a: Recorded, b: Recorded) -> float:
    """Return the distance between two flights with the best shift, from the first setpoint on."""
    judged = judged_part(a)
    other = judged_part(b)
    time, begun = a.time[judged] - a.time[0], b.time - b.time[0]
    time = time[time < begun[other][-1]]
    pos = a.pos[judged][: len(time)]

    def error(shift: float) -> float:
        then = np.stack([np.interp(time - shift, begun, x) for x in b.pos.T], axis=1)
        return rms(np.linalg.norm(then - pos, axis=1))

    return min(map(error, _ALIGNED)) if len(time) else float("nan")


def _fall(flown: Flown, judged: slice) -> str | None:
    """Return what became of a drone that fell until the end of the judged part."""
    real = flown.real
    until = slice(real.flying.start, judged.stop)
    x, y = flown.quat[until, :2].T
    tilted = np.flatnonzero(x * x + y * y > 0.5)  # the body's z axis points down
    above = flown.pos[until, 2] - real.floor
    risen = np.maximum.accumulate(above) > RISEN
    landed = np.flatnonzero(risen & (above < _LANDED))
    since = real.time[until] - real.log.pose.time[0]
    if not np.isfinite(flown.pos[until]).all():
        return "its state is not finite"
    if len(tilted) and (not len(landed) or tilted[0] <= landed[0]):
        return f"tilts by more than 90 degrees at {since[tilted[0]]:.1f} s"
    if len(landed):
        return f"is on the floor at {since[landed[0]]:.1f} s"
    return None if risen.any() else "does not take off"
