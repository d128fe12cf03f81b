"""Rigid body with measured thrust, torque and rotor curves ("first principles").

Newton-Euler equations with quadratic rotor curves, linear drag and the rotors' gyroscopic and
reaction torque, as in Crazyflow 0.4 (https://arxiv.org/abs/2606.01478), for any number of rotors.
Tilted rotors add what their thrust and torque have beyond those of upright ones.

Drones that have the figures get two more terms, without which flights of real drones cannot be
explained, see docs/reference/reality.md. First, a rotor that moves edgewise through the air tilts
backwards and leaves its wake to the rotors behind, which turns the drone away from its motion (G.
Hoffmann et al., "Quadrotor Helicopter Flight Dynamics and Control", AIAA 2007-6461; R. Mahony, V.
Kumar, P. Corke, "Multirotor Aerial Vehicles", IEEE RAM 2012). Second, no thrust passes exactly
through the centre of mass.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from jax import Array

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    PerRotor,
    Vec3,
    Vec4,
    Wrench,
    add,
    cross,
    matrix_rows,
    rotation_matrix,
    scale,
    split,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.elementwise import where, zeros_like
from crazyflow_ros.xla.kernels import apart

__all__ = ["Params"]


class Params(RigidBody):
    """Parameters of the model.

    Per-rotor parameters have an axis of size 1 if the n rotors share them, and of size n otherwise.
    """

    ROTOR_STATES = 4

    L: Array
    """(1,) or (n,) m, distances of the rotors from the body's x and y axes; units of
    `mixing_matrix`."""
    prop_inertia: Array
    """(1,) or (n,) kg m^2, one rotor about its spin axis."""
    rpm2thrust: Array
    """(1, 3) or (n, 3), thrust in N as a polynomial in RPM."""
    rpm2torque: Array
    """(1, 3) or (n, 3), drag torque in N m as a polynomial in RPM."""
    mixing_matrix: Array
    """(3, n), places y and -x of the rotors in multiples of `L`, and signs of their drag torque
    about z: 1 for a rotor that turns clockwise seen from above."""
    drag_matrix: Array
    """(3, 3) N/(m/s), body frame."""
    wind: Array
    """(3,) m/s, velocity of the air, world frame."""
    rotor_dyn_coef: Array
    """(1, 4) or (n, 4): linear [1/s] and quadratic [1/(RPM s)] coefficients of rise, then of
    fall."""
    rotor_vel_limits: Array
    """(2,) RPM, minimum and maximum command of a turning rotor."""
    rotor_moment: Array | None = field(default=None, kw_only=True)
    """(2,) N m/(m/s), torque with which the air tilts the body back against its motion: in roll by
    the speed along y, in pitch by the speed along x."""
    thrust_offset: Array | None = field(default=None, kw_only=True)
    """(3,) m, torque about each axis of the body for each newton of thrust. The first two are -y
    and x of the centre of mass relative to the rotors' centre; tilted motors cause the last one."""

    rotor_tilt: Array | None = field(default=None, kw_only=True)
    """(n, 3), what unit vectors along the thrust have beyond z; None for upright rotors."""
    rotor_lever: Array | None = field(default=None, kw_only=True)
    """(n, 3) m, what the torque of each newton of thrust has beyond `L` times `mixing_matrix`;
    given together with `rotor_tilt`."""

    OPTIONAL = ("rotor_moment", "thrust_offset")
    """Names of the figures that a drone may lack."""

    @classmethod
    def figures(cls, drone: str) -> dict[str, Any]:
        """Load the parameters of a drone as NumPy arrays in double precision."""
        p = load_drone(drone)
        rotors, tilt = p["rotors"], p["rotors"].tilt()
        of_rotors = ("prop_inertia", "rpm2thrust", "rpm2torque", "rotor_dyn_coef")
        return super().figures(drone) | {
            "L": np.array([p["L"]]),
            **{name: _shared(getattr(rotors, name)) for name in of_rotors},
            "mixing_matrix": p["mixing_matrix"],
            "drag_matrix": p["drag_matrix"],
            "wind": np.zeros(3),
            "rotor_vel_limits": rotors.vel_limits,
            **({} if tilt is None else dict(zip(("rotor_tilt", "rotor_lever"), tilt))),
            **{name: p[name] for name in cls.OPTIONAL if name in p},
        }

    def derivative(self, state: BodyState, command: PerRotor, external: Wrench) -> BodyDerivative:
        """See `derivative` below."""
        return derivative(state, command, external, self)

    def settled_rotors(self, command: PerRotor) -> PerRotor:
        """Return the commanded rotor speeds, RPM."""
        return command

    def rotor_thrust(self, state: BodyState) -> PerRotor:
        """Return the thrust of each rotor, N."""
        return tuple(_thrust(o, i, self) for i, o in enumerate(state.rotor_vel))


