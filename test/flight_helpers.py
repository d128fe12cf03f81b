"""What tests of flights have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.plan import Plan, StartState

DRONE = "cf2x_L250"


def airborne(pos: Sequence[float], yaw: float = 0.0, time_ns: int = 3_000_000_000) -> StartState:
    """A drone that hovers."""
    return StartState(time_ns, Reference.at_rest(pos, yaw))


def course_of(plan: Plan | None) -> Course:
    """The course of a plan that has one."""
    assert plan is not None and plan.course is not None
    return plan.course


def sampled(course: Course, n: int = 400, beyond: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and position, velocity and acceleration (3, n, 4) along a course."""
    times = np.linspace(0.0, course.end + beyond, n)
    return times, course.along(times)[:3]
