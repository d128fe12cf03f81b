"""Where the demonstration flies: on a floor, or in the room if somebody watches."""

from __future__ import annotations

from crazyflow_ros.demo.arguments import Arguments
from crazyflow_ros.drones import load_drone

ROOM = "room"
ROOM_PADS = ((1.6, 0.9), (-1.9, 0.7), (1.35, -0.75), (-0.3, -1.3))
"""Places in the room above which there is space for a figure-eight [m], one for each drone."""


def place_parameters(arguments: Arguments) -> dict[str, str]:
    """Return the parameters of the node that say in which scene the drones stand, and where."""
    fits = arguments.n_drones <= len(ROOM_PADS)
    scene = arguments.scene or (ROOM if arguments.view and fits else "")
    if not scene:
        return {}
    parameters = {"scene": scene}
    if scene == ROOM and fits:
        height = -float(load_drone(arguments.drone_model)["geometry"]["foot_z"])
        pads = ROOM_PADS[: arguments.n_drones]
        numbers = [f"{number:.4f}" for x, y in pads for number in (x, y, height)]
        parameters["initial_poses"] = f"[{', '.join(numbers)}]"
    return parameters