def _shared(figures: np.ndarray) -> np.ndarray:
    """Return the figures of all rotors, (n, ...), as one row if they are equal."""
    return figures[:1] if (figures == figures[0]).all() else figures


def rotor_acceleration(rotor_vel: PerRotor, rotor_vel_cmd: PerRotor, coef: Array) -> PerRotor:
    """Return the angular acceleration of the rotors towards their commands.

    Args:
        rotor_vel: Rotor speeds, RPM.
        rotor_vel_cmd: Commanded rotor speeds, RPM.
        coef: (..., 1 or n, 4) coefficients, see `Params.rotor_dyn_coef`.

    Returns:
        RPM/s for each rotor.
    """
    acceleration = []
    for i, (o, cmd) in enumerate(zip(rotor_vel, rotor_vel_cmd)):
        rise, rise2, fall, fall2 = split(coef[..., i % coef.shape[-2], :])
        linear, quadratic = cmd - o, cmd * cmd - o * o
        acceleration.append(
            where(cmd > o, rise * linear + rise2 * quadratic, fall * linear + fall2 * quadratic)
        )
    return tuple(acceleration)


def derivative(
    state: BodyState, rotor_vel_cmd: PerRotor, external: Wrench, params: Params
) -> BodyDerivative:
    """Return the time derivative of the state.

    Args:
        state: State of the drones.
        rotor_vel_cmd: Commanded rotor speeds, RPM.
        external: Wrench on the centre of mass, world frame.
        params: Parameters of the drones.
    """
    rotor_acc, thrust, torque, aside = apart(
        _rotors, state.rotor_vel, rotor_vel_cmd, state.ang_vel, params
    )
    force, torque = apart(_body_wrench, state, thrust, torque, external, params)
    force = force if aside is None else add(force, aside)
    acc, ang_acc = apart(_accelerations, state.quat, force, torque, external.force, params)
    return BodyDerivative(
        vel=state.vel, ang_vel=state.ang_vel, acc=acc, ang_acc=ang_acc, rotor_acc=rotor_acc
    )


def _thrust(rotor_vel: Array, rotor: int, params: Params) -> Array:
    return _curve(params.rpm2thrust, rotor_vel, rotor)


def _curve(curves: Array, rotor_vel: Array, rotor: int) -> Array:
    """Return the value of the polynomial of a rotor, one of `curves` (..., 1 or n, 3)."""
    k0, k1, k2 = split(curves[..., rotor % curves.shape[-2], :])
    return k0 + rotor_vel * (k1 + rotor_vel * k2)


