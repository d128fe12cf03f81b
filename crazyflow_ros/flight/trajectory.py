"""Trajectories through points at given times, as in trajectory_msgs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.flight.course import Course, Reference, quintic
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.governor import onto, shortest_turn, to_rest
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, StartState
from crazyflow_ros.flight.planner import lengthened, swings_out
from crazyflow_ros.flight.setpoint import CLEARANCE, TOUCHDOWN, StateSetpoint

_MIN_INTERVAL_NS = 100_000  # ns between two points of a trajectory
_FASTER = 1.5  # times the first point's speed, on the way to it


@dataclass(frozen=True)
class Trajectory(StateSetpoint):
    """Pass points at given times, velocities and accelerations; stay or land at the last one.

    Between two points, position and yaw are polynomials of degree 5.
    """

    title = "a trajectory"

    times_ns: ArrayLike
    """(K,) ns since the trajectory's start, increasing. Before the first one, the drone flies
    there."""
    pos: ArrayLike
    """(K, 3) m, world frame. The drone lands at the end if the last one is on the floor."""
    yaw: ArrayLike
    """(K,) rad."""
    vel: ArrayLike
    """(K, 3) m/s, world frame."""
    acc: ArrayLike
    """(K, 3) m/s^2, world frame."""
    start_ns: int | None = None
    """Simulation time of the trajectory's start; None for the time at which it takes effect."""
    _points: np.ndarray = field(init=False, repr=False)
    _pieces: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times = np.array(self.times_ns, dtype=np.int64)
        n = times.size
        if times.ndim != 1 or n == 0 or times[0] < 0 or (np.diff(times) < _MIN_INTERVAL_NS).any():
            expected = f"from 0 or later, by at least {_MIN_INTERVAL_NS * 1e-6:g} ms"
            raise ValueError(f"times must rise {expected}, got {limits.shown(times)} ns")
        limits.number("the last time", times[-1] * 1e-9, limits.DURATION)
        pos = limits.vector("positions", self.pos, (n, 3), limits.POSITION)
        yaw = limits.vector("yaws", self.yaw, (n,), limits.ANGLE)
        vel = limits.vector("velocities", self.vel, (n, 3), limits.VELOCITY)
        acc = limits.vector("accelerations", self.acc, (n, 3), limits.ACCELERATION)
        mean = np.diff(pos, axis=0) / np.diff(times)[:, None] * 1e9
        limits.vector("velocity between two points", mean, (n - 1, 3), limits.VELOCITY)
        yaw = np.unwrap(yaw)
        rate = np.gradient(yaw, times * 1e-9) if n > 1 else np.zeros(1)
        points = np.stack(
            [np.column_stack(p) for p in ((pos, yaw), (vel, rate), (acc, np.zeros(n)))], axis=1
        )
        object.__setattr__(self, "times_ns", times)
        object.__setattr__(self, "_points", points)  # (K, derivative 0..2, x y z yaw)
        pieces = quintic(points[:-1], points[1:], np.diff(times) * 1e-9)
        object.__setattr__(self, "_pieces", pieces)  # (K - 1, power 0..5, x y z yaw)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan the pieces between the points, and one from the present reference to the first.

        If the drone cannot reach the first point in time, the trajectory begins later. One that has
        begun already, or begins elsewhere at once, is joined by a motion within the envelope.
        """
        times = np.asarray(self.times_ns)
        begin_ns = start.time_ns if self.start_ns is None else self.start_ns
        joins = 0 if self.start_ns is None else min(0, start.time_ns - self.start_ns)
        points, pieces = self._points, self._pieces
        way = (int(times[0]) - joins) * 1e-9
        durations, note = np.diff(times) * 1e-9, ""
        if way > 0:
            # As fast as the controller can follow, or as the trajectory begins.
            fastest = max(start.fastest, _FASTER * float(np.linalg.norm(points[0, 1, :3])))
            join = _join(start.reference, points[0], way, rules.utmost.slower(fastest), rules)
            pieces = np.concatenate((join.coefficients[:, 0, :6].T[None], pieces))
            durations = np.concatenate(([join.end], durations))
            if join.end > way:
                note = (
                    f"begins the trajectory {join.end - way:.2f} s late: "
                    "it cannot be at its start in time"
                )
        last = points[-1, 0].tolist()
        axes = [
            [(d, piece) for d, piece in zip(durations.tolist(), pieces[:, :, i].tolist())]
            for i in range(4)
        ]
        begin_ns += joins
        now = (start.time_ns - begin_ns) * 1e-9
        course = onto(start.reference, Course.of_pieces(axes, last), rules.envelope, now)
        rises, lands = start.state.stands, last[2] < rules.rest_height + TOUCHDOWN
        return Plan(
            course,
            during=FlightState.taking_off if rises else FlightState.flying,
            after=FlightState.landed if lands else FlightState.flying,
            aloft=course.rises(rules.rest_height + CLEARANCE) if rises else 0.0,
            begin_ns=begin_ns,
            bounded=False,
            note=note,
        )


def _join(
    start: Reference, point: np.ndarray, way: float, bounds: Envelope, rules: Rules
) -> Course:
    """Return the piece to a trajectory's first point, in a time [s] or as soon as bounds allow.

    Between the motions at its ends a long piece swings out, below the floor for example. Then it
    begins where the drone comes to rest, and the drone brakes on its way there.
    """
    course = _lengthened_from(start, point, way, bounds)
    if not (start.vel.any() or start.acc.any()):
        return course
    end, there = Reference(*point), _rest(start, rules)
    run_up = _rest(end._replace(vel=-end.vel), rules)
    places = np.stack([motion.pos[:3] for motion in (start, end, there, run_up)], axis=1)
    if not swings_out(course, places):
        return course
    return _lengthened_from(there, point, way, rules.envelope.slower(bounds.speed))


def _rest(motion: Reference, rules: Rules) -> Reference:
    """Return where a drone comes to rest."""
    course = to_rest(motion, rules.envelope)
    return course.at(course.end)


def _lengthened_from(
    start: Reference, point: np.ndarray, duration: float, bounds: Envelope
) -> Course:
    before = np.array(start)
    before[0, 3] = shortest_turn(float(point[0, 3]), float(before[0, 3]))

    def piece(duration: float) -> np.ndarray:
        return np.pad(quintic(before, point, duration).T, ((0, 0), (0, 2)))

    return lengthened(piece, duration, bounds)
