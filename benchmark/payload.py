"""Drones with slung loads: how much longer a step of many worlds takes.

    python -m benchmark.payload

Prints a Markdown table. Drones fly at a height of 100 m, a load below them. Times are processor
times of `step(500)`, the shortest of seven in turns.
"""

from __future__ import annotations

import time

import jax
import numpy as np

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import SlungLoad
from crazyflow_ros.sim import Sim, hang_payload

DRONE, WORLDS, TICKS, ROUNDS = "cf2x_L250", 4096, 500, 7
HEIGHT, APART = 100.0, 0.5  # m
HOVER_SPEED, WEIGHT = 19_000.0, 0.33  # RPM, N
LOADS = {
    "no load": None,
    "at the centre of mass": SlungLoad(length=1.0),
    "1 cm below it": SlungLoad(length=1.0, attachment=(0.0, 0.0, -0.01)),
}
ROWS = (("rotor_vel", 1), ("attitude", 1), ("state", 1), ("state", 2), ("state", 4))


def flying(control: str, n_drones: int, payload: SlungLoad | None) -> Sim:
    """Return drones that fly."""
    sim = Sim(WORLDS, n_drones, drone=DRONE, control=control, payload=payload)
    pos = np.zeros((WORLDS, n_drones, 3), np.float32)
    pos[..., 0], pos[..., 2] = APART * np.arange(n_drones), HEIGHT
    states = sim.data.states
    data = sim.data.replace(
        states=states.replace(pos=pos, rotor_vel=states.rotor_vel + HOVER_SPEED)
    )
    sim.data = data if payload is None else hang_payload(data)
    command = np.zeros((WORLDS, n_drones, min(Control(control).sizes)), np.float32)
    if control == "state":
        command[..., :3], command[..., 12] = pos, 1.0
    else:
        command[...] = HOVER_SPEED if control == "rotor_vel" else [0, 0, 0, WEIGHT]
    getattr(sim, f"{control}_control")(command)
    sim.step(TICKS)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((sim.data.states, sim.data.payload)))
    return sim


def seconds_of(sims: dict[str, Sim]) -> dict[str, float]:
    """Return the processor time of a step for each simulation."""
    best = dict.fromkeys(sims, np.inf)
    for _ in range(ROUNDS):
        for name, sim in sims.items():
            began = time.process_time()
            sim.step(TICKS)
            sim.data.states.pos.block_until_ready()
            best[name] = min(best[name], time.process_time() - began)
    return best


def main() -> None:
    """Print the table."""
    own, *others = LOADS
    print(f"| control | drones | {own} | {' | '.join(others)} |")
    print("|---|---:|---:|---:|---:|")
    for control, n_drones in ROWS:
        times = seconds_of({name: flying(control, n_drones, x) for name, x in LOADS.items()})
        ratios = " | ".join(f"{times[name] / times[own]:.2f}" for name in others)
        print(f"| {control} | {n_drones} | {1e3 * times[own]:.1f} ms | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
