"""Detects crashed, disturbed and colliding drones, and empty batteries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import AXES, Reference
from crazyflow_ros.flight.plan import FlightState, StartState
from crazyflow_ros.flight.tumbling import SLOW, TOUCHES, TUMBLED, uprightness
from crazyflow_ros.scene.frames import yaw

RATE = 10
"""Checks per simulated second."""

_IN_THE_AIR = 0.05  # m above the resting height
_TOUCHED = "touched "  # prefix of a condition: it touched this since the last check
_HIT = "hit"
_HELD = "held"  # condition: it has stood on the floor for a while although it should fly
_CAUSES_NS = 3_000_000_000  # from a hit to a crash that it explains: a fall from a great height
_STUCK = 2.0  # s for which a drone that should fly may stay on the floor


class Ability(NamedTuple):
    """What drones can do, with their rotors and their controllers."""

    authority: np.ndarray
    """(M,) share of their spare thrust that they have now."""
    fastest: float = inf
    """Speed that the controller can follow [m/s]."""
    lag: float = 0.0
    """Time by which they follow a moving setpoint late [s]."""


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
    """crashed, upside down, hit, off course, battery empty, no setpoint or refused."""
    text: str
    """The event in words, and what to do."""


@dataclass(frozen=True)
class FleetObservation:
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
    ability: Ability | None = None
    """What they can do now; None for all."""

    def start(self, i: int) -> StartState:
        """Return the motion from which a drone plans: the estimate, if there is one."""
        at, quat, velocity = self.believed or (self.pos, self.quat, self.vel)
        pos, vel = np.zeros(AXES), np.zeros(AXES)
        pos[:3], vel[:3], pos[3] = at[i], velocity[i], float(yaw(quat[i]))
        upright = bool(uprightness(self.quat[i]) >= TUMBLED)
        motion = Reference(pos, vel, np.zeros(AXES))
        start = StartState(self.time_ns, motion, upright=upright)
        if (able := self.ability) is None:
            return start
        return replace(start, authority=float(able.authority[i]), fastest=able.fastest)


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
        observed: FleetObservation,
        commanders: dict[str, Commander],
        neighbour: Neighbour = _unknown,
    ) -> list[FlightEvent]:
        """Return the new events. Stop the rotors of crashed drones.

        Args:
            observed: All drones.
            commanders: Commanders by name.
            neighbour: See `note_contacts`.
        """
        events, lag = [], 0.0 if observed.ability is None else observed.ability.lag
        upright = uprightness(observed.quat)
        touching = self._touching(observed.contact)
        places = observed.pos if observed.believed is None else observed.believed[0]
        for i, name in enumerate(observed.names):
            commander = commanders.get(name)
            if commander is None or commander.order is None:
                continue
            height = observed.pos[i, 2] - commander.rules.rest_height
            stands = bool(touching[i]) and height < _IN_THE_AIR
            stands &= bool(np.abs(observed.vel[i]).max() < SLOW)
            stuck = _stuck_for(commander, observed.time_ns, stands)
            if _is_new(commander, _HELD, stuck >= _STUCK / 2):
                # With the heading and the place that the floor has kept, it may lift off.
                commander.restart(observed.start(i))
            if why := _why_crashed(float(upright[i]), bool(touching[i]), height, stuck):
                where = _place(observed.pos[i])
                why += _after_a_hit(commander, observed.time_ns)
                commander.stop(FlightState.crashed, why)
                call = commander.rules.advice.call.format(name)
                text = f"crashed at {where}: {why}; rotors stopped, {call}"
                events.append(FlightEvent(observed.time_ns, name, "crashed", text))
                continue
            turned = commander.order.plan.bounded and bool(upright[i] < 0)
            if _is_new(commander, "upside down", turned):
                text = f"upside down at {_place(observed.pos[i])}, and falls until it is upright"
                events.append(FlightEvent(observed.time_ns, name, "upside down", text))
            is_lost = not stands and commander.is_lost(observed.time_ns, places[i], lag)
            if is_lost and commander.restart(observed.start(i)):
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
                if _is_new(commander, "battery empty", volts < commander.rules.empty_voltage):
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


def _why_crashed(upright: float, touches: bool, height: float, stuck: float) -> str:
    """Return why a drone has crashed, or an empty string."""
    if upright < 0 and touches:  # in the air, most controllers right themselves
        return "upside down"
    if upright < TUMBLED and touches and height < _IN_THE_AIR:
        return "it fell on its side"
    return "it cannot lift off" if stuck >= _STUCK else ""


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


def _stuck_for(commander: Commander, time_ns: int, stands: bool) -> float:
    """Return the time for which the drone has stood on the floor although it should fly [s]."""
    assert commander.order is not None
    reference = commander.order.reference(time_ns) if stands else None
    if reference is None:
        commander.stuck_ns = None
        return 0.0
    if commander.stuck_ns is None:
        if reference.pos[2] <= commander.rules.rest_height + 2 * _IN_THE_AIR:
            return 0.0
        commander.stuck_ns = time_ns
    return (time_ns - commander.stuck_ns) * 1e-9


def _place(pos: np.ndarray) -> str:
    return f"({', '.join(f'{x:z.2f}' for x in pos.tolist())}) m"
