"""Sees drones that fell, were thrown or hit something, and those whose battery is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import AXES, Reference
from crazyflow_ros.flight.plan import FlightState, Start
from crazyflow_ros.scene.frames import yaw

RATE = 10
"""Looks per simulated second."""
EMPTY = 3.0
"""Voltage [V] under load, below which a Crazyflie's battery is empty; its firmware shuts down."""

_ON_ITS_SIDE = 0.5  # cosine of the tilt: 60 degrees
_TOUCHES = 0.05  # of the weight, the least force of a contact
_IN_THE_AIR = 0.05  # m above where it stands
_SLOW = 0.05  # m/s
_TOUCHED = "touched"  # among what is known: it did since the last look
_STUCK_NS = 1_000_000_000  # for which a drone that is to fly may stay on the floor


@dataclass(frozen=True)
class FlightEvent:
    """Something that a pilot would want to know about a drone."""

    time_ns: int
    """Simulation time."""
    drone: str
    kind: str
    """crashed, hit, off course, battery empty or no setpoint."""
    text: str
    """What has happened, and what to do."""


@dataclass(frozen=True)
class Sight:
    """What is seen of all drones at one instant, a row each."""

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
    """(M, 3) voltage, current and charge drawn; None without."""

    def start(self, i: int) -> Start:
        """How a drone moves."""
        pos, vel = np.zeros(AXES), np.zeros(AXES)
        pos[:3], vel[:3], pos[3] = self.pos[i], self.vel[i], float(yaw(self.quat[i]))
        return Start(self.time_ns, Reference(pos, vel, np.zeros(AXES)))


class Supervisor:
    """Looks at drones at `RATE`, and stops the rotors of those that fell.

    What it remembers of a drone is with its commander; to look twice at an instant changes nothing.

    Args:
        weight: Of a drone [N].
        reset: What to call to put a drone back, with a place for its name.
    """

    def __init__(self, weight: float, reset: str = "{}/reset") -> None:
        self._weight, self._reset = weight, reset

    def feel(
        self,
        contact: Sequence[np.ndarray],
        names: Sequence[str],
        pos: Sequence[np.ndarray],
        commanders: dict[str, Commander],
    ) -> None:
        """Take note of drones that touch something in the air; that may be over at the next look.

        Args:
            contact: As of a `Sight`, at some instants.
            names: Of the drones.
            pos: As contact.
            commanders: By name.
        """
        for k, i in np.argwhere(self._touching(np.array(contact))).tolist():
            commander = commanders.get(names[i])
            if commander is None or commander.order is None:
                continue
            if pos[k][i, 2] - commander.rules.rest_height > _IN_THE_AIR:
                commander.known.add(_TOUCHED)

    def look(self, sight: Sight, commanders: dict[str, Commander]) -> list[FlightEvent]:
        """What is new. Crashed drones are stopped by then."""
        events = []
        upright = 1 - 2 * (sight.quat[:, 0] ** 2 + sight.quat[:, 1] ** 2)
        touching = self._touching(sight.contact)
        for i, name in enumerate(sight.names):
            commander = commanders.get(name)
            if commander is None or commander.order is None:
                continue
            is_led = commander.order.plan.led
            height = sight.pos[i, 2] - commander.rules.rest_height
            why = ""
            if upright[i] < 0 and (touching[i] or is_led):
                why = "upside down"
            elif upright[i] < _ON_ITS_SIDE and touching[i] and height < _IN_THE_AIR:
                why = "it fell on its side"
            stands = bool(touching[i]) and height < _IN_THE_AIR
            stands &= bool(np.abs(sight.vel[i]).max() < _SLOW)
            if not why and _is_stuck(commander, sight.time_ns, stands):
                why = "it cannot lift off"
            if why:
                where = _place(sight.pos[i])
                commander.stop(FlightState.crashed, why)
                reset = self._reset.format(name)
                text = f"crashed at {where}: {why}; rotors stopped, call {reset}"
                events.append(FlightEvent(sight.time_ns, name, "crashed", text))
                continue
            if not stands and commander.regain(sight.start(i)):
                text = f"off course at {_place(sight.pos[i])}: its course begins anew from there"
                events.append(FlightEvent(sight.time_ns, name, "off course", text))
            hits = bool(touching[i] and height > _IN_THE_AIR) or _TOUCHED in commander.known
            commander.known.discard(_TOUCHED)
            if _is_new(commander, "hit", hits):
                text = f"hit something at {_place(sight.pos[i])}, and flies on"
                events.append(FlightEvent(sight.time_ns, name, "hit", text))
            if sight.battery is not None:
                volts = float(sight.battery[i, 0])
                if _is_new(commander, "battery empty", volts < EMPTY):
                    text = f"battery empty ({volts:.2f} V): it will fall; land, and reset it"
                    events.append(FlightEvent(sight.time_ns, name, "battery empty", text))
        return events

    def _touching(self, contact: np.ndarray) -> np.ndarray:
        """(..., M) which drones touch something."""
        touching: np.ndarray = np.abs(contact[..., :3]).max(axis=-1) > _TOUCHES * self._weight
        return touching


def _is_new(commander: Commander, kind: str, is_so: bool) -> bool:
    if not is_so:
        commander.known.discard(kind)
    elif kind not in commander.known:
        commander.known.add(kind)
        return True
    return False


def _is_stuck(commander: Commander, time_ns: int, stands: bool) -> bool:
    """For a second it stands on the floor, although it is to fly."""
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
