"""Quadrotor dynamics in JAX: models and drone parameters."""

from enum import StrEnum

from crazyflow_ros.dynamics.parameters import Drone, load_drone


class Dynamics(StrEnum):
    """Dynamics model."""

    first_principles = "first_principles"
    """Rigid body with measured thrust, torque, drag and rotor curves."""
    default = "first_principles"


__all__ = ["Drone", "Dynamics", "load_drone"]
