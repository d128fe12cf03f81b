"""Multirotor dynamics in JAX: models, forces and obstacles.

A force is a function of `BodyState` and `RigidBody` that returns a `Wrench`. The parameters of a
model are the class `Params` in the module of its name, such as `dynamics.first_principles`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import pi
from typing import TYPE_CHECKING

from crazyflow_ros.checks.enum_members import OpenEnum
from crazyflow_ros.drones import AnyDrone, model_name, rotors_of
from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, Wrench
    from crazyflow_ros.dynamics.forces.aerodynamics import downwash, ground_effect
    from crazyflow_ros.dynamics.forces.collisions import drone_contact, obstacle_contact
    from crazyflow_ros.dynamics.forces.external import DroneContact, DroneForce, Force
    from crazyflow_ros.dynamics.forces.floor import floor_contact
    from crazyflow_ros.dynamics.obstacles import Obstacles
    from crazyflow_ros.dynamics.rigid_body import RigidBody
    from crazyflow_ros.dynamics.slung_load import SlungLoad

__all__ = [
    "RPM",
    "BodyDerivative",
    "BodyState",
    "DroneContact",
    "DroneForce",
    "Dynamics",
    "Force",
    "Obstacles",
    "RigidBody",
    "SlungLoad",
    "Wrench",
    "check_rotors",
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
        "Force": "forces.external",
        "Obstacles": "obstacles",
        "RigidBody": "rigid_body",
        "SlungLoad": "slung_load",
        "Wrench": "components",
        "downwash": "forces.aerodynamics",
        "drone_contact": "forces.collisions",
        "floor_contact": "forces.floor",
        "ground_effect": "forces.aerodynamics",
        "obstacle_contact": "forces.collisions",
    },
)


RPM = 2 * pi / 60
"""One revolution per minute [rad/s]."""


class Dynamics(OpenEnum):
    """Dynamics model: the class of its parameters, see `RigidBody`."""

    first_principles = "first_principles"
    """Rigid body with measured thrust, torque, drag and rotor curves."""
    so_rpy = "so_rpy"
    """Fitted response of roll, pitch and yaw to attitude commands; thrust follows at once."""
    so_rpy_rotor = "so_rpy_rotor"
    """`so_rpy` with a lag of the thrust."""
    so_rpy_rotor_drag = "so_rpy_rotor_drag"
    """`so_rpy_rotor` with air drag."""
    default = "first_principles"

    @classmethod
    def group(cls) -> str:
        """See `OpenEnum`."""
        return "crazyflow_ros.dynamics"

    @property
    def has_rotors(self) -> bool:
        """Whether the model follows rotor speeds. The fitted ones follow attitude and thrust."""
        if self.is_own:
            return self is Dynamics.first_principles
        return self.params.ROTOR_STATES == 4

    @property
    def feels_wind(self) -> bool:
        """Whether the model has air drag."""
        if self.is_own:
            return self in (Dynamics.first_principles, Dynamics.so_rpy_rotor_drag)
        return "wind" in self.params.__dataclass_fields__

    @property
    def params(self) -> type[RigidBody]:
        """Class of the model's parameters.

        Raises:
            ValueError: The class cannot be imported, or is no subclass of `RigidBody`.
        """
        from crazyflow_ros.dynamics.rigid_body import RigidBody  # with JAX

        def is_model(params: object) -> bool:
            return isinstance(params, type) and issubclass(params, RigidBody)

        params: type[RigidBody] = self.load("a subclass of RigidBody", is_model)
        return params


def check_rotors(dynamics: Dynamics, drone: AnyDrone | Sequence[AnyDrone]) -> None:
    """Check that a model can describe the rotors of a drone, or of the drones of a world.

    Raises:
        ValueError: It describes quadrotors only, or the drones differ in their rotors.
    """
    rotors = rotors_of(drone)
    if not rotors.has_tables or dynamics is Dynamics.first_principles:
        return
    from crazyflow_ros.dynamics.first_principles import Params

    if not issubclass(dynamics.params, Params):
        first = drone if isinstance(drone, str | os.PathLike) else drone[0]
        raise ValueError(
            f"dynamics={dynamics} describes quadrotors, but {model_name(str(first))} has tables of "
            f"its {len(rotors)} rotors; fly it with dynamics=first_principles"
        )


MODULES = (
    "components",
    "first_principles",
    "forces",
    "rigid_body",
    "so_rpy",
    "so_rpy_rotor",
    "so_rpy_rotor_drag",
)
"""Modules that extensions may import, with all their public names."""
