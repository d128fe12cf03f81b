"""The courses of all drones, from which commands are computed side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from crazyflow_ros.control import Control
from crazyflow_ros.engine.levels import Level, attitude_row, rows
from crazyflow_ros.flight.commander import Order
from crazyflow_ros.flight.course import AXES, evaluate
from crazyflow_ros.flight.feed_forward import state_commands

NO_COMMANDS = np.zeros((0, 0))
_PIECES = 8  # of a course that are looked up at once


class Courses:
    """The next pieces of the drones' courses, in rows.

    Attributes:
        names: Drones whose command changes with time, or will when their setpoint lapses.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self.names: dict[str, None] = {}  # a set that keeps its order
        self._pieces: dict[str, tuple[np.ndarray, np.ndarray, int]] = {}
        self._attitudes: dict[str, Order] = {}
        self._rows: _Rows | None = None

    def add(self, name: str) -> None:
        """Add a drone; `put` sets its course."""
        self.drop(name)
        self.names[name] = None

    def drop(self, name: str) -> None:
        """Remove a drone."""
        self.names.pop(name, None)
        self._pieces.pop(name, None)
        self._attitudes.pop(name, None)
        self._rows = None

    def put(self, name: str, order: Order, time_ns: int) -> float:
        """Use the pieces of a drone's course from a time on.

        Returns:
            The time until which they hold [ns]; infinite for the last piece, or an attitude.
        """
        course = order.plan.course
        if course is None:
            self._attitudes[name] = order
            return inf
        coefficients, begins, until = course.pieces_from(order.seconds(time_ns), _PIECES)
        self._pieces[name] = coefficients, begins, order.begin_ns
        self._rows = None
        return order.begin_ns + until * 1e9

    def command(self, name: str, time_ns: int, drag: np.ndarray) -> np.ndarray:
        """Command (17,) of a drone at a time, with its level."""
        commands: np.ndarray = _Rows([self._pieces[name]]).commands([time_ns], drag)[0, 0]
        return commands

    def commands(self, times_ns: Sequence[int], drag: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Names of drones, and their commands (n, m, k + 1) with levels at times (n,)."""
        found = []
        if self._pieces:
            if self._rows is None:
                self._rows = _Rows(list(self._pieces.values()))
            found.append(self._rows.commands(times_ns, drag))
        if self._attitudes:
            orders = self._attitudes.values()
            found.append(np.array([[self._attitude(o, time) for o in orders] for time in times_ns]))
        names = [*self._pieces, *self._attitudes]
        return names, np.concatenate(found, axis=1) if found else NO_COMMANDS

    def _attitude(self, order: Order, time_ns: int) -> np.ndarray:
        assert order.plan.attitude is not None
        command = order.plan.attitude.command(order.seconds(time_ns))
        return attitude_row(command, self._control)


class _Rows:
    """Pieces of the courses of some drones, side by side.

    Args:
        pieces: For each drone, coefficients (4, K, 8), start times (4, K) [s] of the pieces, and
            the start of the course [ns].
    """

    def __init__(self, pieces: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None:
        coefficients, begins, origins = zip(*pieces)
        self._coefficients, self._begins = np.array(coefficients), np.array(begins)
        self._origins = np.array(origins, np.int64)
        self._drones, self._axes = np.ogrid[: len(pieces), :AXES]

    def commands(self, times_ns: Sequence[int], drag: np.ndarray) -> np.ndarray:
        """Commands (n, m, 17) of the drones at times (n,), with their level."""
        times = ((np.array(times_ns)[:, None] - self._origins) * 1e-9)[..., None]  # (n, m, 1)
        piece = np.maximum((self._begins <= times[..., None]).sum(axis=-1) - 1, 0)  # (n, m, 4)
        at = self._drones, self._axes, piece
        references = evaluate(self._coefficients[at], times - self._begins[at])
        commands = rows(Level.state, state_commands(references.reshape(4, -1, AXES), drag))
        return commands.reshape(len(times), -1, commands.shape[1])
