"""A simulator as a process, one of those that share a time; or alone, on the same flight.

    python host_flight.py '{"name": "left", "peers": ["right"], ...}'

The flight is a function of the tick: goals for all drones, so near to each other that they collide;
at some ticks the leader asks for a pause, a reset and a checkpoint. Prints JSON lines.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from physics_helpers import until

from crazyflow_ros.checks.plain_values import convert
from crazyflow_ros.flight import Pose
from crazyflow_ros.hosts import Hosts, SharedThread
from crazyflow_ros.hosts.rounds import digest
from crazyflow_ros.runtime import (
    Checkpoint,
    InvalidState,
    PhysicsThread,
    ResetScope,
    SimulationConfig,
    Snapshot,
)
from crazyflow_ros.xla.compiled_files import open_cache

RATE, GOALS = 100, 250  # Hz, ticks from one goal to the next
T = 600.0  # s
SIDE = 0.6  # m, of the cube in which all goals are
IN_THE_AIR = 0.2  # m


@dataclass(frozen=True)
class Flight:
    """What a process flies."""

    ticks: int
    pause: int
    reset: int
    checkpoint: int
    warn: int
    """Tick at which the leader says that it is time to end another one."""
    n_drones: int = 20
    leads: bool = True
    factor: float = 0.0
    file: str = ""
    """Gets the checkpoint."""
    hosts: dict[str, Any] = field(default_factory=dict)
    """Settings."""


def say(**news: Any) -> None:
    """Print a line."""
    print(json.dumps(news), flush=True)


def config(n_drones: int, factor: float = 0.0) -> SimulationConfig:
    """Return the simulation of all tests, which a machine compiles once."""
    return SimulationConfig(
        start_paused=True,
        real_time_factor=factor,
        drone_collisions=True,
        downwash=True,
        max_drones=n_drones + 1,
    )


class Pilot:
    """Commands the own drones, asks at its ticks, and notes what happens."""

    def __init__(self, flight: Flight, physics: PhysicsThread, own: tuple[str, ...]) -> None:
        self.flight, self.physics, self.own = flight, physics, own
        self.digests: dict[int, str] = {}
        self.hits = 0
        self.asked: dict[int, Any] = {}

    def fly(self, now: Snapshot) -> None:
        """Do what the tick asks for."""
        flight, tick = self.flight, now.tick
        in_the_air = now.pos[:, 2] > IN_THE_AIR
        self.hits += int((now.impact[in_the_air] > 0).sum())
        if tick % 100 == 0 or tick == flight.ticks:
            self.digests[tick] = digest(now)
        if tick % GOALS == 0:
            places = np.random.default_rng(tick).uniform(-SIDE / 2, SIDE / 2, (len(now.names), 3))
            goals = {name: Pose((x, y, 0.5 + z), 0.0) for name, (x, y, z) in zip(now.names, places)}
            self.physics.command_all({name: goals[name] for name in self.own})
        if tick == flight.ticks:
            self.physics.pause()
        if flight.leads:
            self._lead(tick)

    def _lead(self, tick: int) -> None:
        flight, physics = self.flight, self.physics
        requests = {
            flight.pause: physics.pause,
            flight.reset: lambda: physics.state.reset(ResetScope.state),
            flight.checkpoint: physics.state.checkpoint,
            flight.warn: lambda: say(tick=tick),
        }
        if tick in requests and tick not in self.asked:  # also shown after a reset
            self.asked[tick] = None
            self.asked[tick] = requests[tick]()


def main(flight: Flight) -> None:
    """Fly as one of several simulators."""
    names = [f"cf{i}" for i in range(flight.n_drones)]
    hosts: Hosts = convert(flight.hosts, Hosts, "hosts")
    physics = SharedThread(config(flight.n_drones, flight.factor), names, hosts)
    pilot = Pilot(flight, physics, hosts.drones)
    physics.every(RATE, pilot.fly, "pilot")
    physics.start()
    began = time.perf_counter()
    if flight.leads:
        lead(flight, physics, pilot)
    while physics.snapshot.tick < flight.ticks or not physics.paused:
        time.sleep(0.01)
    say(took=time.perf_counter() - began, hits=pilot.hits, digests=pilot.digests)
    sys.stdin.read(1)
    physics.stop(T)


def fly_alone(flight: Flight) -> Pilot:
    """Fly in this process with one simulator; nobody is killed."""
    names = tuple(f"cf{i}" for i in range(flight.n_drones))
    physics = PhysicsThread(config(flight.n_drones), names)
    pilot = Pilot(flight, physics, names)
    physics.every(RATE, pilot.fly, "pilot")
    physics.start()
    try:
        lead(flight, physics, pilot)
        until(lambda: physics.paused, "the end", T)
    finally:
        physics.stop(T)
    return pilot


def lead(flight: Flight, physics: PhysicsThread, pilot: Pilot) -> None:
    """Let time run, save the checkpoint, and restore it when another simulator has come back."""
    physics.resume().result(T)
    while physics.snapshot.tick < flight.pause or not physics.paused:
        time.sleep(0.001)
    say(paused=physics.snapshot.tick)
    physics.resume().result(T)
    while pilot.asked.get(flight.checkpoint) is None:
        time.sleep(0.001)
    pilot.asked[flight.checkpoint].result(T).save(flight.file)
    while physics.snapshot.tick < flight.ticks:
        time.sleep(0.01)
        if not physics.paused or physics.snapshot.tick == flight.ticks:
            continue
        try:
            physics.resume().result(T)
        except InvalidState as held:
            say(held=str(held), at=physics.snapshot.tick)
            if "different states" in str(held):
                physics.state.restore(Checkpoint.load(Path(flight.file))).result(T)
                say(restored=physics.snapshot.tick)
        time.sleep(0.2)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    open_cache(print)
    main(Flight(**json.loads(sys.argv[1])))
