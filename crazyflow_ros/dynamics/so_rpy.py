"""Fitted second-order attitude dynamics, driven by roll, pitch, yaw and thrust ("so_rpy").

The model includes the attitude controller of the drone's firmware: roll, pitch and yaw respond to
their commands like spring-damper systems. Thrust responds immediately. As in Crazyflow 0.4
(https://arxiv.org/abs/2606.01478).
"""

from __future__ import annotations

from math import radians, sin
from typing import Any

import numpy as np
from jax import Array

from crazyflow_ros.drones import load_model
from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    PerRotor,
    Vec3,
    Wrench,
    add,
    angle_of,
    rotation_matrix,
    scale,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.components import matrix_rows as rows
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.elementwise import maximum, sqrt, zeros_like
from crazyflow_ros.xla.kernels import apart

__all__ = ["Params"]

# At a pitch of 90 degrees, roll and yaw are undefined and their rates unbounded. Within 1 degree of
# it, the cosine of the pitch is kept constant.
_LEAST_COS_PITCH = sin(radians(1))


class Params(RigidBody):
    """Parameters of the model."""

    ROTOR_STATES = 0

    acc_coef: Array
    """(1,) N, offset of the thrust."""
    cmd_f_coef: Array
    """(1,) ratio of thrust to commanded thrust."""
    rpy_coef: Array
    """(3,) 1/s^2, stiffness of roll, pitch and yaw."""
    rpy_rates_coef: Array
    """(3,) 1/s, damping of roll, pitch and yaw."""
    cmd_rpy_coef: Array
    """(3,) 1/s^2, gain of the command."""
    thrust_limits: Array
    """(2,) N, minimum and maximum commanded collective thrust; zero is also allowed."""

    @classmethod
    def figures(cls, drone: str) -> dict[str, Any]:
        """Load the parameters of a drone as NumPy arrays in double precision."""
        return RigidBody.figures(drone) | fitted(drone, "so_rpy")

    def derivative(self, state: BodyState, command: PerRotor, external: Wrench) -> BodyDerivative:
        """See `derivative` below."""
        return derivative(state, command, external, self)

    def settled_rotors(self, command: PerRotor) -> PerRotor:
        """Return the commanded thrust [N] four times."""
        return (command[3],) * 4

    @property
    def hover_thrust(self) -> Array:
        """(..., 1) N, commanded collective thrust with which a level drone keeps its altitude."""
        return (super().hover_thrust - self.acc_coef) / self.cmd_f_coef


def fitted(drone: str, model: str) -> dict[str, Any]:
    """Load the fitted parameters of a drone, including those of `Params`."""
    p = load_model(drone, model)
    limits = [4 * p.pop("thrust_min"), 4 * p.pop("thrust_max")]
    return p | {"thrust_limits": np.array(limits)}


def derivative(
    state: BodyState, command: PerRotor, external: Wrench, params: Params
) -> BodyDerivative:
    """Return the time derivative of the state; that of the rotors is zero.

    Args:
        state: State of the drones.
        command: Roll, pitch, yaw [rad], collective thrust [N].
        external: Wrench on the centre of mass, world frame.
        params: Parameters of the drones.
    """
    zero = zeros_like(command[3])
    return body_derivative(state, command, command[3], (zero,) * 4, external, params)


def body_derivative(
    state: BodyState,
    command: PerRotor,
    thrust: Array,
    thrust_rate: PerRotor,
    external: Wrench,
    params: Params,
) -> BodyDerivative:
    """Return the time derivative of the state with a given thrust.

    Args:
        state: State of the drones.
        command: Roll, pitch, yaw [rad]; the fourth is not used.
        thrust: Collective thrust, N.
        thrust_rate: Derivative of `state.rotor_vel`.
        external: Wrench on the centre of mass, world frame.
        params: Parameters of the drones.
    """
    R = rotation_matrix(state.quat)
    lift = params.acc_coef[..., 0] + params.cmd_f_coef[..., 0] * thrust
    force = add(scale((R[0][2], R[1][2], R[2][2]), lift), external.force)
    acc = add(scale(force, 1 / params.mass[..., 0]), vector(params.gravity_vec))
    torque = transform(transpose(R), external.torque)
    ang_acc = add(
        _angular_acceleration(state, command, params), transform(rows(params.J_inv), torque)
    )
    return BodyDerivative(
        vel=state.vel, ang_vel=state.ang_vel, acc=acc, ang_acc=ang_acc, rotor_acc=thrust_rate
    )


def rpy_acceleration(rpy: Vec3, rates: Vec3, command: PerRotor, params: Params) -> Vec3:
    """Return the second derivative of roll, pitch and yaw, rad/s^2.

    Args:
        rpy: Roll, pitch, yaw, rad.
        rates: Derivatives of roll, pitch, yaw, rad/s.
        command: Commanded roll, pitch, yaw, rad; the fourth number is not used.
        params: Parameters of the drones.
    """
    roll_acc, pitch_acc, yaw_acc = (
        stiffness * angle + damping * rate + answer * wanted
        for stiffness, angle, damping, rate, answer, wanted in zip(
            vector(params.rpy_coef),
            rpy,
            vector(params.rpy_rates_coef),
            rates,
            vector(params.cmd_rpy_coef),
            command,
        )
    )
    return roll_acc, pitch_acc, yaw_acc


def _angular_acceleration(state: BodyState, command: PerRotor, params: Params) -> Vec3:
    """Return the body's angular acceleration in its frame, from those of roll, pitch and yaw."""
    (xx, _, _), (yx, _, _), (zx, zy, zz) = rotation_matrix(state.quat)
    p, q, r = state.ang_vel
    cos_pitch = sqrt(maximum(zy * zy + zz * zz, _LEAST_COS_PITCH**2))
    sin_pitch, sin_roll, cos_roll = -zx, zy / cos_pitch, zz / cos_pitch
    points = ((zy, zz), (-zx, cos_pitch), (yx, xx))
    angles = apart(lambda points: [angle_of(y, x) for y, x in points], points)

    yaw_rate = (sin_roll * q + cos_roll * r) / cos_pitch
    pitch_rate = cos_roll * q - sin_roll * r
    roll_rate = p + yaw_rate * sin_pitch
    roll_acc, pitch_acc, yaw_acc = rpy_acceleration(
        (angles[0], angles[1], angles[2]), (roll_rate, pitch_rate, yaw_rate), command, params
    )
    # The derivative of: body rates = W(roll, pitch) * (roll rate, pitch rate, yaw rate).
    along, across = roll_rate * cos_pitch * yaw_rate, sin_pitch * pitch_rate * yaw_rate
    swing = roll_rate * pitch_rate
    return (
        roll_acc - sin_pitch * yaw_acc - cos_pitch * pitch_rate * yaw_rate,
        cos_roll * pitch_acc + sin_roll * (cos_pitch * yaw_acc - swing - across) + cos_roll * along,
        -sin_roll * pitch_acc
        + cos_roll * (cos_pitch * yaw_acc - swing - across)
        - sin_roll * along,
    )
