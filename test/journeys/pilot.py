"""A stand-in for ros2_control's manager: a process that holds a drone at a height, in lock-step."""

from __future__ import annotations

import importlib.util
import time

import numpy as np
from paths import ROOT
from python_controller import PythonController

from crazyflow_ros.runtime import Level

_LOOK = 2e-4  # s of wall time


def fly(name: str, drone: str, height: float) -> None:
    """Fly a drone of a simulator until it is gone.

    Args:
        name: Of the shared memory.
        drone: The drone.
        height: To hold [m].
    """
    path = ROOT / "examples" / "13_door" / "udp_pilot.py"
    spec = importlib.util.spec_from_file_location("udp_pilot", path)
    assert spec is not None and spec.loader is not None
    pilot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pilot)
    controller = PythonController(name, drone)
    names = [found.decode() for found in controller.view["drones"]["name"]]
    row, before, start = names.index(drone), (0, 0), None
    while True:
        stamp = controller.stamp
        if stamp == before:
            time.sleep(_LOOK)
            continue
        before, state = stamp, controller.drones[row]
        accelerations, rates = np.zeros(3), state["angular_velocity"]
        reading = [
            *rates,
            *accelerations,
            *state["position"],
            *state["orientation"],
            *state["velocity"],
        ]
        start = start or (reading[6], reading[7])
        speeds = pilot.rotor_speeds(reading, start, height)
        controller.post((Level.rotor_velocity, speeds), stamp=stamp)
