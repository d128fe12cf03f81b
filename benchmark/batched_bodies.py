"""Bodies that move in batches of worlds, by MJX: a step takes how much longer than without them.

    python -m benchmark.batched_bodies

Prints a Markdown table. In each world, a drone hovers above boxes that lie on the floor. Times are
wall times of `step(100)`, the shortest of five in turns, at 500 Hz.
"""

from __future__ import annotations

import tempfile
import time

import jax.numpy as jnp
import numpy as np

from benchmark.moving_bodies import world
from crazyflow_ros.sim import Sim, move_bodies

DRONE, TICKS, ROUNDS = "cf2x_L250", 100, 5
ROWS = ((1, 1), (16, 1), (128, 1), (16, 5))
"""Worlds, and boxes in each of them."""


def hovering(n_worlds: int, scene: str | None) -> Sim:
    """Return simulations in which a drone hovers."""
    sim = Sim(n_worlds, drone=DRONE, control="state")
    command = np.zeros((n_worlds, 1, 13), np.float32)
    command[..., 2], command[..., 12] = 1.0, 1.0
    states = sim.data.states
    sim.data = sim.data.replace(states=states.replace(pos=states.pos.at[..., 2].set(1.0)))
    if scene is not None:
        move_bodies(sim, scene)
    sim.state_control(command)
    sim.step(TICKS)
    assert bool(jnp.isfinite(sim.data.states.pos).all())
    return sim


def main() -> None:
    """Print the table."""
    print("| worlds | boxes | drones alone | with boxes | ticks of a world in a second |")
    print("|---:|---:|---:|---:|---:|")
    for n_worlds, boxes in ROWS:
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(world(boxes, asleep=False))
            file.flush()
            sims = hovering(n_worlds, None), hovering(n_worlds, file.name)
        best = [np.inf, np.inf]
        for _ in range(ROUNDS):
            for i, sim in enumerate(sims):
                began = time.perf_counter()
                sim.step(TICKS)
                sim.data.states.pos.block_until_ready()
                best[i] = min(best[i], time.perf_counter() - began)
        alone, among = best
        rate = n_worlds * TICKS / among
        print(
            f"| {n_worlds} | {boxes} | {1e3 * alone:.2f} ms | {1e3 * among:.1f} ms | {rate:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
