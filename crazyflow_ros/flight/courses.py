"""The courses of all drones, side by side, and the commands with which controllers follow them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, nan

import numpy as np

from crazyflow_ros.flight.commander import Order
from crazyflow_ros.flight.course import AXES, ORDER, evaluate

_PIECES = 8  # of a course that are looked up at once
_GRAVITY = 9.81  # m/s^2
_MIN_THRUST = 1.0  # m/s^2, below which the attitude is undefined


class Courses:
    """The next pieces of the drones' courses, in rows.

    Args:
        drag: (3,) see `Rules`.
        gravity: See `Rules`.

    Attributes:
        changes: Simulated time at which to look at a drone's command again [ns], by name; for
            drones whose command changes with time, or will when their setpoint lapses.
        held: Orders of those drones that hold values with a turning heading instead.
    """

    def __init__(self, drag: np.ndarray, gravity: float = _GRAVITY) -> None:
        self.drag, self.gravity = drag, gravity
        self.changes: dict[str, float] = {}
        self.held: dict[str, Order] = {}
        self._orders: dict[str, tuple[Order, int]] = {}  # and rows, of drones with a course
        self._moving: list[str] | None = None
        self._own = np.zeros(0, int)  # rows of the drones above
        self._coefficients = np.zeros((0, AXES, _PIECES, ORDER))
        self._begins = np.zeros((0, AXES, _PIECES))
        self._origins = np.zeros(0, np.int64)  # starts of the courses [ns]
        self._until: list[float] = []  # times until which the pieces hold [ns]
        self._free: list[int] = []

    def look_at(self, names: Iterable[str]) -> None:
        """Note that the orders of drones have to be looked at now, and `put`."""
        self.changes |= dict.fromkeys(names, -inf)

    def drop(self, name: str) -> None:
        """Remove a drone."""
        self.rest(name)
        self._drop_course(name)

    def rest(self, name: str) -> None:
        """Note that the command of a drone does not change any more; it may have a course."""
        self.changes.pop(name, None)
        self.held.pop(name, None)
        self._moving = None

    def put(self, name: str, order: Order, time_ns: int) -> float:
        """Use a drone's order, and the pieces of its course from a time on.

        Returns:
            The time until which they hold [ns]; infinite for the last piece, or without a course.
        """
        self._moving = None
        self.held.pop(name, None)
        if order.plan.held is not None:
            self.held[name] = order
        if order.plan.course is None:
            self._drop_course(name)
            return inf
        if name not in self._orders and not self._free:
            self._grow()
        row = self._orders[name][1] if name in self._orders else self._free.pop()
        begin_ns = order.begin_ns
        found = order.plan.course.pieces_from((time_ns - begin_ns) * 1e-9, _PIECES)
        self._coefficients[row], self._begins[row], until = found
        self._orders[name], self._origins[row] = (order, row), begin_ns
        self._until[row] = begin_ns + until * 1e9
        return self._until[row]

    def commands(
        self, times_ns: Sequence[int], name: str | None = None
    ) -> tuple[list[str], np.ndarray]:
        """Return drones, and their commands (n, m, 16), see `Control.state`, at times (n,).

        Args:
            times_ns: Simulation times.
            name: The only drone; by default all whose course goes on.
        """
        if name is not None:
            names, own = [name], np.array([self._orders[name][1]])
        else:
            if self._moving is None:
                self._moving = [name for name in self.changes if name in self._orders]
                self._own = np.array([self._orders[name][1] for name in self._moving], int)
            names, own = self._moving, self._own
        if not names:
            return [], np.zeros((len(times_ns), 0, 16))
        references = self._at(own, times_ns, 4).reshape(4, -1, AXES)
        found = state_commands(references, self.drag, self.gravity)
        return names, found.reshape(len(times_ns), len(own), -1)

    def references(
        self, names: Iterable[str], orders: Iterable[Order | None], time_ns: int
    ) -> np.ndarray:
        """Return positions and velocities of the courses of M drones at a time.

        Args:
            names: Names of the drones.
            orders: Their orders in force.
            time_ns: Simulation time.

        Returns:
            (2, M, 4) position [m] and yaw [rad], and their derivatives; NaN without a course.
        """
        own = np.array([self._row_at(*each, time_ns) for each in zip(names, orders)], int)
        found = np.full((2, len(own), AXES), nan)
        flown = np.flatnonzero(own >= 0)
        found[:, flown] = self._at(own[flown], [time_ns], 2)[:, 0]
        return found

    def _at(self, own: np.ndarray, times_ns: Sequence[int], n: int) -> np.ndarray:
        """Return the first `n` derivatives (n, k, m, 4) of courses in rows (m,) at times (k,)."""
        times = ((np.array(times_ns)[:, None] - self._origins[own]) * 1e-9)[..., None]  # (k, m, 1)
        piece = (self._begins[own] <= times[..., None]).sum(axis=-1) - 1  # (k, m, 4)
        at = own[:, None], np.arange(AXES), np.maximum(piece, 0)
        return evaluate(self._coefficients[at], times - self._begins[at], n)

    def _row_at(self, name: str, order: Order | None, time_ns: int) -> int:
        """Return the row of a course with the pieces of a time; -1 without one."""
        if order is None or order.plan.course is None:
            return -1
        known, row = self._orders.get(name, (None, -1))
        if known is not order or self._until[row] <= time_ns:
            self.put(name, order, time_ns)
            _, row = self._orders[name]
        return row

    def _drop_course(self, name: str) -> None:
        if name in self._orders:
            _, row = self._orders.pop(name)
            self._free.append(row)

    def _grow(self) -> None:
        """Double the rows."""
        n = len(self._until)
        more = max(n, 1)
        self._coefficients, self._begins, self._origins = (
            np.concatenate((rows, np.zeros((more, *rows.shape[1:]), rows.dtype)))
            for rows in (self._coefficients, self._begins, self._origins)
        )
        self._until += [-inf] * more
        self._free = list(range(n, n + more))


def state_commands(
    references: np.ndarray, drag: np.ndarray, gravity: float = _GRAVITY
) -> np.ndarray:
    """Compute the commands of state controllers, including the acceleration that balances drag.

    The body rates are those of a flat system (D. Mellinger, V. Kumar, ICRA 2011): without them the
    attitude lags by a quarter of a second.

    Args:
        references: (4, m, 4) position, velocity, acceleration, jerk.
        drag: (3,) see `Rules`.
        gravity: See `Rules`.

    Returns:
        (m, 16), see `Control.state`.
    """
    rows = np.ascontiguousarray(np.moveaxis(references, 2, 1))  # (4, 4, m): long rows are faster
    pos, vel, acc, jerk = rows[:, :3]
    yaw, rate = rows[0, 3], rows[1, 3]
    taken = drag[:, None] * rows[1:3, :3]
    commands = np.zeros((16, rows.shape[2]))
    commands[:3], commands[3:6], commands[6:9] = pos, vel, acc + taken[0]
    commands[11], commands[12] = np.sin(yaw / 2), np.cos(yaw / 2)
    commands[13:] = _body_rates(commands[6:9], jerk + taken[1], yaw, rate, gravity)
    return commands.T


def _body_rates(
    acc: np.ndarray, jerk: np.ndarray, yaw: np.ndarray, rate: np.ndarray, gravity: float
) -> np.ndarray:
    """Return (3, m) body rates [rad/s] that turn the thrust with accelerations (3, m) and jerks."""
    up = acc + np.array([[0.0], [0.0], [gravity]])
    thrust = np.maximum(np.sqrt((up * up).sum(axis=0)), _MIN_THRUST)
    up = up / thrust
    c, s = np.cos(yaw), np.sin(yaw)
    left = np.array((-s * up[2], c * up[2], s * up[0] - c * up[1]))  # z x x_c
    left /= np.sqrt((left * left).sum(axis=0)) + 1e-9
    (x, y, z), (u, v, w) = left, up
    ahead = np.array((y * w - z * v, z * u - x * w, x * v - y * u))
    turn = jerk / thrust  # the component along z changes the thrust only
    return np.array((-(turn * left).sum(axis=0), (turn * ahead).sum(axis=0), w * rate))
