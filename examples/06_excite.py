"""Fly with changing commands, to record a flight from which a drone's models are identified.

Start a simulator that records and whose drones take attitude commands, then this program:

    .venv/bin/python -m crazyflow_ros --ros-args -p control:=attitude -p record:=flight.mcap
    .venv/bin/python examples/06_excite.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.spatial.transform import Rotation
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.control import GRAVITY, attitude_command
from crazyflow_ros.drones import load_drone

RATE = 100  # Hz, of the commands
HOME = np.array([0.0, 0.0, 3.0])  # m
STIFFNESS, DAMPING = 1.0, 1.2  # 1/s^2, 1/s: weak, so that the changes below prevail
HOLD = 0.1, 0.6  # s, for which a change lasts
CHANGES = [0.25, 0.25, 0.2, 0.2]  # largest ones: of roll, pitch, yaw [rad], thrust over weight


def fly(simulation: SimulatorClient, name: str, drone: str, seconds: float) -> None:
    """Fly about `HOME` with random changes of the commands.

    Args:
        simulation: Connection to the simulator, which steps.
        name: Name of the drone in the simulation.
        drone: Its kind.
        seconds: Duration of the flight.
    """
    flown, rng = simulation.drone(name), np.random.default_rng(0)
    mass = load_drone(drone)["mass"]
    commands = simulation.node.create_publisher(Float64MultiArray, f"{name}/command", 1)
    while not commands.get_subscription_count():
        time.sleep(0.01)
    until, change = 0, np.zeros(4)
    for tick in range(round(seconds * RATE)):
        if tick >= until:
            until = tick + round(rng.uniform(*HOLD) * RATE)
            change = rng.uniform(-1, 1, 4) * CHANGES
        q = flown.odometry.pose.pose.orientation
        quat = [q.x, q.y, q.z, q.w]
        vel = Rotation.from_quat(quat).apply(flown.velocity)
        acc = STIFFNESS * np.clip(HOME - flown.position, -2, 2) - DAMPING * vel
        thrust, *rpy = attitude_command(acc, 0.0, quat, mass)
        lift = max(thrust / (mass * GRAVITY) + change[3], 0.5)
        tilt = np.clip(rpy, -0.3, 0.3) + change[:3]
        commands.publish(Float64MultiArray(data=[*tilt, lift * mass * GRAVITY]))
        simulation.sleep(1 / RATE)


def main() -> None:
    """Fly the first drone of a running simulator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drone", default="cf2x_L250", help="the simulator's drone_model")
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    with SimulatorClient(stepping=True) as simulation:
        fly(simulation, simulation.drones[0], arguments.drone, arguments.seconds)


if __name__ == "__main__":
    main()
