"""Flies missions side by side, and records what happens to each drone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmark.flights.conditions import Conditions, home
from benchmark.flights.missions import Action, Mission, mission
from crazyflow_ros.flight import FlightEvent, FlightState, Setpoint
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.runtime import DroneState, PhysicsThread, Snapshot, TimedWrench

RATE = 100
"""Records per second."""
_REFERENCES = 20  # looks at the references per second
_EVERY = 5  # ticks between two times at which actions happen
_T = 300.0  # s of wall time for a step


@dataclass
class Record:
    """What happened to one drone."""

    mission: Mission
    tilt: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Tilt [rad] at `RATE`, (n,)."""
    pos: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Position [m], (n, 3)."""
    vel: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Velocity [m/s], (n, 3)."""
    touches: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Force of contacts [N], (n,)."""
    reference: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Reference position [m], NaN without one, (n, 3); looked up less often."""
    believed: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Position that the drone believes to have [m], (n, 3)."""
    events: list[FlightEvent] = field(default_factory=list)
    state: str = ""
    """Flight state at the end."""
    refused: list[str] = field(default_factory=list)
    """Orders that were refused."""


class _Watch:
    """Collects the states of all drones."""

    def __init__(self, physics: PhysicsThread, n_drones: int) -> None:
        self._physics = physics
        self._rows: list[np.ndarray] = []
        self._last = np.full((n_drones, 3), np.nan)

    def see(self, now: Snapshot) -> None:
        period = self._physics.config.freq // _REFERENCES
        if now.tick % period == 0:
            for i, flight in enumerate(self._physics.commands.commanders.flights(now.names)):
                found = None if flight.order is None else flight.order.reference(now.time_ns)
                self._last[i] = np.nan if found is None else found.pos[:3]
        quat = now.quat
        upright = 1 - 2 * (quat[:, 0] ** 2 + quat[:, 1] ** 2)
        force = np.abs(now.contact[:, :3]).max(axis=1)
        columns = (np.arccos(np.clip(upright, -1, 1)), np.maximum(force, now.impact))
        parts = (now.pos, now.vel, self._last, now.known.pos, np.stack(columns, axis=1))
        self._rows.append(np.hstack(parts).astype(np.float32))

    def records(self, missions: Sequence[Mission]) -> list[Record]:
        rows = np.array(self._rows)
        return [
            Record(
                mission,
                pos=rows[:, i, :3],
                vel=rows[:, i, 3:6],
                reference=rows[:, i, 6:9],
                believed=rows[:, i, 9:12],
                tilt=rows[:, i, 12],
                touches=rows[:, i, 13],
            )
            for i, mission in enumerate(missions)
        ]


def fly(conditions: Conditions, missions: Sequence[Mission], seed: int) -> list[Record]:
    """Fly missions side by side, each to its end.

    Args:
        conditions: Conditions of all drones.
        missions: One for each drone, at the places of `home`.
        seed: Of gusts and sensors.
    """
    names = [f"cf{i}" for i in range(len(missions))]
    logger = logging.getLogger("flights")
    logger.setLevel(logging.CRITICAL)
    physics = PhysicsThread(conditions.config(len(names), seed), names, logger=logger)
    watch, events = _Watch(physics, len(names)), list[FlightEvent]()
    physics.every(RATE, watch.see, "watch", observes=True)
    physics.news.on_flight_event(events.append)
    physics.start()
    try:
        refused = _fly(physics, names, missions)
    finally:
        physics.stop()
    if physics.failed is not None:
        raise physics.failed
    records = watch.records(missions)
    for name, record in zip(names, records):
        record.events = [event for event in events if event.drone == name]
        record.state = str(physics.commands.states.get(name, FlightState.idle))
        record.refused = [text for text in refused if text.startswith(f"{name}:")]
    return records


def _fly(physics: PhysicsThread, names: Sequence[str], missions: Sequence[Mission]) -> list[str]:
    """Let everything happen at its tick; return the orders that were refused."""
    freq, refused = physics.config.freq, list[str]()
    timeline: dict[int, list[tuple[str, Action]]] = {}
    for name, flown in zip(names, missions):
        for time, action in flown.actions:
            tick = _EVERY * round(time * freq / _EVERY)
            timeline.setdefault(max(tick, _EVERY), []).append((name, action))
    last = _EVERY * round(max(flown.end for flown in missions) * freq / _EVERY)
    for tick in [*sorted(tick for tick in timeline if tick < last), last]:
        if tick > physics.snapshot.tick:
            physics.step(tick - physics.snapshot.tick).result(_T)
        setpoints: dict[str, Setpoint] = {}
        for name, action in timeline.get(tick, []):
            if isinstance(action, TimedWrench):
                physics.apply_wrench(name, action)
            elif isinstance(action, DroneState):
                physics.state.set_drone_states({name: action}).result(_T)
            else:
                setpoints[name] = action
        if setpoints:
            refused += physics.fly(setpoints).result(_T).refused
    return refused


def group(
    seed: int, size: int, kinds: Sequence[str] = (), **given: object
) -> tuple[Conditions, list[Mission]]:
    """Draw conditions, and a mission for each drone.

    Args:
        seed: The same seed and size give the same.
        size: Number of drones.
        kinds: Kinds of the missions, in turn; by default random ones.
        **given: Conditions that are not random.
    """
    rng = np.random.default_rng(seed)
    drawn = Conditions.random(rng)
    conditions = Conditions(**{**vars(drawn), **given})
    rules = Rules.of(conditions.drone, conditions.config(1, 0).flight)
    missions = []
    for i in range(size):
        kind = kinds[i % len(kinds)] if kinds else ""
        own, most = np.random.default_rng((seed, i)), (conditions.fastest, conditions.drifts)
        missions.append(mission(own, home(i), rules, *most, kind))
    return conditions, missions
