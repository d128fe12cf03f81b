"""Uploaded trajectories of polynomials, with the semantics of the Crazyflie's firmware."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, cos, radians, sin

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.flight.course import AXES, ORDER, Course, Reference
from crazyflow_ros.flight.planner import check_world

MAX_PIECES = 31
"""Maximum number of pieces of all trajectories of a drone: 4096 bytes of 132 each, as in the
firmware."""
MAX_TRAJECTORIES = 31

_MAX_COMPRESSED = 1361  # pieces in 4096 bytes: 8 of the start, 3 of each piece, 3 of the end
_COEFFICIENT = limits.Limit(1e30, "")  # pieces of some milliseconds have large ones
_TIMESCALE = limits.Limit(100.0, "")
_MIN_TIMESCALE = 0.01
_DEGREES = (0, 1, 3, 7)  # of the Bezier curves, by their number in a compressed piece
_UNITS = np.array([1e-3, 1e-3, 1e-3, radians(0.1)])  # m and rad, of compressed control points
# The coefficients of (1 - t)^k in row k.
_FROM_END = np.array([[(-1) ** j * comb(k, j) for j in range(ORDER)] for k in range(ORDER)])


@dataclass(frozen=True)
class PolynomialTrajectory:
    """An uploaded trajectory: pieces of degree 7, in its own frame."""

    durations: ArrayLike
    """(K,) s, positive."""
    coefficients: ArrayLike
    """(K, 4, 8) of x, y, z [m], yaw [rad]; ascending powers of the seconds since each piece
    began."""

    def __post_init__(self) -> None:
        n = np.size(self.durations)
        if not 0 < n <= _MAX_COMPRESSED:
            raise ValueError(f"a trajectory has 1 to {_MAX_COMPRESSED} pieces, got {n}")
        durations = limits.vector("durations", self.durations, (n,), limits.Limit(1e3, "s"))
        if (durations < 1e-3).any():
            raise ValueError(f"durations must be at least 0.001 s, got {limits.shown(durations)}")
        shape = (n, AXES, ORDER)
        values = limits.vector("coefficients", self.coefficients, shape, _COEFFICIENT)
        object.__setattr__(self, "durations", durations)
        object.__setattr__(self, "coefficients", values)

    @classmethod
    def of_compressed(cls, data: bytes, offset: int = 0) -> PolynomialTrajectory:
        """Decode a compressed trajectory, which the firmware calls `poly4d_compressed`.

        It begins with x, y, z [mm] and yaw [0.1 degrees] of its start, of 16 bits each, little
        endian. A piece is a byte with the kind of each axis (2 bits each, x lowest: constant or a
        Bezier curve of degree 1, 3 or 7), its duration [ms, 16 bits], and the control points of
        each axis in turn, without the first one, which is the end of the previous piece. A piece
        with a duration of 0 is the end.

        Args:
            data: Bytes, for example of a trajectory memory.
            offset: Byte at which the trajectory begins.

        Raises:
            ValueError: The data end before the trajectory does, or it cannot be flown.
        """

        def read(form: str) -> tuple[int, ...]:
            nonlocal offset
            size = struct.calcsize(form)
            if not 0 <= offset <= len(data) - size:
                expected = f"{size} bytes at {offset}"
                raise ValueError(f"compressed trajectory: expected {expected}, got {len(data)}")
            values = struct.unpack_from(form, data, offset)
            offset += size
            return values

        at = list(read("<4h"))
        durations: list[float] = []
        coefficients: list[np.ndarray] = []
        while True:
            kinds, milliseconds = read("<BH")
            if not milliseconds:
                break
            durations.append(milliseconds * 1e-3)
            piece = np.zeros((AXES, ORDER))
            for axis in range(AXES):
                points = (at[axis], *read(f"<{_DEGREES[kinds >> 2 * axis & 3]}h"))
                piece[axis, : len(points)] = _bezier(points, durations[-1]) * _UNITS[axis]
                at[axis] = points[-1]
            coefficients.append(piece)
        return cls(durations, np.array(coefficients))

    def course(
        self,
        start: Reference,
        *,
        timescale: float,
        reversed: bool,
        relative: bool,
        relative_yaw: bool,
    ) -> Course:
        """Return the course of the trajectory.

        Args:
            start: Reference of the drone when the trajectory begins.
            timescale: 2 takes twice as long.
            reversed: Fly from the end to the start.
            relative: Shift the trajectory to start at the drone's reference position; otherwise the
                drone must already be at its start.
            relative_yaw: Turn a relative trajectory to start at the drone's heading. As in the
                firmware, it is turned about its origin, so it should start there, and a reversed
                trajectory is not turned.

        Raises:
            ValueError: The time scale is out of range, or the trajectory leaves the world.
        """
        scale = checked_timescale(timescale)
        durations = np.asarray(self.durations) * scale
        pieces = np.asarray(self.coefficients) / scale ** np.arange(ORDER)
        if reversed:
            powers = durations[:, None, None] ** np.arange(ORDER)
            pieces = (pieces * powers @ _FROM_END / powers)[::-1]
            durations = durations[::-1]
        if relative:
            x, y, z, yaw = pieces[0, :, 0].tolist()
            turn = float(start.pos[3]) - yaw if relative_yaw and not reversed else 0.0
            c, s = cos(turn), sin(turn)
            pieces = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) @ pieces
            pieces[:, :, 0] += (*(start.pos[:3] - (x, y, z)), turn)
        check_world(durations, pieces)
        return Course.of_polynomials(durations.tolist(), pieces)


def checked_timescale(timescale: float) -> float:
    """Return the time scale; raise ValueError if it is out of range."""
    scale = limits.number("timescale", timescale, _TIMESCALE)
    if scale < _MIN_TIMESCALE:
        raise ValueError(f"timescale must be at least {_MIN_TIMESCALE:g}, got {scale:g}")
    return scale


def _bezier(points: Sequence[int], duration: float) -> np.ndarray:
    """Return the coefficients, in ascending powers of time, of a Bezier curve."""
    powers = range(len(points))
    return np.array(
        [comb(powers[-1], k) * np.diff(points, k)[0] / duration**k for k in powers], float
    )
