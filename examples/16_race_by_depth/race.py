"""Race through gates that the drones see, in the worlds of an environment.

    .venv/bin/python examples/16_race_by_depth/race.py

The policy sees a depth picture of 48 x 36 pixels and feels velocity, attitude, body rates and its
previous action, and remembers; nobody tells it where a gate is. It was made, with its teacher, by

    .venv/bin/python -m crazyflow_ros.learn race_by_depth
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from crazyflow_ros.envs import EyeErrors, Race
from crazyflow_ros.learn import Evaluation, evaluate
from crazyflow_ros.policy import load
from crazyflow_ros.sim import randomize_inertia, randomize_mass

FILE = Path(__file__).with_name("race_by_depth.policy")
OTHERS: dict[str, Any] = {
    "eye_errors": EyeErrors(shift=0.01, turn=0.05, noise=0.1),
    "randomizers": (randomize_mass(0.1), randomize_inertia(0.2)),
}
"""Cameras that are off their places, depths with more noise than in the training, and other masses
and inertias, of which the training had none."""


def races(starts: int, seconds: float = 25.0, *, others: bool = False) -> Evaluation:
    """Fly a lap from random starts; with `others`, of drones that differ from those of training."""
    return evaluate(load(FILE), Race(), starts, seconds, **(OTHERS if others else {}))


def main() -> None:
    """Print how many drones come through all gates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=32)
    parser.add_argument("--others", action="store_true", help="drones unlike those of the training")
    arguments = parser.parse_args()
    print(races(arguments.starts, others=arguments.others))


if __name__ == "__main__":
    main()
