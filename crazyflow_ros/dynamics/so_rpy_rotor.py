"""`so_rpy` with a first-order lag of the thrust.

All four elements of `rotor_vel` hold the thrust [N], and the first one is used, as in Crazyflow
0.4 (https://arxiv.org/abs/2606.01478).
"""

from __future__ import annotations

from typing import Any

from jax import Array

from crazyflow_ros.dynamics import so_rpy
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, PerRotor, Wrench
from crazyflow_ros.dynamics.rigid_body import RigidBody

__all__ = ["Params"]


class Params(so_rpy.Params):
    """Parameters of the model."""

    ROTOR_STATES = 1

    thrust_dyn_coef: Array
    """(1,) 1/s, inverse of the thrust's time constant."""

    @classmethod
    def figures(cls, drone: str) -> dict[str, Any]:
        """Load the parameters of a drone as NumPy arrays in double precision."""
        return RigidBody.figures(drone) | so_rpy.fitted(drone, "so_rpy_rotor")

    def derivative(self, state: BodyState, command: PerRotor, external: Wrench) -> BodyDerivative:
        """See `derivative` below."""
        return derivative(state, command, external, self)

    def rotor_thrust(self, state: BodyState) -> PerRotor:
        """Return a quarter of the thrust for each rotor, N."""
        share = (self.acc_coef[..., 0] + self.cmd_f_coef[..., 0] * state.rotor_vel[0]) / 4
        return (share, share, share, share)


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
    rate = params.thrust_dyn_coef[..., 0]
    a, b, c, d = (rate * (command[3] - thrust) for thrust in state.rotor_vel)
    thrust = state.rotor_vel[0]
    return so_rpy.body_derivative(state, command, thrust, (a, b, c, d), external, params)
