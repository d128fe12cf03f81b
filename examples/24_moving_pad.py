"""Land on a pad that moves, over ROS.

Start a simulator, then this program:

    .venv/bin/python -m crazyflow_ros --ros-args -p scene:=moving_pad
    .venv/bin/python examples/24_moving_pad.py
"""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import PoseStamped

from crazyflow_ros.client import SimulatorClient

RATE, SINK = 20, 0.15  # Hz, m/s
DECK, FEET = 0.05, 0.014  # m, of the pad's top and of the drone, above and below their origins


def land(simulation: SimulatorClient, seconds: float = 20.0) -> np.ndarray:
    """Follow the pad, sink onto it, and return both paths (time, drone and pad, 3) [m]."""
    drone, path, height = simulation.drone(simulation.drones[0]), [], 0.8
    goals = simulation.node.create_publisher(PoseStamped, f"{drone.name}/cmd_pose", 1)
    drone.takeoff(1.0)
    for _ in range(round(seconds * RATE)):
        pos = simulation.world.poses()["pad"].position
        pad, here = np.array([pos.x, pos.y, pos.z]), drone.position
        path.append([here, pad])
        if here[2] < pad[2] + DECK + FEET + 0.03:
            break
        if np.linalg.norm((here - pad)[:2]) < 0.2:
            height -= SINK / RATE
        goal = PoseStamped()
        goal.pose.position.x, goal.pose.position.y = pos.x, pos.y
        goal.pose.position.z = pos.z + height
        goals.publish(goal)
        goals.wait_for_all_acked()
        simulation.sleep(1 / RATE)
    drone.arm(False)
    for _ in range(5 * RATE):
        simulation.sleep(1 / RATE)
        pos = simulation.world.poses()["pad"].position
        path.append([drone.position, np.array([pos.x, pos.y, pos.z])])
    return np.array(path)


def main() -> None:
    """Fly the first drone of a running simulator."""
    with SimulatorClient() as simulation:
        drone, pad = land(simulation)[-1]
    print(f"the drone stands {np.linalg.norm((drone - pad)[:2]):.2f} m from the pad's centre")


if __name__ == "__main__":
    main()
