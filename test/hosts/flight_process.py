"""A simulator as a process: one of those that share a time, or alone, on the same flight.

    python flight_process.py '{"name": "left", "peers": ["right"], ...}'

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

FREQ, RATE, GOALS = 500, 100, 250  # Hz, Hz, ticks from one goal to the next
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
    """Settings; empty for a simulator that is alone."""


def say(**news: Any) -> None:
    """Print a line."""
    print(json.dumps(news), flush=True)


def config(flight: Flight) -> SimulationConfig:
    """Return the simulation of all processes."""
    return SimulationConfig(
        freq=FREQ,
        start_paused=True,
        real_time_factor=flight.factor,
        drone_collisions=True,
        downwash=True,
        ground_effect=True,
        true_mass=True,
    )


class Pilot:
    """Commands the own drones, asks at its ticks, and notes what happens."""

    def __init__(self, flight: Flight, physics: PhysicsThread, own: tuple[str, ...]) -> None:
        self.flight, self.physics, self.own = flight, physics, own
        self.digests: dict[int, str] = {}
        self.hits = 0
        self.futures: dict[str, Any] = {}

    def fly(self, now: Snapshot) -> None:
        """Do what the tick asks for."""
        flight, tick = self.flight, now.tick
        in_the_air = now.pos[:, 2] > IN_THE_AIR
        self.hits += int((np.abs(now.contact[:, :3]).max(axis=1)[in_the_air] > 0).sum())
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
        if tick == flight.pause:
            physics.pause()
        elif tick == flight.reset:
            physics.reset(ResetScope.state)
        elif tick == flight.checkpoint and "kept" not in self.futures:
            self.futures["kept"] = physics.checkpoint()
        elif tick == flight.warn and "warned" not in self.futures:
            self.futures["warned"] = True
            say(tick=tick)


def main(flight: Flight) -> None:
    """Fly."""
    names = [f"cf{i}" for i in range(flight.n_drones)]
    simulation, own = config(flight), tuple(names)
    if flight.hosts:
        hosts = Hosts(
            **{k: tuple(v) if isinstance(v, list) else v for k, v in flight.hosts.items()}
        )
        own, physics = hosts.drones, SharedThread(simulation, names, hosts)
    else:
        physics = PhysicsThread(simulation, names)
    pilot = Pilot(flight, physics, own)
    physics.every(RATE, pilot.fly, "pilot")
    physics.start()
    say(ready=True)
    began = time.perf_counter()
    if flight.leads:
        lead(flight, physics, pilot)
    while physics.snapshot.tick < flight.ticks or not physics.paused:
        time.sleep(0.01)
    say(took=time.perf_counter() - began, hits=pilot.hits, digests=pilot.digests)
    sys.stdin.read(1)
    physics.stop(T)


def lead(flight: Flight, physics: PhysicsThread, pilot: Pilot) -> None:
    """Let time run, save the checkpoint, and restore it when another simulator has come back."""
    physics.resume().result(T)
    while physics.snapshot.tick < flight.pause or not physics.paused:
        time.sleep(0.001)
    say(paused=physics.snapshot.tick)
    physics.resume().result(T)
    while "kept" not in pilot.futures:
        time.sleep(0.001)
    kept = pilot.futures["kept"].result(T)
    kept.save(flight.file)
    while physics.snapshot.tick < flight.ticks:
        time.sleep(0.01)
        if not physics.paused:
            continue
        try:
            physics.resume().result(T)
        except InvalidState as held:
            say(held=str(held), at=physics.snapshot.tick)
            if "different states" in str(held):
                physics.restore(Checkpoint.load(Path(flight.file))).result(T)
                say(restored=physics.snapshot.tick)
        time.sleep(0.2)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    open_cache(print)
    main(Flight(**json.loads(sys.argv[1])))
