"""Loads on cables: two drones lift one together, and a policy carries others to their goals.

    .venv/bin/python examples/21_slung_load/slung_load.py

The policy observes its goal, where the load is and how it moves, but neither the mass of the load
nor the length of the cable, which differ from flight to flight. It was made by

    .venv/bin/python -m crazyflow_ros.learn carry
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from crazyflow_ros.dynamics import SlungLoad
from crazyflow_ros.learn import READY, Evaluation, evaluate
from crazyflow_ros.policy import load
from crazyflow_ros.sim import Sim, randomize_payload

FILE = Path(__file__).with_name("carry.policy")
OTHERS = (randomize_payload("mass", 0.5), randomize_payload("length", 0.3))
"""Loads of 2.5 to 7.5 g on cables of 35 to 65 cm."""


def lifted(height: float = 1.2, seconds: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """Let two drones, 1 m apart, lift 8 g from the floor between them.

    Returns:
        Height of the load [m] and tension of the two cables [N], 50 times a second.
    """
    below = (0.0, 0.0, -0.01)  # where the cable is attached, from the centre of mass
    payload = SlungLoad(0.008, length=0.8, stiffness=200.0, damping=0.5, attachment=below)
    sim = Sim(n_drones=2, control="state", payload=payload)
    command = np.zeros((1, 2, 13))
    command[..., :2] = sim.data.states.pos[..., :2]
    command[..., 2], command[..., 12] = height, 1.0  # height [m], and the heading's quaternion
    heights, tensions = [], []
    for _ in range(round(50 * seconds)):
        sim.state_control(command)
        sim.step(10)
        heights.append(float(sim.data.payload.pos[0, 0, 2]))
        tensions.append(np.array(sim.data.payload.tension[0, :, 0]))
    return np.array(heights), np.array(tensions)


def carried(starts: int) -> Evaluation:
    """Let the policy carry loads to their goals; the distances are those of the loads."""
    return evaluate(load(FILE), READY["carry"].task(), starts, randomizers=OTHERS)


def main() -> None:
    """Print how high the load of two drones is, and how many loads of the policy arrive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=64)
    arguments = parser.parse_args()
    heights, tensions = lifted()
    print(f"two drones hold the load at {heights[-1]:.2f} m, each with {tensions[-1].mean():.3f} N")
    print(carried(arguments.starts))


if __name__ == "__main__":
    main()