def _rotors(
    rotor_vel: PerRotor, rotor_vel_cmd: PerRotor, ang_vel: Vec3, params: Params
) -> tuple[PerRotor, Array, Vec3, Vec3 | None]:
    """Return the rotors' acceleration, thrust, and torque on the body (body frame).

    The last result is the force beyond the sum of the thrusts along z; None if all are upright.
    """
    rotor_acc = rotor_acceleration(rotor_vel, rotor_vel_cmd, params.rotor_dyn_coef)
    mixing = params.mixing_matrix
    # No +=, which would change NumPy arrays of zeros in place.
    thrust = roll = pitch = yaw = momentum = momentum_rate = zeros_like(ang_vel[0])
    for i, (o, o_dot) in enumerate(zip(rotor_vel, rotor_acc)):
        t0, t1, t2 = split(params.rpm2torque[..., i % params.rpm2torque.shape[-2], :])
        f = _thrust(o, i, params)
        lever = f * params.L[..., i % params.L.shape[-1]]
        spin = mixing[..., 2, i] * params.prop_inertia[..., i % params.prop_inertia.shape[-1]] * RPM
        thrust = thrust + f
        roll = roll + mixing[..., 0, i] * lever
        pitch = pitch + mixing[..., 1, i] * lever
        yaw = yaw + mixing[..., 2, i] * (t0 + o * (t1 + o * t2))
        momentum = momentum + spin * o
        momentum_rate = momentum_rate + spin * o_dot
    # `momentum` is minus the angular momentum h of the rotors (a rotor's drag torque opposes
    # its spin), so the gyroscopic torque -w x h and the reaction -dh/dt are both added here.
    wx, wy, _ = ang_vel
    torque = (roll + wy * momentum, pitch - wx * momentum, yaw + momentum_rate)
    if params.rotor_tilt is None:
        return rotor_acc, thrust, torque, None
    aside, beyond = _tilted(rotor_vel, rotor_acc, ang_vel, params)
    return rotor_acc, thrust, add(torque, beyond), aside


def _tilted(
    rotor_vel: PerRotor, rotor_acc: PerRotor, ang_vel: Vec3, params: Params
) -> tuple[Vec3, Vec3]:
    """Return what force and torque of tilted rotors have beyond those of upright ones."""
    assert params.rotor_tilt is not None and params.rotor_lever is not None
    zero = zeros_like(ang_vel[0])
    force = torque = momentum = (zero, zero, zero)
    for i, (o, o_dot) in enumerate(zip(rotor_vel, rotor_acc)):
        tilt, lever = vector(params.rotor_tilt[..., i, :]), vector(params.rotor_lever[..., i, :])
        sign, f = params.mixing_matrix[..., 2, i], _thrust(o, i, params)
        spin = sign * params.prop_inertia[..., i % params.prop_inertia.shape[-1]] * RPM
        drag = sign * _curve(params.rpm2torque, o, i)
        force = add(force, scale(tilt, f))
        torque = add(torque, add(scale(lever, f), scale(tilt, drag + spin * o_dot)))
        momentum = add(momentum, scale(tilt, spin * o))
    return force, add(torque, cross(ang_vel, momentum))


def _body_wrench(
    state: BodyState, thrust: Array, torque: Vec3, external: Wrench, params: Params
) -> tuple[Vec3, Vec3]:
    """Return the force of rotors and drag, and the torque with the gyroscopic one; body frame."""
    to_body = transpose(rotation_matrix(state.quat))
    airspeed = subtract(state.vel, vector(params.wind))
    airspeed = transform(to_body, airspeed)
    drag = transform(matrix_rows(params.drag_matrix), airspeed)
    torque = add(torque, transform(to_body, external.torque))
    if params.rotor_moment is not None:
        of_y, of_x = split(params.rotor_moment)
        torque = (torque[0] + of_y * airspeed[1], torque[1] - of_x * airspeed[0], torque[2])
    if params.thrust_offset is not None:
        torque = add(torque, scale(vector(params.thrust_offset), thrust))
    spin_torque = cross(state.ang_vel, transform(matrix_rows(params.J), state.ang_vel))
    return (drag[0], drag[1], drag[2] + thrust), add(torque, scale(spin_torque, -1))


def _accelerations(
    quat: Vec4, body_force: Vec3, torque: Vec3, external_force: Vec3, params: Params
) -> tuple[Vec3, Vec3]:
    """Return the linear (world frame) and angular (body frame) acceleration."""
    force = add(transform(rotation_matrix(quat), body_force), external_force)
    acc = add(
        scale(force, 1 / params.mass[..., 0]),
        vector(params.gravity_vec),
    )
    return acc, transform(matrix_rows(params.J_inv), torque)
