"""Pick up a box with a magnet, and drop it elsewhere, over ROS.

Start a simulator, then this program:

    .venv/bin/python -m crazyflow_ros
    .venv/bin/python examples/23_magnet.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from crazyflow_ros.client import SimulatorClient

BOX = """<mujoco model="box"><worldbody>
<body name="box"><freejoint/>
<geom type="box" size="0.03 0.03 0.01" mass="0.003" rgba="0.8 0.3 0.2 1"/></body>
</worldbody></mujoco>"""
FROM, TO = (0.5, 0.5), (-0.5, 0.5)  # m


def box_at(simulation: SimulatorClient) -> np.ndarray:
    """Position of the box [m]."""
    pos = simulation.world.poses()["box"].position
    return np.array([pos.x, pos.y, pos.z])


def carry(simulation: SimulatorClient) -> list[np.ndarray]:
    """Carry the box, and return its positions, one after each part of the flight."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "box.xml"
        file.write_text(BOX)
        simulation.world.spawn("box", *FROM, 0.01, model=str(file))
    drone, places = simulation.drone(simulation.drones[0]), [box_at(simulation)]
    drone.takeoff(0.5)
    drone.go_to(*FROM, 0.5)
    drone.go_to(*FROM, 0.1)
    print(drone.attach("box", reach=0.15))
    drone.go_to(*FROM, 0.6)
    places.append(box_at(simulation))
    drone.go_to(*TO, 0.6)
    places.append(box_at(simulation))
    print(drone.detach())
    simulation.sleep(1.0)
    places.append(box_at(simulation))
    drone.land()
    return places


def main() -> None:
    """Fly the first drone of a running simulator."""
    with SimulatorClient() as simulation:
        for place in carry(simulation):
            print(f"the box is at {place.round(2)}")


if __name__ == "__main__":
    main()
