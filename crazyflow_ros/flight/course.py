"""Reference trajectories: piecewise polynomials in time for position and yaw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.flight.profile import AxisState, Profile

AXES = 4
"""Number of axes: x, y, z [m, world frame] and yaw [rad]."""
ORDER = 8
"""Number of coefficients of a polynomial, in ascending powers of time."""

Piece = tuple[float, Sequence[float]]
"""Duration [s] and at most `ORDER` coefficients, in seconds since the piece began."""

_LOOKS = 200  # along a course, for its height
_ROUNDING = 1e-6  # m
_POWERS = np.arange(ORDER)
_SECOND = _POWERS[2:] * (_POWERS[2:] - 1)
_THIRD = _SECOND[1:] * (_POWERS[3:] - 2)
_FACTORS = (np.ones(ORDER, int), _POWERS[1:], _SECOND, _THIRD)  # of the derivatives
# Taylor's theorem: coefficient k of a polynomial that begins later, from coefficients n.
_SHIFT = np.array([[comb(n, k) for n in range(ORDER)] for k in range(ORDER)], float)
_SHIFTED = np.maximum(_POWERS - _POWERS[:, None], 0)


class Reference(NamedTuple):
    """Desired motion at one instant. Each field holds x, y, z [m, world frame] and yaw [rad]."""

    pos: np.ndarray
    """(4,)"""
    vel: np.ndarray
    """(4,) per second."""
    acc: np.ndarray
    """(4,) per second squared."""

    @classmethod
    def at_rest(cls, pos: Sequence[float] | np.ndarray, yaw: float) -> Reference:
        """Return the reference of a drone that hovers at a position."""
        return cls(np.array([*pos, yaw], float), np.zeros(AXES), np.zeros(AXES))

    @property
    def axes(self) -> list[AxisState]:
        """The motion along each axis."""
        return list(map(AxisState, self.pos.tolist(), self.vel.tolist(), self.acc.tolist()))


@dataclass(frozen=True)
class Course:
    """A trajectory over the seconds since its start.

    Each axis has its own pieces; the last is constant.
    """

    times: np.ndarray
    """(4, K) start of each piece [s], increasing from 0; infinite for pieces that an axis lacks."""
    coefficients: np.ndarray
    """(4, K, 8) coefficients of each piece, in seconds since the piece began."""
    end: float
    """Time at which the drone comes to rest [s]."""

    @classmethod
    def of_pieces(cls, pieces: Sequence[Sequence[Piece]], last: Sequence[float]) -> Course:
        """Build a course from the pieces of each axis.

        Args:
            pieces: Pieces of each axis in order of time; an axis may have none.
            last: Final position of each axis.
        """
        n_pieces = 1 + max(map(len, pieces))
        times = np.full((AXES, n_pieces), inf)
        coefficients = np.zeros((AXES, n_pieces, ORDER))
        end = 0.0
        for i, (own, rest) in enumerate(zip(pieces, last)):
            time = 0.0
            for k, (duration, values) in enumerate(own):
                times[i, k], coefficients[i, k, : len(values)] = time, values
                time += duration
            times[i, len(own)], coefficients[i, len(own), 0] = time, rest
            end = max(end, time)
        return cls(times, coefficients, end)

    @classmethod
    def of_profiles(cls, axes: Iterable[AxisState], profiles: Iterable[Profile]) -> Course:
        """Build a course from jerk-limited motion to rest along each axis."""
        pieces, ends = zip(*map(pieces_of, axes, profiles))
        return cls.of_pieces(pieces, [end.pos for end in ends])

    @classmethod
    def of_polynomials(cls, durations: Sequence[float], coefficients: np.ndarray) -> Course:
        """Build a course from pieces that all axes share; it rests after the last one.

        Args:
            durations: (K,) s.
            coefficients: (K, 4, 8).
        """
        last = evaluate(coefficients[-1], np.full(AXES, durations[-1]))[0]
        axes = np.moveaxis(coefficients, 1, 0).tolist()
        return cls.of_pieces([list(zip(durations, axis)) for axis in axes], last.tolist())

    def then(self, other: Course) -> Course:
        """Append another course, which starts where this one ends at rest."""
        times = np.concatenate((self.times, other.times + self.end), axis=1)
        coefficients = np.concatenate((self.coefficients, other.coefficients), axis=1)
        order = np.argsort(times, axis=1, kind="stable")
        return Course(
            np.take_along_axis(times, order, axis=1),
            np.take_along_axis(coefficients, order[..., None], axis=1),
            self.end + other.end,
        )

    def plus(self, other: Course) -> Course:
        """Return the sum of two courses that begin together."""
        times = np.sort(np.concatenate((self.times, other.times), axis=1), axis=1)
        finite = np.where(np.isfinite(times), times, 0.0)
        coefficients = self.since(finite) + other.since(finite)
        return Course(times, coefficients, max(self.end, other.end))

    def since(self, times: np.ndarray) -> np.ndarray:
        """Return the coefficients (4, n, 8) at times (4, n) [s], in seconds since these times."""
        row = np.maximum((self.times[:, None] <= times[..., None]).sum(axis=-1) - 1, 0)
        axes = np.arange(AXES)[:, None]
        since = (times - self.times[axes, row])[..., None, None]
        return (_SHIFT * since**_SHIFTED * self.coefficients[axes, row, None]).sum(axis=-1)

    def delayed(self, delays: Sequence[float]) -> Course:
        """Delay each axis by its own time [s]; until then the axis rests at its start."""
        late = self.times + np.array(delays)[:, None]
        rest = np.zeros((AXES, 1, ORDER))
        rest[:, 0, 0] = self.coefficients[:, 0, 0]
        return Course(
            np.concatenate((np.zeros((AXES, 1)), late), axis=1),
            np.concatenate((rest, self.coefficients), axis=1),
            float(late[np.isfinite(late)].max()),
        )

    def pieces_from(self, time: float, n: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the pieces in force at a time, and those that follow.

        Args:
            time: s.
            n: Number of pieces per axis.

        Returns:
            Coefficients (4, n, 8); start times of the pieces (4, n) [s], infinite for pieces that
            an axis lacks; and the time [s] until which these pieces are sufficient. If no more
            pieces follow, that is the start of the last one, or infinity once it has begun.
        """
        n_pieces = self.times.shape[1]
        rows = np.maximum((self.times <= time).sum(axis=1) - 1, 0)[:, None] + np.arange(n + 1)
        begins = np.where(
            rows < n_pieces, np.take_along_axis(self.times, rows.clip(max=n_pieces - 1), 1), inf
        )
        coefficients = self.coefficients[
            np.arange(AXES)[:, None], rows[:, :n].clip(max=n_pieces - 1)
        ]
        until = float(begins[:, n].min())
        if until == inf:
            later = begins[np.isfinite(begins) & (begins > time)]
            until = float(later.max()) if later.size else inf
        return coefficients, begins[:, :n], until

    def at(self, time: float) -> Reference:
        """Return the reference at a time [s]."""
        row, axes = np.maximum((self.times <= time).sum(axis=1) - 1, 0), np.arange(AXES)
        return Reference(*evaluate(self.coefficients[axes, row], time - self.times[axes, row])[:3])

    def place(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return only position and velocity of `at`, (4,) each."""
        row, axes = np.maximum((self.times <= time).sum(axis=1) - 1, 0), np.arange(AXES)
        pos, vel = evaluate(self.coefficients[axes, row], time - self.times[axes, row], 2)
        return pos, vel

    def rises(self, height: float) -> float:
        """Return the approximate time [s] of first reaching a height [m], or else the top."""
        times = np.linspace(0.0, self.end, _LOOKS)
        z = self.along(times)[0, :, 2]
        return float(times[(z >= min(height, float(z.max())) - _ROUNDING).argmax()])

    def along(self, times: np.ndarray) -> np.ndarray:
        """Return (4, n, 4) position, velocity, acceleration and jerk at times (n,) [s]."""
        found = np.empty((4, len(times), AXES))
        for i, (begins, coefficients) in enumerate(zip(self.times, self.coefficients)):
            rows = np.maximum(np.searchsorted(begins, times, side="right") - 1, 0)
            found[:, :, i] = evaluate(coefficients[rows], times - begins[rows])
        return found


def pieces_of(start: AxisState, profile: Profile) -> tuple[list[Piece], AxisState]:
    """Return the polynomials of a jerk-limited motion, and the motion at its end."""
    pieces: list[Piece] = []
    for phase in profile:
        if phase.duration > 0:
            pos, vel, acc = start
            pieces.append((phase.duration, (pos, vel, acc / 2, phase.jerk / 6)))
            start = start.after(phase)
    return pieces, start


def evaluate(coefficients: np.ndarray, times: np.ndarray, n: int = 4) -> np.ndarray:
    """Evaluate polynomials and their derivatives.

    Args:
        coefficients: (..., 8).
        times: (...).
        n: How many of the results below to compute.

    Returns:
        (n, ...) value, first, second and third derivative.
    """
    powers = times[..., None] ** _POWERS
    return np.stack(
        [
            (coefficients[..., k:] * factors * powers[..., : ORDER - k]).sum(axis=-1)
            for k, factors in enumerate(_FACTORS[:n])
        ]
    )


def quintic(before: np.ndarray, after: np.ndarray, duration: ArrayLike) -> np.ndarray:
    """Return polynomials of degree 5 between two motions.

    Args:
        before: (..., 3, k) value, first and second derivative at time 0.
        after: (..., 3, k) value, first and second derivative at time `duration`.
        duration: (...) s.

    Returns:
        (..., 6, k) coefficients in ascending powers of time.
    """
    scale = np.power.outer(np.asarray(duration, float), np.arange(6))[..., None]
    p0, v0, a0 = np.moveaxis(before * scale[..., :3, :], -2, 0)
    p1, v1, a1 = np.moveaxis(after * scale[..., :3, :], -2, 0)
    jump = p1 - p0
    c3 = 10 * jump - 6 * v0 - 4 * v1 - (3 * a0 - a1) / 2
    c4 = -15 * jump + 8 * v0 + 7 * v1 + (3 * a0 - 2 * a1) / 2
    c5 = 6 * jump - 3 * (v0 + v1) - (a0 - a1) / 2
    return np.stack([p0, v0, a0 / 2, c3, c4, c5], axis=-2) / scale
