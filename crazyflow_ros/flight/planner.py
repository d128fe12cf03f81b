"""The polynomials of the Crazyflie's high-level commander.

Segments of degree 7 with given position, velocity and acceleration at both ends, where the jerk is
zero; and trajectories of such pieces that users upload. Written from the mathematics, with the
semantics of the firmware's planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros import limits
from crazyflow_ros.flight.course import AXES, ORDER, Course, Reference, evaluate
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.governor import shortest_turn

MAX_PIECES = 31
"""Maximum number of pieces of all trajectories of a drone: 4096 bytes of 132 each, as in the
firmware."""
MAX_TRAJECTORIES = 31

_COEFFICIENT = limits.Limit(1e6, "")
_TIMESCALE = limits.Limit(100.0, "")
_MIN_TIMESCALE = 0.01
_SAMPLES = 65  # of a segment, to find its maximum speed
_ROUNDS = 8  # of lengthening a segment; from rest to rest one is enough
_LONGER = 1.001


def _segment_matrix() -> np.ndarray:
    """Return (8, 8) from values and three derivatives at times 0 and 1 to coefficients."""
    rows = np.zeros((8, ORDER))
    for derivative in range(4):
        factors = np.array([np.prod(np.arange(k, k - derivative, -1)) for k in range(ORDER)])
        rows[derivative, derivative] = factors[derivative]
        rows[4 + derivative] = np.where(np.arange(ORDER) >= derivative, factors, 0)
    return np.linalg.inv(rows)


_SEGMENT = np.round(_segment_matrix(), 9)  # multiples of 1/6


def segment(start: Reference, end: Reference, duration: float) -> np.ndarray:
    """Return the (4, 8) coefficients of a segment between two motions with a duration [s]."""
    zero = np.zeros(AXES)
    values = [
        *(start.pos, start.vel * duration, start.acc * duration**2, zero),
        *(end.pos, end.vel * duration, end.acc * duration**2, zero),
    ]
    return (_SEGMENT @ np.array(values)).T / duration ** np.arange(ORDER)


def to_rest_at(
    start: Reference, pos: ArrayLike, yaw: float, duration: float, envelope: Envelope
) -> Course:
    """Come to rest at a position after a time, or later if the envelope requires it.

    Args:
        start: Present motion.
        pos: (3,) m, world frame.
        yaw: rad; the drone turns the short way.
        duration: s; 0 is as fast as the envelope allows.
        envelope: Bounds.
    """
    end = Reference.at_rest(np.asarray(pos, float), shortest_turn(float(start.pos[3]), yaw))
    if all(np.array_equal(a, b) for a, b in zip(start, end)):
        return Course.of_pieces([[(duration, (x,))] for x in end.pos], end.pos.tolist())
    duration = max(duration, 0.05)
    for _ in range(_ROUNDS):
        ratio = _excess(segment(start, end, duration)[None], [duration], envelope)
        if ratio <= 1:
            break
        duration *= ratio * _LONGER
    return Course.of_polynomials([duration], segment(start, end, duration)[None])


def _excess(pieces: np.ndarray, durations: Sequence[float], envelope: Envelope) -> float:
    """Return the factor by which to stretch polynomials in time to stay within an envelope."""
    ratio = 0.0
    for piece, duration in zip(pieces, durations):
        times = np.linspace(0.0, duration, _SAMPLES)[:, None]
        _, vel, acc, _ = evaluate(piece, times)
        ratio = max(
            ratio,
            float(np.hypot(vel[:, 0], vel[:, 1]).max()) / envelope.speed,
            float(np.abs(vel[:, 2]).max()) / envelope.climb,
            float(np.abs(vel[:, 3]).max()) / envelope.yaw_rate,
            float(np.hypot(acc[:, 0], acc[:, 1]).max() / envelope.acceleration) ** 0.5,
            float(np.abs(acc[:, 2]).max() / envelope.lift) ** 0.5,
            float(np.abs(acc[:, 3]).max() / envelope.yaw_acceleration) ** 0.5,
        )
    return ratio


@dataclass(frozen=True)
class PolynomialTrajectory:
    """An uploaded trajectory: pieces of degree 7, in a frame of its own."""

    durations: ArrayLike
    """(K,) s, positive."""
    coefficients: ArrayLike
    """(K, 4, 8) of x, y, z [m], yaw [rad]; rising powers of the seconds since each piece began."""

    def __post_init__(self) -> None:
        n = np.size(self.durations)
        if not 0 < n <= MAX_PIECES:
            raise ValueError(f"a trajectory has 1 to {MAX_PIECES} pieces, got {n}")
        durations = limits.vector("durations", self.durations, (n,), limits.Limit(1e3, "s"))
        if (durations < 1e-3).any():
            raise ValueError(f"durations must be at least 0.001 s, got {limits.shown(durations)}")
        shape = (n, AXES, ORDER)
        values = limits.vector("coefficients", self.coefficients, shape, _COEFFICIENT)
        object.__setattr__(self, "durations", durations)
        object.__setattr__(self, "coefficients", values)

    def course(
        self, start: Reference, *, timescale: float, reversed: bool, relative: bool
    ) -> Course:
        """Return the course of the trajectory.

        Args:
            start: Reference of the drone when the trajectory begins.
            timescale: 2 takes twice as long.
            reversed: Fly from the end to the start.
            relative: Shift the trajectory to start at the drone's reference position; otherwise the
                drone must already be at its start.

        Raises:
            ValueError: The time scale is out of range, or the trajectory leaves the world.
        """
        scale = checked_timescale(timescale)
        durations = np.asarray(self.durations) * scale
        pieces = np.asarray(self.coefficients) / scale ** np.arange(ORDER)
        if reversed:
            pieces = np.array([_reflected(p, d) for p, d in zip(pieces, durations)])[::-1]
            durations = durations[::-1]
        if relative:
            pieces = pieces.copy()
            pieces[:, :3, 0] += start.pos[:3] - pieces[0, :3, 0]
        course = Course.of_polynomials(durations.tolist(), pieces)
        for piece, duration in zip(pieces, durations.tolist()):
            there, vel, acc, _ = evaluate(piece, np.linspace(0.0, duration, _SAMPLES)[:, None])
            limits.vector("positions", there[:, :3], (_SAMPLES, 3), limits.POSITION)
            limits.vector("velocities", vel[:, :3], (_SAMPLES, 3), limits.VELOCITY)
            limits.vector("accelerations", acc[:, :3], (_SAMPLES, 3), limits.ACCELERATION)
        return course


def checked_timescale(timescale: float) -> float:
    """Return the time scale; raise ValueError if it is out of range."""
    scale = limits.number("timescale", timescale, _TIMESCALE)
    if scale < _MIN_TIMESCALE:
        raise ValueError(f"timescale must be at least {_MIN_TIMESCALE:g}, got {scale:g}")
    return scale


def _reflected(piece: np.ndarray, duration: float) -> np.ndarray:
    """Return the (4, 8) same polynomials, reversed in time."""
    from_end = np.zeros((ORDER, ORDER))  # powers of (duration - t)
    for power in range(ORDER):
        row = np.array([1.0])
        for _ in range(power):
            row = np.convolve(row, (duration, -1.0))
        from_end[power, : len(row)] = row
    return piece @ from_end
