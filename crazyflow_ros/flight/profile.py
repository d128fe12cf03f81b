"""Jerk-limited motion along one axis: the fastest way to a velocity, and a fast way to a position.

A profile is a sequence of phases of constant jerk. After R. Haschke, E. Weitnauer, H. Ritter,
"On-line planning of time-optimal, jerk-limited trajectories", IROS 2008. Computed in plain floats,
because streamed setpoints replan each axis of each drone many times a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import copysign, sqrt
from typing import NamedTuple

_MAX_STEPS = 100  # of the search for a cruising speed; it takes about ten
_RESOLUTION = 1e-12  # m or rad, of the final position


class AxisState(NamedTuple):
    """Motion along an axis at one instant: position, velocity, acceleration."""

    pos: float
    vel: float
    acc: float

    def after(self, phase: Phase) -> AxisState:
        """Return the motion at the end of a phase."""
        t, jerk = phase
        return AxisState(
            self.pos + t * (self.vel + t * (self.acc / 2 + t * jerk / 6)),
            self.vel + t * (self.acc + t * jerk / 2),
            self.acc + t * jerk,
        )


class Bounds(NamedTuple):
    """Limits of the motion along an axis; all positive."""

    vel: float
    acc: float
    jerk: float

    def scaled(self, factor: float) -> Bounds:
        """Scale all limits by a factor."""
        return Bounds(self.vel * factor, self.acc * factor, self.jerk * factor)


class Phase(NamedTuple):
    """A period of constant jerk."""

    duration: float
    """s."""
    jerk: float


Profile = list[Phase]
"""A sequence of phases."""


def end_of(start: AxisState, profile: Iterable[Phase]) -> AxisState:
    """Return the motion after the last phase."""
    for phase in profile:
        start = start.after(phase)
    return start


def to_velocity(start: AxisState, vel: float, bounds: Bounds) -> Profile:
    """Reach a velocity, without acceleration, as fast as the bounds allow.

    Args:
        start: Initial motion; may exceed the bounds.
        vel: Final velocity.
        bounds: Limits of acceleration and jerk; the limit of the velocity has no effect.

    Returns:
        Three phases.
    """
    _, v0, a0 = start
    _, most, jerk = bounds
    # The velocity after the acceleration has faded out decides the sign of the change.
    sign = 1.0 if vel >= v0 + a0 * abs(a0) / (2 * jerk) else -1.0
    highest = sqrt(max(0.0, sign * jerk * (vel - v0) + a0 * a0 / 2))
    peak = sign * min(highest, most)
    first, last = abs(peak - a0) / jerk, abs(peak) / jerk
    held = 0.0
    if highest > most:
        held = max(0.0, (vel - v0 - (peak + a0) / 2 * first - peak / 2 * last) / peak)
    return [Phase(first, copysign(jerk, peak - a0)), Phase(held, 0.0), Phase(last, -sign * jerk)]


def to_position(start: AxisState, pos: float, bounds: Bounds) -> Profile:
    """Come to rest at a position, without overshoot unless the start makes it unavoidable.

    Args:
        start: Initial motion; may exceed the bounds.
        pos: Final position.
        bounds: Limits.

    Returns:
        Seven phases: to the cruising speed, cruising, to rest; none if the axis is already at rest
        at the position.
    """
    if start == (pos, 0.0, 0.0):
        return []
    stopped = end_of(start, to_velocity(start, 0.0, bounds)).pos
    # Mirrored so that the target is ahead of the position where the axis could stop.
    side = 1.0 if pos >= stopped else -1.0
    ahead = AxisState(0.0, side * start.vel, side * start.acc)
    distance = side * (pos - start.pos)
    _, acc, jerk = bounds

    def missing(speed: float) -> float:
        """Return the remaining distance if the axis brakes as soon as it reaches a speed."""
        there = end_of(ahead, to_velocity(ahead, speed, bounds)).pos
        # To brake from a speed without acceleration, at most with the limits.
        time = speed / acc + acc / jerk if speed * jerk > acc * acc else 2 * sqrt(speed / jerk)
        return distance - there - speed * time / 2

    cruising = 0.0
    if (left := missing(bounds.vel)) >= 0:
        speed, cruising = bounds.vel, left / bounds.vel
    else:
        # The remaining distance is negative at the highest speed and positive at 0. It is
        # not monotonic where braking would be interrupted: the fastest motion has a speed
        # beyond the one that the axis reaches without further acceleration.
        fading = ahead.vel + ahead.acc * abs(ahead.acc) / (2 * jerk)
        low = min(max(0.0, fading), bounds.vel)
        if missing(low) < 0:
            low = 0.0
        speed = _root(missing, low, bounds.vel)
    there = to_velocity(ahead, speed, bounds)
    phases = [*there, Phase(cruising, 0.0), *to_velocity(AxisState(0.0, speed, 0.0), 0.0, bounds)]
    return [Phase(duration, side * jerk) for duration, jerk in phases]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find where a function, not negative at `low` and negative at `high`, crosses zero.

    By false position with the Illinois rule (M. Dowell, P. Jarratt, BIT 11, 1971).
    """
    at_low, at_high = function(low), function(high)
    weight_low, weight_high, side = at_low, at_high, 0
    for _ in range(_MAX_STEPS):
        if at_low <= _RESOLUTION:
            break
        x = low + (high - low) * weight_low / (weight_low - weight_high)
        if not low < x < high:
            x = (low + high) / 2
            if not low < x < high:
                break  # the limits of float precision
        value = function(x)
        # Halve the weight of an end that stays for the second time.
        if value >= 0:
            low = x
            at_low = weight_low = value
            weight_high, side = weight_high / (2 if side > 0 else 1), 1
        else:
            high, weight_high = x, value
            weight_low, side = weight_low / (2 if side < 0 else 1), -1
    return low
