"""Quadrotor dynamics in JAX: models, forces and obstacles.

A force is a function of `BodyState` and `RigidBody` that returns a `Wrench`. The parameters of a
model are the class `Params` in the module of its name, such as `dynamics.first_principles`.
"""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, Wrench
    from crazyflow_ros.dynamics.forces.aerodynamics import downwash, ground_effect
    from crazyflow_ros.dynamics.forces.collisions import drone_contact, obstacle_contact
    from crazyflow_ros.dynamics.forces.external import DroneContact, DroneForce
    from crazyflow_ros.dynamics.forces.floor import floor_contact
    from crazyflow_ros.dynamics.obstacles import Obstacles
    from crazyflow_ros.dynamics.rigid_body import RigidBody

__all__ = [
    "BodyDerivative",
    "BodyState",
    "DroneContact",
    "DroneForce",
    "Dynamics",
    "Obstacles",
    "RigidBody",
    "Wrench",
    "downwash",
    "drone_contact",
    "floor_contact",
    "ground_effect",
    "obstacle_contact",
]

__getattr__ = lazy(
    __name__,
    {
        "BodyDerivative": "components",
        "BodyState": "components",
        "DroneContact": "forces.external",
        "DroneForce": "forces.external",
        "Obstacles": "obstacles",
        "RigidBody": "rigid_body",
        "Wrench": "components",
        "downwash": "forces.aerodynamics",
        "drone_contact": "forces.collisions",
        "floor_contact": "forces.floor",
        "ground_effect": "forces.aerodynamics",
        "obstacle_contact": "forces.collisions",
    },
)


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
