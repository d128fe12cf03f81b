"""Writes the files that RViz and robot_state_publisher need to show drones, for the launch files.

rviz_files '{"folder": "/a/folder", "drones": ["cf0"], "drone_model": "cf2x_L250", ...}'
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.sensors.rviz_config import expand
from crazyflow_ros.ros.sensors.sensors_file import load


def write(
    folder: str,
    drones: Sequence[str],
    drone_model: str,
    sensors_file: str,
    namespace: str,
    fixed_frame: str,
    simulator: str,
) -> None:
    """Write `crazyflow.rviz`, and `<drone>.urdf` for each drone.

    Args:
        folder: The folder to write to.
        drones: Names of the drones.
        drone_model: Their model.
        sensors_file: The file of the parameter `sensors`, or an empty string.
        namespace: Namespace of the simulator.
        fixed_frame: The frame of the world.
        simulator: Name of the simulator's node.

    Raises:
        ValueError: The model or the sensors file is refused.
    """
    sensors = load(sensors_file, drones, drone_model)
    template = resource("rviz", "crazyflow.rviz").read_text()
    template = template.replace("Fixed Frame: map", f"Fixed Frame: {fixed_frame}")
    config = expand(template, drones, namespace, sensors, simulator)
    Path(folder, "crazyflow.rviz").write_text(config)
    for drone in drones:
        Path(folder, f"{drone}.urdf").write_text(urdf(drone_model, drone))


def main() -> None:
    """Run the program, see above."""
    try:
        write(**json.loads(sys.argv[1]))
    except (ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
