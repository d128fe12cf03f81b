"""`so_rpy_rotor` with air drag, linear in the velocity.

As in Crazyflow 0.4 (https://arxiv.org/abs/2606.01478).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import Array

from crazyflow_ros.dynamics import so_rpy, so_rpy_rotor
from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    PerRotor,
    Wrench,
    add,
    drag_force,
    subtract,
    vector,
)
from crazyflow_ros.dynamics.rigid_body import RigidBody

__all__ = ["Params"]


class Params(so_rpy_rotor.Params):
    """Parameters of the model."""

    drag_matrix: Array
    """(3, 3) N/(m/s), body frame."""
    wind: Array
    """(3,) m/s, velocity of the air, world frame."""

    @classmethod
    def figures(cls, drone: str) -> dict[str, Any]:
        """Load the parameters of a drone as NumPy arrays in double precision."""
        fitted = so_rpy.fitted(drone, "so_rpy_rotor_drag")
        return RigidBody.figures(drone) | fitted | {"wind": np.zeros(3)}

    def derivative(self, state: BodyState, command: PerRotor, external: Wrench) -> BodyDerivative:
        """See `derivative` below."""
        return derivative(state, command, external, self)


def derivative(
    state: BodyState, command: PerRotor, external: Wrench, params: Params
) -> BodyDerivative:
    """Return the time derivative of the state.

    Args:
        state: State of the drones.
        command: Roll, pitch, yaw [rad], collective thrust [N].
        external: Wrench on the centre of mass, world frame.
        params: Parameters of the drones.
    """
    airspeed = subtract(state.vel, vector(params.wind))
    drag = drag_force(state.quat, airspeed, params.drag_matrix)
    with_drag = Wrench(add(external.force, drag), external.torque)
    return so_rpy_rotor.derivative(state, command, with_drag, params)
