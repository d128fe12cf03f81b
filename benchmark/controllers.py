"""The controllers side by side: distance from a figure eight, and processor time.

    python -m benchmark.controllers

Prints a Markdown table. The figure eight is that of docs/figures.py, 2 m x 1 m, with setpoints of
position, velocity and acceleration 100 times a second, after one lap. Times are those of one call
of many ticks, the shortest of ten in turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import tau

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.sim import Sim

DRONE = "cf2x_L250"
FREQ, RATE = 500, 100  # Hz, ticks and setpoints
PERIODS = (8.0, 5.0)  # s a lap
LAPS = 2
HOVER_SPEED = 19_000.0  # RPM, about
BATCHES = {1: 20_000, 1024: 200}
"""Ticks of a call by number of worlds."""
ROUNDS = 10


def setpoints(times: float) -> np.ndarray:
    """Return the state commands at some time, one for each period, (n, 1, 13)."""
    rate = tau / np.array(PERIODS)[:, None, None]
    phase = rate * times
    a, b, zero = np.sin(phase), np.sin(2 * phase) / 2, 0 * phase
    vel = rate * np.cos(phase), rate * np.cos(2 * phase), zero
    acc = -(rate**2) * a, -4 * rate**2 * b, zero
    return np.concatenate([a, b, zero + 1, *vel, *acc, *[zero] * 4], axis=-1)


def distances(controller: str) -> np.ndarray:
    """Return the mean distance from the setpoint in the last lap, for each period [m]."""
    n = len(PERIODS)
    sim = Sim(n, drone=DRONE, control="state", controller=controller, freq=FREQ, true_mass=True)
    states, start = sim.data.states, jnp.asarray(setpoints(0.0), jnp.float32)
    sim.data = sim.data.replace(
        states=states.replace(
            pos=start[..., :3], vel=start[..., 3:6], rotor_vel=states.rotor_vel + HOVER_SPEED
        )
    )
    found: list[list[float]] = [[] for _ in PERIODS]
    for i in range(round(LAPS * max(PERIODS) * RATE)):
        sim.state_control(setpoints(i / RATE))
        sim.step(FREQ // RATE)
        now = (i + 1) / RATE
        errors = np.asarray(sim.data.states.pos) - setpoints(now)[..., :3]
        for world, period in enumerate(PERIODS):
            if (LAPS - 1) * period < now <= LAPS * period:
                found[world].append(float(np.linalg.norm(errors[world])))
    return np.array([np.mean(distance) for distance in found])


def times(n_worlds: int, controllers: Sequence[str]) -> np.ndarray:
    """Return the processor time of a tick of all worlds, for each controller [s]."""
    sims, n_ticks = [], BATCHES[n_worlds]
    for controller in controllers:
        sim = Sim(n_worlds, drone=DRONE, control="state", controller=controller, true_mass=True)
        command = np.zeros((n_worlds, 1, 13))
        command[..., 2] = 1.0
        sim.state_control(command)
        sim.step(n_ticks)
        sims.append(sim)
    best = np.full(len(sims), np.inf)
    for _ in range(ROUNDS):
        for i, sim in enumerate(sims):
            sim.reset()
            sim.data.states.pos.block_until_ready()
            began = time.process_time()
            sim.step(n_ticks)
            sim.data.states.pos.block_until_ready()
            best[i] = min(best[i], (time.process_time() - began) / n_ticks)
    return best


def main() -> None:
    """Print the table."""
    controllers = [Controller.default, *(c for c in Controller if c is not Controller.default)]
    ticks = {n: times(n, controllers) for n in BATCHES}
    laps = [f"{period:g} s a lap, mean distance" for period in PERIODS]
    worlds = [f"tick of {n} world{'s' * (n > 1)}" for n in BATCHES]
    print(f"| controller | {' | '.join(laps + worlds)} |\n|---|{'---:|' * 4}")
    for i, controller in enumerate(controllers):
        cells = [f"{100 * x:.1f} cm" for x in distances(controller)]
        cells += [f"{1e6 * t[i]:.2f} us, {t[i] / t[0]:.2f} x" for t in ticks.values()]
        print(f"| `{controller}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
