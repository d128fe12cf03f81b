"""Whether a drone is off its course, or has come down on something."""

from __future__ import annotations

from math import inf
from typing import TypeVar

import numpy as np

from crazyflow_ros.flight.commander import ARRIVED, VELOCITIES, Commander
from crazyflow_ros.flight.plan import FlightState

T = TypeVar("T", float, np.ndarray)

_MAX_DEVIATION = 0.75  # m from the reference position, at which a drone tilts by 35 degrees
_LATER = 1.3  # of its lag, by which a drone is late when the setpoint turns back
_STRAIGHT = 0.01  # m/s, horizontally


def allowed_deviation(speed: T, lag: float) -> T:
    """Return how far drones may be off their courses [m], with speeds [m/s] and a lag [s]."""
    return _MAX_DEVIATION + _LATER * lag * speed


def is_lost(commander: Commander, time_ns: int, place: np.ndarray, lag: float) -> bool:
    """Return whether a drone is too far off its course.

    Args:
        commander: Its commander.
        time_ns: Present time [ns].
        place: (3,) where it is, as far as it knows [m].
        lag: Delay with which it follows a moving setpoint [s].
    """
    order = commander.order
    if order is None or order.plan.course is None or not order.plan.bounded:
        return False
    pos, vel = order.plan.course.place(order.seconds(time_ns))
    if commander.state is FlightState.landing:
        rest = float(order.plan.course.at(order.plan.course.end).pos[2]) + ARRIVED
        if max(pos[2], place[2]) < rest:
            return False  # it is down, where the floor shakes it, and its camera sees nothing
    away = float(np.linalg.norm(place - pos[:3]))
    speed = max(commander.rules.envelope.speed, float(np.linalg.norm(vel[:3])))
    # True also for NaN, where a drone does not know its place.
    return not away <= allowed_deviation(speed, lag)


def comes_down(commander: Commander, time_ns: int) -> float:
    """Return the height to which a course has come straight down so far, to land [m].

    A drone that stands higher has landed on something. It is infinite while the course does not
    come down, and minus infinity once it has ended.
    """
    order = commander.order
    if order is None or order.plan.course is None:
        return inf
    lands, seconds = order.plan.after.stands, order.seconds(time_ns)
    if seconds >= order.plan.course.end:
        return -inf if lands else inf
    pos, vel = order.plan.course.place(seconds)
    sinks = order.plan.bounded and vel[2] < 0 and float(np.abs(vel[:2]).max()) < _STRAIGHT
    may_land = lands or isinstance(order.setpoint, VELOCITIES)
    return float(pos[2]) if sinks and may_land else inf
