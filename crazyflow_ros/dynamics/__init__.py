"""Quadrotor dynamics in JAX: models and the figures of drones."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING

from crazyflow_ros.drones import DEFAULT_DRONE, Drone, load_drone

if TYPE_CHECKING:
    from crazyflow_ros.dynamics.rigid_body import RigidBody


class Dynamics(StrEnum):
    """Dynamics model, each in the module of its name."""

    first_principles = "first_principles"
    """Rigid body with measured thrust, torque, drag and rotor curves."""
    so_rpy = "so_rpy"
    """Fitted response of roll, pitch and yaw to attitude commands; thrust follows at once."""
    so_rpy_rotor = "so_rpy_rotor"
    """`so_rpy` with a lag of the thrust."""
    so_rpy_rotor_drag = "so_rpy_rotor_drag"
    """`so_rpy_rotor` with air drag."""
    default = "first_principles"

    @property
    def has_rotors(self) -> bool:
        """Whether the model follows rotor speeds. The fitted ones follow attitude and thrust."""
        return self is Dynamics.first_principles

    @property
    def params(self) -> type[RigidBody]:
        """Class of the model's parameters."""
        params: type[RigidBody] = import_module(f"{__name__}.{self.value}").Params
        return params


__all__ = ["DEFAULT_DRONE", "Drone", "Dynamics", "load_drone"]
