"""Drones that hover on the estimate of their Kalman filter: how far they drift, and processor time.

    python -m benchmark.estimator

Prints a Markdown table. Drones are to hover at a height of 1 m for a minute. Times are those of one
call of many ticks, the shortest of ten in turns.
"""

from __future__ import annotations

import time

import numpy as np

from crazyflow_ros.estimation import Positioning
from crazyflow_ros.sim import Sim

FREQ, SECONDS, FLIGHTS = 500, 60, 64
HOVER_SPEED = 19_000.0  # RPM, about
BATCHES = {1: 20_000, 1024: 200}
"""Ticks of a call by number of worlds."""
ROUNDS = 10
CORNERS = tuple(
    (x, y, z) for x, y in ((-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)) for z in (0.2, 2.5)
)
KINDS: dict[str, Positioning | None] = {
    "true state": None,
    "Flow deck": Positioning(),
    "eight anchors": Positioning(flow=False, range=False, anchors=CORNERS),
    "motion capture": Positioning(flow=False, range=False, motion_capture=True),
    "nothing": Positioning(flow=False, range=False),
}


def hovering(positioning: Positioning | None, n_worlds: int) -> Sim:
    """Return drones that hover."""
    estimator = "none" if positioning is None else "kalman"
    sim = Sim(
        n_worlds, control="state", freq=FREQ, true_mass=True,
        estimator=estimator, positioning=positioning,
    )  # fmt: skip
    states = sim.data.states
    pos, rotor_vel = states.pos.at[..., 2].set(1.0), states.rotor_vel + HOVER_SPEED
    sim.data = sim.data.replace(states=states.replace(pos=pos, rotor_vel=rotor_vel))
    command = np.zeros((n_worlds, 1, 13))
    command[..., 2] = 1.0
    sim.state_control(command)
    return sim


def drift(sim: Sim) -> tuple[float, float]:
    """Return the root mean square of the distance from the setpoint, across and in height [m]."""
    sim.step(FREQ * SECONDS)
    error = np.asarray(sim.data.states.pos)[:, 0] - [0, 0, 1]
    across = np.sqrt(np.square(error[:, :2]).sum(axis=1).mean())
    return float(across), float(np.sqrt(np.square(error[:, 2]).mean()))


def seconds_of(sims: dict[str, Sim], ticks: int) -> dict[str, float]:
    """Return the processor time of a tick for each simulation."""
    best = dict.fromkeys(sims, np.inf)
    for _ in range(1 + ROUNDS):
        for name, sim in sims.items():
            began = time.process_time()
            sim.step(ticks)
            sim.data.states.pos.block_until_ready()
            best[name] = min(best[name], (time.process_time() - began) / ticks)
    return best


def main() -> None:
    """Print the table."""
    times = {
        n: seconds_of({kind: hovering(given, n) for kind, given in KINDS.items()}, ticks)
        for n, ticks in BATCHES.items()
    }
    print("| positions from | across | in height | time of a tick, 1 and 1024 worlds |")
    print("|---|---:|---:|---:|")
    for kind, given in KINDS.items():
        across, up = drift(hovering(given, FLIGHTS))
        ratios = ", ".join(f"{times[n][kind] / times[n]['true state']:.2f}" for n in BATCHES)
        print(f"| {kind} | {100 * across:.1f} cm | {100 * up:.1f} cm | {ratios} |")
    for n in BATCHES:
        print(f"{n}: {1e6 * times[n]['true state']:.2f} us with the true state")


if __name__ == "__main__":
    main()
