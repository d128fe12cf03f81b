"""Fly through two gates that give way, and hit the second one, over ROS.

Start a simulator, then this program:

    .venv/bin/python -m crazyflow_ros --ros-args -p scene:=gates_to_hit
    .venv/bin/python examples/27_gates.py
"""

from __future__ import annotations

import math

import numpy as np

from crazyflow_ros.client import SimulatorClient

RATE = 20  # Hz


def fly_through(simulation: SimulatorClient, height: float = 0.68) -> np.ndarray:
    """Fly through the first gate, then into the lower bar of the second one at a height [m].

    Returns:
        (time, 2) x of the drone [m], and by how much the second gate has swung [rad].
    """
    drone, path = simulation.drone(simulation.drones[0]), []
    drone.takeoff(1.0)
    drone.go_to(2.3, 0.0, 1.0)
    drone.go_to(2.5, 0.0, height)
    drone.start_go_to(3.6, 0.0, height, duration=2.0)
    for _ in range(6 * RATE):
        simulation.sleep(1 / RATE)
        turn = simulation.world.poses()["swinging"].orientation
        path.append([drone.position[0], 2 * math.atan2(turn.y, turn.w)])
    return np.array(path)


def main() -> None:
    """Fly the first drone of a running simulator."""
    with SimulatorClient() as simulation:
        path = fly_through(simulation)
        poses = simulation.world.poses()
    wide = np.degrees(np.abs(path[:, 1]).max())
    stands = "stands" if poses["standing"].position.z > 0.9 else "has fallen over"
    print(f"the first gate {stands}, the second one has swung by {wide:.0f} degrees")


if __name__ == "__main__":
    main()
