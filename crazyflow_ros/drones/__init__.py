"""Drones as data: one folder each, with figures (`drone.toml`) and a drawing (MJCF)."""

from crazyflow_ros.drones.figures import (
    check_quadrotor,
    drawing_of,
    has_battery,
    has_controller,
    load_battery,
    load_controller,
    load_drone,
    load_mellinger,
    load_model,
    rotors_of,
)
from crazyflow_ros.drones.folders import DEFAULT_DRONE, AnyDrone, Drone, model_name, resolve

__all__ = [
    "DEFAULT_DRONE",
    "AnyDrone",
    "Drone",
    "check_quadrotor",
    "drawing_of",
    "has_battery",
    "has_controller",
    "load_battery",
    "load_controller",
    "load_drone",
    "load_mellinger",
    "load_model",
    "model_name",
    "resolve",
    "rotors_of",
]

MODULES = ("figures", "folders", "deck_optics", "instruments", "parameter", "rotors", "uncertainty")
"""Modules that extensions may import, with all their public names."""
