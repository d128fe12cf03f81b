"""Recover from throws by what the drones see, in the worlds of an environment.

    .venv/bin/python examples/17_recovery_by_depth/recovery.py

The policy sees a depth picture of 48 x 36 pixels, 50 times a second. It feels attitude and body
rates, as a Crazyflie knows them by its gyroscope and accelerometer, and its previous action. Nobody
tells it its velocity or place. It was made, with its teacher, by

    .venv/bin/python -m crazyflow_ros.learn recovery_by_depth
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from crazyflow_ros.envs import EyeErrors
from crazyflow_ros.learn import READY, Evaluation, evaluate
from crazyflow_ros.policy import load
from crazyflow_ros.sim import randomize_inertia, randomize_mass

FILE = Path(__file__).with_name("recovery_by_depth.policy")
OTHERS: dict[str, Any] = {
    "eye_errors": EyeErrors(shift=0.01, turn=0.05, noise=0.1),
    "randomizers": (randomize_mass(0.1), randomize_inertia(0.2)),
}
"""Cameras that are off their places, depths with more noise than in the training, and other masses
and inertias, of which the training had none."""


def throws(starts: int, seconds: float = 5.0, *, others: bool = False) -> Evaluation:
    """Throw drones at random; with `others`, such that differ from those of the training."""
    task = READY["recovery_by_depth"].task()
    return evaluate(load(FILE), task, starts, seconds, **(OTHERS if others else {}))


def main() -> None:
    """Print how many drones recover."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=64)
    parser.add_argument("--others", action="store_true", help="drones unlike those of the training")
    arguments = parser.parse_args()
    print(throws(arguments.starts, others=arguments.others))


if __name__ == "__main__":
    main()
