"""A flight that a script has started, until the drone arrives or it is known why it will not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from nav_msgs.msg import Path

from crazyflow_ros.client.arrival import Arrival
from crazyflow_ros.client.connection import Connection
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.ros.messages import nanoseconds, xyz

TIMEOUT = 300.0
"""s of simulated time after the end of its plan, after which a flight has failed."""

_LOOK = 0.1  # s of simulated time between two checks of a flying drone
_LOW = 0.1  # m, height below which a drone at rest stands on the floor
_HERE = 0.05  # m between the ends of two plans that lead to the same place
_EARLY = 0.3  # s of simulated time before its end, by which a plan that is given up ends
_PLANNED = 5.0  # s of wall time in which the plan arrives
_CLEAR = 0.5  # m, below which a flight may end higher than told, to be clear of the floor
_OUT = ("crashed", "locked", "lost", "landed", "idle")  # states in which a drone flies nowhere


class FlyingDrone(Protocol):
    """A drone that flies, see `DroneClient`."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def position(self) -> np.ndarray: ...  # noqa: D102
    @property
    def velocity(self) -> np.ndarray: ...  # noqa: D102
    @property
    def state(self) -> str: ...  # noqa: D102


class OngoingFlight:
    """A flight to a position.

    Args:
        drone: The drone.
        simulation: The simulator.
        goal: Position [m], shape (3,); NaN where it does not matter. If its z is NaN, the drone
            has arrived when it has landed.
        duration: Minimum duration [s].

    Attributes:
        plans: Messages on the drone's topic `plan` since the command.
    """

    def __init__(
        self,
        drone: FlyingDrone,
        simulation: Connection,
        goal: tuple[float, float, float],
        duration: float,
    ) -> None:
        self._drone, self._simulation = drone, simulation
        self._goal, self._duration = np.array(goal), duration
        self._begin, self._planned_by = simulation.time, time.monotonic() + _PLANNED
        self._arrival = Arrival(self._goal, self._begin, duration)
        self.plans: list[Path] = []
        self._place: np.ndarray | None = None  # where its plan leads
        self._end = self._arrival.end
        self._is_given_up = self._is_replaced = self._was_planned = False

    @property
    def seconds(self) -> tuple[float, float]:
        """How long it has flown, and how long its plan takes [s]."""
        return self._simulation.time - self._begin, self._end - self._begin

    @property
    def progress(self) -> str:
        """How far it has come, in a few words."""
        return f"{self._drone.name} {self._away or 'lands'}"

    def wait(
        self,
        timeout: float | None = None,
        watch: Callable[[OngoingFlight], object] = lambda _: None,
    ) -> None:
        """Wait until the drone has arrived, see `DroneClient.go_to`.

        Args:
            timeout: Simulated time after the duration in which it has to arrive [s]; by default as
                long as its plan takes, and `TIMEOUT` more.
            watch: Called again and again meanwhile.

        Raises:
            SimulationError: It did not; the message has its place, why it did not arrive, and the
                simulator's warnings.
        """
        simulation = self._simulation
        while not self._has_arrived():
            while simulation.stepping and not self._is_planned():  # no step depends on it
                simulation.spin(_LOOK)
            took, planned = self.seconds
            allowed = planned + TIMEOUT if timeout is None else self._duration + timeout
            if (why := self._failure()) or took > allowed:
                text = f"{self._drone.name} has not arrived within {took:.1f} s, it {why or 'is'} "
                text += f"{self._away}, " if self._away else ""
                text += f"at {np.round(self._drone.position, 2).tolist()} m"
                warnings = simulation.warnings()
                raise SimulationError(f"{text}; {warnings}" if warnings else text)
            watch(self)
            simulation.sleep(_LOOK)

    @property
    def _is_landing(self) -> bool:
        return bool(np.isnan(self._goal[2]))

    @property
    def _away(self) -> str:
        return "" if self._is_landing else f"{self._arrival.distance:.2f} m from its goal"

    def _is_planned(self) -> bool:
        """Read the plans; return whether the plan of this flight is known, or will not come."""
        plans, self.plans = self.plans, []
        for plan in plans:
            self._note(plan, xyz(plan.poses[-1].pose.position) if plan.poses else None)
        return self._place is not None or time.monotonic() > self._planned_by

    def _note(self, plan: Path, place: np.ndarray | None) -> None:
        """Look at a plan that leads to a place or nowhere, perhaps one from before the command."""
        if self._place is None:
            if place is not None and self._is_ours(_seconds(plan), place):
                self._place, self._is_replaced = place, False
                self._arrival.end = self._end = max(self._end, _seconds(plan.poses[-1]))
            elif place is not None and _seconds(plan) > self._begin:
                self._is_replaced = True  # unless the next plan is that of this flight
        elif place is None:
            self._is_given_up = _seconds(plan) < self._end - _EARLY
        elif np.abs(place - self._place)[2 if self._is_landing else slice(3)].max() > _HERE:
            self._is_replaced = True
        else:  # it was off its course, and restarts where it is, faster
            self._arrival.end, self._end = self._begin + self._duration, _seconds(plan.poses[-1])

    def _is_ours(self, seconds: float, place: np.ndarray) -> bool:
        """Return whether a plan of a time [s] that leads to a place may be that of this flight."""
        if not self._begin - _EARLY < seconds < self._simulation.time + _PLANNED:
            return False
        if self._is_landing and place[2] > self._drone.position[2]:  # as after a checkpoint
            return False
        away = np.nan_to_num(place - self._goal)
        if self._is_landing or place[2] < _CLEAR:
            away[2] = min(away[2], 0.0)
        return bool(np.abs(away).max() < _HERE)

    def _failure(self) -> str:
        """Return why the drone will not arrive, from the verb on; empty if it may arrive."""
        name = self._drone.name
        fell = any(self._simulation.has_warned(f"{name}: {how}") for how in ("crashed", "lost"))
        is_stuck = self._arrival.is_stuck and self._was_planned
        if fell or self._is_given_up or is_stuck:
            if (state := self._drone.state) in _OUT:
                return f"is {state},"
            return "obeys another command," if self._is_replaced or not is_stuck else "rests"
        # Nobody saw a plan that another command replaced at once.
        is_known = self._place is not None or time.monotonic() > self._planned_by
        return "obeys another command," if self._is_replaced and is_known else ""

    def _has_arrived(self) -> bool:
        self._was_planned = self._is_planned()  # a plan that comes later moves the end
        drone, now = self._drone, self._simulation.time
        position, speed = drone.position, float(np.linalg.norm(drone.velocity))
        arrived = self._arrival.look(now, position, speed)
        if not self._is_landing:
            return arrived
        if self._is_given_up or (arrived and self._place is not None and now >= self._end):
            return drone.state == "landed"
        return arrived and self._place is None and bool(position[2] < _LOW)


def _seconds(message: Path) -> float:
    return nanoseconds(message.header.stamp) * 1e-9
