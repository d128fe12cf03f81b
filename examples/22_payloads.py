"""Carry a load on cables to and fro, over ROS.

Start a simulator with the world slung_load, elastic_load or carried_bar, then this program:

    .venv/bin/python -m crazyflow_ros --ros-args -p scene:=carried_bar -p drones:=[cf0,cf1]
    .venv/bin/python examples/22_payloads.py bar

It prints how far the load swings.
"""

from __future__ import annotations

import argparse

import numpy as np

from crazyflow_ros.client import SimulatorClient

RATE = 10  # Hz
DISTANCE, SECONDS = 1.0, 3.0  # m, s to each side


def fly(simulation: SimulatorClient, load: str) -> np.ndarray:
    """Fly with all drones, and return the paths (time, drones and load, 3) [m]."""
    drones = [simulation.drone(name) for name in simulation.drones]
    path: list[list[np.ndarray]] = []

    def watch(seconds: float) -> None:
        for _ in range(round(seconds * RATE)):
            simulation.sleep(1 / RATE)
            pos = simulation.world.poses()[load].position
            path.append([*(drone.position for drone in drones), np.array([pos.x, pos.y, pos.z])])

    places = [drone.position for drone in drones]
    for drone in drones:
        drone.start_takeoff(1.0)
    watch(4.0)
    for y in (DISTANCE, 0.0):
        for drone, place in zip(drones, places):
            drone.start_go_to(place[0], place[1] + y, 1.0, duration=SECONDS)
        watch(SECONDS + 1.0)
    for drone in drones:
        drone.start_landing()
    watch(4.0)
    return np.array(path)


def main() -> None:
    """Fly with all drones of a running simulator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("load", choices=("load", "bar"), help="name of the body")
    arguments = parser.parse_args()
    with SimulatorClient() as simulation:
        path = fly(simulation, arguments.load)
    aside = path[:, -1, 1] - path[:, :-1, 1].mean(axis=1)
    print(f"the {arguments.load} swings up to {np.abs(aside[20:-40]).max():.2f} m")


if __name__ == "__main__":
    main()
