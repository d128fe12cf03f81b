"""The courses of all drones, from which commands are computed side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, nan

import numpy as np

from crazyflow_ros.control import Control
from crazyflow_ros.engine.levels import Level, attitude_row, rows
from crazyflow_ros.flight.commander import Order
from crazyflow_ros.flight.course import AXES, ORDER, evaluate
from crazyflow_ros.flight.feed_forward import state_commands

NO_COMMANDS = np.zeros((0, 0))
_PIECES = 8  # of a course that are looked up at once
_NOW = -inf


class Courses:
    """The next pieces of the drones' courses, in rows.

    Attributes:
        changes: When the command of each drone has to be looked at again, in simulated time [ns];
            of the drones whose command changes with time, or will when their setpoint lapses.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self.changes: dict[str, float] = {}
        self._pieces = _Pieces()
        self._rows: dict[str, tuple[Order, int]] = {}  # of drones with a course, also at its end
        self._attitudes: dict[str, Order] = {}
        self._moving: tuple[list[str], np.ndarray] | None = None

    def add(self, name: str) -> None:
        """Add a drone with a new order, to look at now; `put` replaces what it had."""
        self.changes[name] = _NOW

    def rewind(self) -> None:
        """Look at all orders now, because the clock was rewound."""
        self.changes = dict.fromkeys(self.changes, _NOW)

    def due(self, time_ns: int) -> list[str]:
        """Return the drones whose orders have to be looked at."""
        return [name for name, change in self.changes.items() if change <= time_ns]

    def drop(self, name: str) -> None:
        """Remove a drone."""
        self.rest(name)
        self._free(name)

    def rest(self, name: str) -> None:
        """Note that the command of a drone does not change any more; it may have a course."""
        self.changes.pop(name, None)
        self._attitudes.pop(name, None)
        self._moving = None

    def put(self, name: str, order: Order, time_ns: int) -> float:
        """Use a drone's order, and the pieces of its course from a time on.

        Returns:
            The time until which they hold [ns]; infinite for the last piece, or without a course.
        """
        self._moving = None
        self._attitudes.pop(name, None)
        if order.plan.attitude is not None:
            self._attitudes[name] = order
        if order.plan.course is None:
            self._free(name)
            return inf
        _, row = self._rows.get(name, (None, -1))
        row = self._pieces.free_row() if row < 0 else row
        self._rows[name] = order, row
        return self._pieces.put(row, order, time_ns)

    def command(self, name: str, time_ns: int, drag: np.ndarray) -> np.ndarray:
        """Command (17,) of a drone at a time, with its level."""
        row = np.array([self._rows[name][1]])
        commands: np.ndarray = self._commands(row, [time_ns], drag)[0, 0]
        return commands

    def commands(self, times_ns: Sequence[int], drag: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Names of drones, and their commands (n, m, k + 1) with levels at times (n,)."""
        found = []
        if self._moving is None:
            names = [name for name in self.changes if name in self._rows]
            self._moving = names, np.array([self._rows[name][1] for name in names], int)
        names, own = self._moving
        if names:
            found.append(self._commands(own, times_ns, drag))
        if self._attitudes:
            orders = self._attitudes.values()
            found.append(np.array([[self._attitude(o, time) for o in orders] for time in times_ns]))
        names = [*names, *self._attitudes]
        return names, np.concatenate(found, axis=1) if found else NO_COMMANDS

    def references(
        self, names: Iterable[str], orders: Iterable[Order | None], time_ns: int
    ) -> np.ndarray:
        """Return where the courses of M drones are at a time, and how fast they go there.

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
        found[:, flown] = self._pieces.at(own[flown], [time_ns], 2)[:, 0]
        return found

    def _free(self, name: str) -> None:
        if name in self._rows:
            _, row = self._rows.pop(name)
            self._pieces.free(row)

    def _row_at(self, name: str, order: Order | None, time_ns: int) -> int:
        """Return the row of a course with the pieces of a time; -1 without one."""
        if order is None or order.plan.course is None:
            return -1
        known, row = self._rows.get(name, (None, -1))
        if known is not order or self._pieces.until[row] <= time_ns:
            self.put(name, order, time_ns)
            _, row = self._rows[name]
        return row

    def _commands(self, own: np.ndarray, times_ns: Sequence[int], drag: np.ndarray) -> np.ndarray:
        """Commands (n, m, 17) of courses in rows (m,) at times (n,), with their level."""
        references = self._pieces.at(own, times_ns, 4)
        commands = rows(Level.state, state_commands(references.reshape(4, -1, AXES), drag))
        return commands.reshape(len(times_ns), -1, commands.shape[1])

    def _attitude(self, order: Order, time_ns: int) -> np.ndarray:
        assert order.plan.attitude is not None
        command = order.plan.attitude.command(order.seconds(time_ns))
        return attitude_row(command, self._control)


class _Pieces:
    """Pieces of courses side by side, those of a course in a row.

    Attributes:
        until: Times until which the pieces of each row hold [ns].
    """

    def __init__(self) -> None:
        self._coefficients = np.zeros((0, AXES, _PIECES, ORDER))
        self._begins = np.zeros((0, AXES, _PIECES))
        self._origins = np.zeros(0, np.int64)  # starts of the courses [ns]
        self.until: list[float] = []
        self._free: list[int] = []

    def free_row(self) -> int:
        """Return a free row, which is no longer free."""
        if not self._free:
            n = len(self.until)
            more = max(n, 1)
            self._coefficients = _longer(self._coefficients, more)
            self._begins, self._origins = _longer(self._begins, more), _longer(self._origins, more)
            self.until += [_NOW] * more
            self._free = list(range(n, n + more))
        return self._free.pop()

    def free(self, row: int) -> None:
        """Note that a row is free."""
        self._free.append(row)

    def put(self, row: int, order: Order, time_ns: int) -> float:
        """Store the pieces of a course from a time on; return the time until which they hold."""
        assert order.plan.course is not None
        found = order.plan.course.pieces_from(order.seconds(time_ns), _PIECES)
        self._coefficients[row], self._begins[row], until = found
        self._origins[row] = order.begin_ns
        self.until[row] = order.begin_ns + until * 1e9
        return self.until[row]

    def at(self, own: np.ndarray, times_ns: Sequence[int], n: int) -> np.ndarray:
        """Return the first `n` derivatives (n, k, m, 4) of courses in rows (m,) at times (k,)."""
        times = ((np.array(times_ns)[:, None] - self._origins[own]) * 1e-9)[..., None]  # (k, m, 1)
        piece = (self._begins[own] <= times[..., None]).sum(axis=-1) - 1  # (k, m, 4)
        at = own[:, None], np.arange(AXES), np.maximum(piece, 0)
        return evaluate(self._coefficients[at], times - self._begins[at], n)


def _longer(rows: np.ndarray, more: int) -> np.ndarray:
    return np.concatenate((rows, np.zeros((more, *rows.shape[1:]), rows.dtype)))
