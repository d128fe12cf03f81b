"""`ground_effect`, judged by flights of Neural-Swarm: single Crazyflies close to the floor.

python -m benchmark.ground_effect neural-swarm/data/training

The folder is that of `benchmark.downwash`. What the thrust of the motors, calibrated higher up,
lacks of what the accelerometer says is the share that the ground adds. No figure is fitted.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from benchmark.downwash import DRONE, MASS, calibrated, drone_of, read_columns, times_of
from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.checks.program_end import quiet_if_unread
from crazyflow_ros.dynamics.components import BodyState, split
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.dynamics.forces.aerodynamics import ground_effect
from crazyflow_ros.reality.report import markdown

# m, height that the logs state for a drone that stands: the markers are above its middle.
_STANDS = 0.053
_HIGH = 0.3  # m, above which motors are calibrated
_SLOW = 0.3  # m/s, up to which vertical motion counts as hovering
_HEIGHTS = (0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2)  # m
_SPEED = 16_000.0  # RPM; the share does not depend on it


def gains(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return heights of the centre of mass [m], and the share of thrust that the ground adds.

    Raises:
        ValueError: There is no such flight, or a log is damaged.
    """
    heights, shares = [], []
    for path in sorted(folder.rglob("randomwalk_s_[0-9]/cf[0-9]*_[0-9]*")):
        if path.suffix:
            continue
        log = read_columns(path)
        drone = drone_of(log, times_of([log]))
        height = drone.pos[:, 2] - _STANDS + rest_height(DRONE)
        thrust = calibrated(drone, height > _HIGH)
        hovers = np.abs(np.gradient(height, 0.01)) < _SLOW
        heights.append(height[hovers])
        shares.append((MASS * drone.specific_force / thrust - 1)[hovers])
    if not heights:
        raise ValueError(f"there are no flights of Neural-Swarm in {shown_path(folder)}")
    return np.concatenate(heights), np.concatenate(shares)


def simulated(heights: np.ndarray) -> np.ndarray:
    """Return the share that `ground_effect` adds at heights of the centre of mass [m]."""
    n = len(heights)
    pos = np.stack([0 * heights, 0 * heights, heights], axis=-1)
    arrays = pos, np.tile([0, 0, 0, 1.0], (n, 1)), 0 * pos, 0 * pos, np.full((n, 4), _SPEED)
    state = BodyState(*(split(jnp.asarray(a)) for a in arrays))  # type: ignore[arg-type]
    params = Params.create(DRONE)
    thrust = sum(params.rotor_thrust(state))
    return np.asarray(ground_effect(DRONE)(state, params).force[2] / thrust)


def main() -> int:
    """Print the table."""
    if len(sys.argv) != 2:
        print("usage: python -m benchmark.ground_effect FOLDER", file=sys.stderr)
        return 1
    try:
        heights, shares = gains(Path(sys.argv[1]))
    except (ValueError, OSError) as error:
        print(f"ground_effect: {error}", file=sys.stderr)
        return 1
    ours, rows = simulated(heights), []
    for low, high in pairwise(_HEIGHTS):
        here = (low <= heights) & (heights < high)
        medians = (f"{100 * np.median(values[here]):.1f}" for values in (shares, ours))
        rows.append([f"{100 * low:g} to {100 * high:g} cm", str(here.sum()), *medians])
    print("medians of the thrust that the ground adds [%], by height of the centre of mass")
    print(markdown(["height", "samples", "real", "simulated"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
