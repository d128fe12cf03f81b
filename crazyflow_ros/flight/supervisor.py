"""Detects crashed, disturbed and colliding drones, and empty batteries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from crazyflow_ros.flight.commander import ARRIVED, HIT, Commander
from crazyflow_ros.flight.fleet_observation import FleetObservation
from crazyflow_ros.flight.plan import FlightState, Rules
from crazyflow_ros.flight.tracking import allowed_deviation, comes_down, is_lost
from crazyflow_ros.flight.tumbling import SLOW, TOUCHES, TUMBLED, uprightness

RATE = 10
"""Checks per simulated second."""

_ABOVE = 0.1  # m over the floor, from which on a course leaves it
_TOUCHED = "touched "  # prefix of a condition: it touched this since the last check
_CRASHED = "crashed"  # condition: its pilot was told that it crashed, and it has not yet stopped
_OFF_COURSE = "off course"  # condition, where its course does not restart
_HELD = "held"  # condition: it has stood on the floor for a while although it should fly
_CAUSES_NS = 3_000_000_000  # from a hit to a crash that it explains: a fall from a great height
_ROUNDING = 1e-6  # share of a distance by which sums over all drones may be rounded otherwise
_STUCK = 2.0  # s for which a drone that should fly may stay on the floor


Neighbour = Callable[[int], str]
"""Takes the row of a drone that touches something, and returns the name of what it touches."""


@dataclass(frozen=True)
class FlightEvent:
    """Something that the pilot of a drone needs to know."""

    time_ns: int
    """Simulation time."""
    drone: str
    kind: str
    """crashed, upside down, hit, off course, battery empty, no setpoint, locked, disarmed or
    refused."""
    text: str
    """The event in words, and what to do."""
    remedy: str = ""
    """What to do, which also ends the text; empty if there is nothing to do."""


class _Sight(NamedTuple):
    """One drone at the instant of a check."""

    fleet: FleetObservation
    row: int
    commander: Commander
    height: float
    """Above the resting height, m."""
    upright: float
    """Cosine of the tilt."""
    touches: bool
    rests: bool
    """Whether it touches something and does not move."""
    neighbour: Neighbour
    only_tells: bool
    """See `Supervisor.check`."""

    @property
    def is_near_floor(self) -> bool:
        """Whether it may touch the floor."""
        return self.height < self.commander.rules.near_floor

    @property
    def stands(self) -> bool:
        """Whether it stands on the floor, or lies there."""
        return self.rests and self.is_near_floor

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"({', '.join(f'{x:z.2f}' for x in self.fleet.pos[self.row].tolist())}) m"

    def event(self, kind: str, text: str, remedy: str = "") -> FlightEvent:
        """Return an event, whose text ends with the remedy."""
        name = self.fleet.names[self.row]
        return FlightEvent(self.fleet.time_ns, name, kind, text + remedy, remedy)


class Supervisor:
    """Checks drones at `RATE`, and stops the rotors of those that crashed.

    It stores what it knows about a drone in its commander; a second check at the same instant
    changes nothing.

    Args:
        rules: Limits and figures of all drones.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def note_contacts(
        self,
        impact: np.ndarray,
        names: Sequence[str],
        pos: np.ndarray,
        commanders: dict[str, Commander],
        neighbour: Neighbour,
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
        in_the_air = pos[:, 2] - self.rules.rest_height > self.rules.near_floor
        for i in np.flatnonzero(self._touches(impact) & in_the_air).tolist():
            commander = commanders.get(names[i])
            if commander is None or commander.order is None:
                continue
            if not _touched(commander):
                is_told = HIT in commander.reported
                commander.reported.add(_TOUCHED + ("" if is_told else neighbour(i)))

    def check(
        self,
        observed: FleetObservation,
        commanders: dict[str, Commander],
        courses: np.ndarray,
        neighbour: Neighbour,
        *,
        only_tells: bool = False,
    ) -> list[FlightEvent]:
        """Return the new events. Stop the rotors of crashed drones.

        Args:
            observed: All drones.
            commanders: Commanders by name.
            courses: (2, M, 4) where their courses are now and how fast they go there, in the units
                of `Reference`; NaN for drones that follow none.
            neighbour: See `note_contacts`.
            only_tells: Whether to change nothing: the drones' firmware decides what follows.
        """
        upright = uprightness(observed.quat)
        touches = self._touches(np.abs(observed.contact[:, :3]).max(axis=1))
        height = observed.pos[:, 2] - self.rules.rest_height
        rests = touches & (np.abs(observed.vel).max(axis=1) < SLOW)
        happens = touches | (upright < 0) | self._may_be_lost(observed, courses)
        if observed.battery is not None:
            happens |= observed.battery[:, 0] < self.rules.empty_voltage
        events = []
        for i, (name, happened) in enumerate(zip(observed.names, happens.tolist())):
            commander = commanders.get(name)
            if commander is None or commander.order is None:
                continue
            if not (happened or commander.reported or commander.stuck_ns is not None):
                continue
            figures = float(height[i]), float(upright[i]), bool(touches[i]), bool(rests[i])
            sight = _Sight(observed, i, commander, *figures, neighbour, only_tells)
            if crash := _crash(sight):
                events.append(crash)
                continue
            if not only_tells and _is_down(sight):
                commander.stop(FlightState.landed)
                continue
            found = (look(sight) for look in (_turned, _lost, _hit, _empty))
            events += [event for event in found if event is not None]
        return events

    def _touches(self, force: np.ndarray) -> np.ndarray:
        """Return which drones touch something, for the largest forces along an axis [N]."""
        touches: np.ndarray = force > TOUCHES * self.rules.weight
        return touches

    def _may_be_lost(self, observed: FleetObservation, courses: np.ndarray) -> np.ndarray:
        """Return (M,) False for drones that `Commander.is_lost` surely does not find lost."""
        pos, vel = courses[..., :3]
        away = np.linalg.norm(observed.places - pos, axis=1)
        speed = np.maximum(self.rules.envelope.speed, np.linalg.norm(vel, axis=1))
        within = away < (1 - _ROUNDING) * allowed_deviation(speed, observed.lag)
        may_be: np.ndarray = ~within & ~np.isnan(pos[:, 0])
        return may_be


def _crash(sight: _Sight) -> FlightEvent | None:
    """Stop the rotors of a drone that crashed, and return the event.

    A drone that has stood on the floor for a while first resumes its course there.
    """
    commander, now = sight.commander, sight.fleet
    stuck = _stuck_for(sight)
    if not sight.only_tells and _is_new(commander, _HELD, stuck >= _STUCK / 2):
        # From the heading and place in which the floor holds it, it may lift off.
        commander.restart(now.start(sight.row))
    why = _why_crashed(sight, stuck)
    if sight.only_tells and not _is_new(commander, _CRASHED, bool(why)):
        return None
    if not why:
        return None
    why += _after_a_hit(commander, now.time_ns)
    if sight.only_tells:
        text = f"crashed at {sight.place}: {why}; its rotors turn until its firmware stops them"
        return sight.event("crashed", text)
    commander.stop(FlightState.crashed, why)
    call = commander.rules.advice.call.format(now.names[sight.row])
    return sight.event("crashed", f"crashed at {sight.place}: {why}; rotors stopped, ", call)


def _turned(sight: _Sight) -> FlightEvent | None:
    """Return the event of a drone that is upside down in the air."""
    assert sight.commander.order is not None
    turned = sight.commander.order.plan.bounded and sight.upright < 0
    if not _is_new(sight.commander, "upside down", turned):
        return None
    text = f"upside down at {sight.place}, and falls until it is upright"
    return sight.event("upside down", text)


def _lost(sight: _Sight) -> FlightEvent | None:
    """Restart the course of a drone that lost it, and return the event."""
    commander, now = sight.commander, sight.fleet
    if sight.stands or not is_lost(commander, now.time_ns, now.places[sight.row], now.lag):
        commander.reported.discard(_OFF_COURSE)
        return None
    if sight.only_tells:
        is_new = _is_new(commander, _OFF_COURSE, True)
        return sight.event("off course", f"off course at {sight.place}") if is_new else None
    if not commander.restart(now.start(sight.row)):
        return None
    text = f"off course at {sight.place}: the course restarts from there"
    return sight.event("off course", text)


def _is_down(sight: _Sight) -> bool:
    """Return whether a drone has landed on something that is higher than the floor."""
    upright, place = sight.upright >= TUMBLED, sight.fleet.places[sight.row]
    course = comes_down(sight.commander, sight.fleet.time_ns)
    return sight.rests and upright and float(place[2]) > course + ARRIVED


def _hit(sight: _Sight) -> FlightEvent | None:
    """Return the event of a drone that hit something in the air, unless it comes down to land."""
    commander = sight.commander
    touched = _touched(commander)
    commander.reported.discard(touched)
    hits = bool(touched) or (sight.touches and not sight.is_near_floor)
    if not _is_new(commander, HIT, hits):
        return None
    what = touched.removeprefix(_TOUCHED) or sight.neighbour(sight.row)
    commander.hit = (sight.fleet.time_ns, what)
    if comes_down(commander, sight.fleet.time_ns) < inf and sight.upright >= TUMBLED:
        return None
    return sight.event("hit", f"hit {what} at {sight.place}, and flies on")


def _empty(sight: _Sight) -> FlightEvent | None:
    """Return the event of an empty battery."""
    battery, rules = sight.fleet.battery, sight.commander.rules
    if battery is None:
        return None
    volts = float(battery[sight.row, 0])
    if not _is_new(sight.commander, "battery empty", volts < rules.empty_voltage):
        return None
    remedy = f"land before the drone falls, then {rules.advice.empty}"
    return sight.event("battery empty", f"battery empty ({volts:.2f} V): ", remedy)


def _why_crashed(sight: _Sight, stuck: float) -> str:
    """Return why a drone has crashed, or an empty string; it was stuck for some time [s]."""
    if sight.upright < 0 and sight.touches:  # in the air, most controllers right themselves
        return "upside down"
    if sight.upright < TUMBLED and sight.touches and sight.is_near_floor:
        return "it fell on its side"
    return "it cannot lift off" if stuck >= _STUCK else ""


def _touched(commander: Commander) -> str:
    """Return the condition that the drone touched something; empty if it does not hold."""
    return next((kind for kind in commander.reported if kind.startswith(_TOUCHED)), "")


def _after_a_hit(commander: Commander, time_ns: int) -> str:
    """Return in words what a crashing drone hit before; empty if it hit nothing."""
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


def _stuck_for(sight: _Sight) -> float:
    """Return how long ago the drone first stood on the floor although it should fly [s].

    The time is 0 in the air, and while the drone does not stand. A drone with a broken rotor shakes
    and hops, so only leaving the floor resets it. A bounded course that began in a fall may pass
    below the floor; an unbounded one does so because the pilot wants the drone to stand there.
    """
    commander, now = sight.commander, sight.fleet.time_ns
    assert commander.order is not None
    plan, reference = commander.order.plan, commander.order.reference(now)
    if reference is None or not sight.is_near_floor:
        commander.stuck_ns = None
        return 0.0
    above = float(reference.pos[2]) - commander.rules.rest_height
    below = -above if plan.bounded and not plan.after.stands else 0.0
    if not sight.stands or max(above, below) <= _ABOVE:
        return 0.0
    if commander.stuck_ns is None:
        commander.stuck_ns = now
    return (now - commander.stuck_ns) * 1e-9
