"""Detects crashed, disturbed and colliding drones, and empty batteries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import AXES, Reference
from crazyflow_ros.flight.plan import FlightState, Start
from crazyflow_ros.scene.frames import yaw

RATE = 10
"""Checks per simulated second."""
EMPTY = 3.0
"""Voltage under load [V] below which a Crazyflie's battery is empty and its firmware shuts down."""

_ON_ITS_SIDE = 0.5  # cosine of the tilt: 60 degrees
_TOUCHES = 0.05  # minimum force of a contact, as a share of the weight
_IN_THE_AIR = 0.05  # m above the resting height
_SLOW = 0.05  # m/s
_TOUCHED = "touched"  # condition: it touched something since the last check
_STUCK_NS = 1_000_000_000  # for which a drone that should fly may stay on the floor


@dataclass(frozen=True)
class FlightEvent:
    """Something that the pilot of a drone needs to know."""

    time_ns: int
    """Simulation time."""
    drone: str
    kind: str
    """crashed, hit, off course, battery empty, no setpoint or refused."""
    text: str
    """The event in words, and what to do."""


@dataclass(frozen=True)
class Observation:
    """All drones at one instant, one row each: the true state, except for the estimates."""

    time_ns: int
    names: Sequence[str]
    pos: np.ndarray
    """(M, 3) m."""
    quat: np.ndarray
    """(M, 4) xyzw."""
    vel: np.ndarray
    """(M, 3) m/s, world frame."""
    contact: np.ndarray
    """(M, 6) force [N] and torque of all contacts."""
    battery: np.ndarray | None
    """(M, 3) voltage, current and charge drawn; None without batteries."""
    believed: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    """Estimated position, attitude and velocity; None if the drones know the true ones."""

    def start(self, i: int) -> Start:
        """Return the motion from which a drone plans: the estimate, if there is one."""
        at, quat, velocity = self.believed or (self.pos, self.quat, self.vel)
        pos, vel = np.zeros(AXES), np.zeros(AXES)
        pos[:3], vel[:3], pos[3] = at[i], velocity[i], float(yaw(quat[i]))
        return Start(self.time_ns, Reference(pos, vel, np.zeros(AXES)))


class Supervisor:
    """Checks drones at `RATE`, and stops the rotors of those that crashed.

    It stores what it knows about a drone in its commander; a second check at the same instant
    changes nothing.

    Args:
        weight: Weight of a drone [N].
        reset: Name of the service that resets a drone, with a placeholder for the drone's name.
    """

    def __init__(self, weight: float, reset: str = "{}/reset") -> None:
        self._weight, self._reset = weight, reset

    def note_contacts(
        self,
        impact: np.ndarray,
        names: Sequence[str],
        pos: np.ndarray,
        commanders: dict[str, Commander],
    ) -> None:
        """Record drones that touch something in the air.

        Such a contact may end before the next check.

        Args:
            impact: (M,) largest force of contacts along an axis in the last few ticks [N].
            names: Names of the drones.
            pos: (M, 3) their positions after these ticks [m].
            commanders: Commanders by name.
        """
        for i in np.flatnonzero(impact > _TOUCHES * self._weight).tolist():
            commander = commanders.get(names[i])
            if commander is None or commander.order is None:
                continue
            if pos[i, 2] - commander.rules.rest_height > _IN_THE_AIR:
                commander.reported.add(_TOUCHED)

    def check(self, observed: Observation, commanders: dict[str, Commander]) -> list[FlightEvent]:
        """Return the new events. Stop the rotors of crashed drones."""
        events = []
        upright = 1 - 2 * (observed.quat[:, 0] ** 2 + observed.quat[:, 1] ** 2)
        touching = self._touching(observed.contact)
        for i, name in enumerate(observed.names):
            commander = commanders.get(name)
            if commander is None or commander.order is None:
                continue
            rights_itself = commander.rules.recovers or not commander.order.plan.bounded
            height = observed.pos[i, 2] - commander.rules.rest_height
            why = ""
            if upright[i] < 0 and (touching[i] or not rights_itself):
                why = "upside down"
            elif upright[i] < _ON_ITS_SIDE and touching[i] and height < _IN_THE_AIR:
                why = "it fell on its side"
            stands = bool(touching[i]) and height < _IN_THE_AIR
            stands &= bool(np.abs(observed.vel[i]).max() < _SLOW)
            if not why and _is_stuck(commander, observed.time_ns, stands):
                why = "it cannot lift off"
            if why:
                where = _place(observed.pos[i])
                commander.stop(FlightState.crashed, why)
                reset = self._reset.format(name)
                text = f"crashed at {where}: {why}; rotors stopped, call {reset}"
                events.append(FlightEvent(observed.time_ns, name, "crashed", text))
                continue
            if not stands and commander.restart_if_lost(observed.start(i)):
                text = f"off course at {_place(observed.pos[i])}: the course restarts from there"
                events.append(FlightEvent(observed.time_ns, name, "off course", text))
            hits = bool(touching[i] and height > _IN_THE_AIR) or _TOUCHED in commander.reported
            commander.reported.discard(_TOUCHED)
            if _is_new(commander, "hit", hits):
                text = f"hit something at {_place(observed.pos[i])}, and flies on"
                events.append(FlightEvent(observed.time_ns, name, "hit", text))
            if observed.battery is not None:
                volts = float(observed.battery[i, 0])
                if _is_new(commander, "battery empty", volts < EMPTY):
                    text = (
                        f"battery empty ({volts:.2f} V): land before the drone falls, then reset it"
                    )
                    events.append(FlightEvent(observed.time_ns, name, "battery empty", text))
        return events

    def _touching(self, contact: np.ndarray) -> np.ndarray:
        """Return (M,) which drones touch something."""
        touching: np.ndarray = np.abs(contact[:, :3]).max(axis=1) > _TOUCHES * self._weight
        return touching


def _is_new(commander: Commander, kind: str, is_so: bool) -> bool:
    if not is_so:
        commander.reported.discard(kind)
    elif kind not in commander.reported:
        commander.reported.add(kind)
        return True
    return False


def _is_stuck(commander: Commander, time_ns: int, stands: bool) -> bool:
    """Return whether the drone has stood on the floor for a second although it should fly."""
    assert commander.order is not None
    reference = commander.order.reference(time_ns)
    lowest = commander.rules.rest_height + 2 * _IN_THE_AIR
    if not stands or reference is None or reference.pos[2] <= lowest:
        commander.stuck_ns = None
        return False
    if commander.stuck_ns is None:
        commander.stuck_ns = time_ns
    return time_ns - commander.stuck_ns >= _STUCK_NS


def _place(pos: np.ndarray) -> str:
    return f"({', '.join(f'{x:z.2f}' for x in pos.tolist())}) m"
