"""Detects crashed, disturbed and colliding drones, and empty batteries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import AXES, Reference
from crazyflow_ros.flight.plan import FlightState, Start
from crazyflow_ros.flight.tumbling import SLOW, TOUCHES, TUMBLED, uprightness
from crazyflow_ros.scene.frames import yaw

RATE = 10
"""Checks per simulated second."""
EMPTY = 3.0
"""Voltage under load [V] below which a Crazyflie's battery is empty and its firmware shuts down."""

_IN_THE_AIR = 0.05  # m above the resting height
_TOUCHED = "touched "  # prefix of a condition: it touched this since the last check
_HIT = "hit"
_CAUSES_NS = 3_000_000_000  # from a hit to a crash that it explains: a fall from a great height
_STUCK_NS = 1_000_000_000  # for which a drone that should fly may stay on the floor


Neighbour = Callable[[int], str]
"""Takes the row of a drone that touches something, and returns the name of what it touches."""


def _unknown(_: int) -> str:
    return "something"


@dataclass(frozen=True)
class FlightEvent:
    """Something that the pilot of a drone needs to know."""

    time_ns: int
    """Simulation time."""
    drone: str
    kind: str
    """crashed, hit, off course, battery empty or no setpoint."""
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
        upright = bool(uprightness(self.quat[i]) >= TUMBLED)
        return Start(self.time_ns, Reference(pos, vel, np.zeros(AXES)), upright=upright)


class Supervisor:
    """Checks drones at `RATE`, and stops the rotors of those that crashed.

    It stores what it knows about a drone in its commander; a second check at the same instant
    changes nothing.

    Args:
        weight: Weight of a drone [N].
    """

    def __init__(self, weight: float) -> None:
        self._weight = weight

    def note_contacts(
        self,
        impact: np.ndarray,
        names: Sequence[str],
        pos: np.ndarray,
        commanders: dict[str, Commander],
        neighbour: Neighbour = _unknown,
    ) -> None:
        """Record drones that touch something in the air.

        Such a contact may end before the next check.

        Args:
            impact: (M,) largest force of contacts along an axis in the last few ticks [N].
            names: Names of the drones.
            pos: (M, 3) their positions after these ticks [m].
            commanders: Commanders by name.
            neighbour: Names what a drone touches; called for those that touched nothing before.
        """
        for i in np.flatnonzero(impact > TOUCHES * self._weight).tolist():
            commander = commanders.get(names[i])
            if commander is None or commander.order is None:
                continue
            in_the_air = pos[i, 2] - commander.rules.rest_height > _IN_THE_AIR
            if in_the_air and not _touched(commander):
                is_told = _HIT in commander.reported
                commander.reported.add(_TOUCHED + ("" if is_told else neighbour(i)))

    def check(
        self,
        observed: Observation,
        commanders: dict[str, Commander],
        neighbour: Neighbour = _unknown,
    ) -> list[FlightEvent]:
        """Return the new events. Stop the rotors of crashed drones.

        Args:
            observed: The drones now.
            commanders: Commanders by name.
            neighbour: See `note_contacts`.
        """
        events = []
        upright = uprightness(observed.quat)
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
            elif upright[i] < TUMBLED and touching[i] and height < _IN_THE_AIR:
                why = "it fell on its side"
            stands = bool(touching[i]) and height < _IN_THE_AIR
            stands &= bool(np.abs(observed.vel[i]).max() < SLOW)
            if not why and _is_stuck(commander, observed.time_ns, stands):
                why = "it cannot lift off"
            if why:
                where = _place(observed.pos[i])
                why += _after_a_hit(commander, observed.time_ns)
                commander.stop(FlightState.crashed, why)
                call = commander.rules.advice.call.format(name)
                text = f"crashed at {where}: {why}; rotors stopped, {call}"
                events.append(FlightEvent(observed.time_ns, name, "crashed", text))
                continue
            if not stands and commander.restart_if_lost(observed.start(i)):
                text = f"off course at {_place(observed.pos[i])}: the course restarts from there"
                events.append(FlightEvent(observed.time_ns, name, "off course", text))
            touched = _touched(commander)
            hits = bool(touching[i] and height > _IN_THE_AIR) or bool(touched)
            commander.reported.discard(touched)
            if _is_new(commander, _HIT, hits):
                what = touched.removeprefix(_TOUCHED) or neighbour(i)
                commander.hit = (observed.time_ns, what)
                text = f"hit {what} at {_place(observed.pos[i])}, and flies on"
                events.append(FlightEvent(observed.time_ns, name, "hit", text))
            if observed.battery is not None:
                volts = float(observed.battery[i, 0])
                if _is_new(commander, "battery empty", volts < EMPTY):
                    then = commander.rules.advice.empty
                    text = (
                        f"battery empty ({volts:.2f} V): land before the drone falls, then {then}"
                    )
                    events.append(FlightEvent(observed.time_ns, name, "battery empty", text))
        return events

    def _touching(self, contact: np.ndarray) -> np.ndarray:
        """Return (M,) which drones touch something."""
        touching: np.ndarray = np.abs(contact[:, :3]).max(axis=1) > TOUCHES * self._weight
        return touching


def _touched(commander: Commander) -> str:
    """Return the condition that the drone touched something; empty if it does not hold."""
    return next((kind for kind in commander.reported if kind.startswith(_TOUCHED)), "")


def _after_a_hit(commander: Commander, time_ns: int) -> str:
    """Return what a drone hit that crashes, in words; empty if it hit nothing."""
    touched = _touched(commander).removeprefix(_TOUCHED)
    if not touched and commander.hit is not None and time_ns - commander.hit[0] <= _CAUSES_NS:
        touched = commander.hit[1]
    return f", after it hit {touched}" if touched else ""


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
