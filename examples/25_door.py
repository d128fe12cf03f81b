"""Push a door open and fly through, over ROS.

Start a simulator, then this program:

    .venv/bin/python -m crazyflow_ros --ros-args -p scene:=door
    .venv/bin/python examples/25_door.py
"""

from __future__ import annotations

import math

import numpy as np

from crazyflow_ros.client import SimulatorClient

RATE = 10  # Hz


def push(simulation: SimulatorClient) -> np.ndarray:
    """Fly through the door, and return x of the drone [m] and the door's angle [rad], (time, 2)."""
    drone, path = simulation.drone(simulation.drones[0]), []
    drone.takeoff(0.6)
    drone.go_to(0.5, -0.15, 0.6)
    drone.start_go_to(2.5, -0.15, 0.6, duration=4.0)
    for _ in range(8 * RATE):
        simulation.sleep(1 / RATE)
        turn = simulation.world.poses()["door"].orientation
        path.append([drone.position[0], 2 * math.atan2(turn.z, turn.w)])
    return np.array(path)


def main() -> None:
    """Fly the first drone of a running simulator."""
    with SimulatorClient() as simulation:
        path = push(simulation)
    wide = np.degrees(np.abs(path[:, 1]).max())
    print(f"the door opened by {wide:.0f} degrees, the drone is {path[-1, 0]:.1f} m from the start")


if __name__ == "__main__":
    main()
