"""The cascade of PID controllers of the Crazyflie firmware, component by component.

Position, velocity, attitude and body rates each have a controller per axis: position and velocity
along axes that turn with the heading, attitude in roll, pitch and yaw, whose rates are taken for
body rates as they are near hover. Textbooks have the theory, e.g. K. Åström, T. Hägglund, "Advanced
PID control", ISA 2006; structure, gains and limits are the firmware's. Like there, setpoints of
velocity and acceleration are ignored, so that drones follow a moving setpoint half a second late.

A drone without gains of its own, in its table `pid`, has those of the `cf2x_L250`, scaled by mass
and inertia for the same bandwidths.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import pi

import numpy as np
from jax import Array

from crazyflow_ros.control.memory import Memory
from crazyflow_ros.control.rate_axes import RateAxes, with_present_angles, with_rates
from crazyflow_ros.drones import has_controller, load_controller, load_drone, load_mellinger
from crazyflow_ros.dynamics.components import (
    BodyState,
    Vec3,
    Vec4,
    heading,
    rotation_matrix,
    rpy_from_rotation_matrix,
    scale,
    subtract,
    vector,
)
from crazyflow_ros.dynamics.rigid_body import of_each
from crazyflow_ros.elementwise import arctan2, clip, nearest_integer, zeros_like
from crazyflow_ros.kernels import apart
from crazyflow_ros.on_device import on_device

Params = dict[str, Array]

POSITION_MEMORY = {"pos_err_i": 3, "vel_err_i": 3}
"""Integrals of position [m s] and velocity error [m], along axes that turn with the heading."""
ATTITUDE_MEMORY = {"rpy_err_i": 3, "rate_err_i": 3, "prev_ang_vel": 3}
"""Integrals of roll, pitch, yaw [rad s] and body rates [rad]; previous body rates [rad/s]."""

_MODEL = "cf2x_L250"  # whose gains are scaled for drones without gains
_DEGREE = pi / 180
_TILT = ("vel_kp", "vel_ki")  # degrees for the horizontal axes, thrust for the vertical one


def load_params(stage: str, drone: str | Sequence[str], freq: int) -> Params:
    """See `Cascade.load_params`."""
    del freq
    return of_each(partial(_load_params, stage), drone)


def _load_params(stage: str, drone: str) -> Params:
    model = drone if has_controller(drone, "pid") else _MODEL
    figures = _gains(stage, model)
    if model != drone:
        own, other = load_drone(drone), load_drone(model)
        if stage == "state":
            heavier = own["mass"] / other["mass"]
            for name in ("thrust_min", "thrust_max", "thrust_base"):
                figures[name] *= heavier
            for name in _TILT:
                figures[name][2] *= heavier
        else:
            heavier = np.diag(own["J"]) / np.diag(other["J"])
            for name in ("rate_kp", "rate_ki", "rate_kd", "torque_max"):
                figures[name] *= heavier
    return {name: on_device(np.asarray(value, float)) for name, value in figures.items()}


def _gains(stage: str, drone: str) -> dict[str, np.ndarray]:
    """Return gains in SI units from the firmware's."""
    units = firmware_units(stage, drone)
    figures = load_controller(drone, "pid", stage)
    return {name: np.array(value) * units.get(name, 1.0) for name, value in figures.items()}


def firmware_units(stage: str, drone: str) -> dict[str, np.ndarray]:
    """Return the firmware's units of gains, which are in degrees and PWM, in SI units, by name.

    Args:
        stage: `state` or `attitude`.
        drone: Name of the drone, or path of its folder.
    """
    own, shared = load_drone(drone), load_mellinger(drone, "attitude")
    newton = own["thrust_max"] / shared["pwm_max"]  # of a rotor
    if stage == "state":
        tilt = np.array([_DEGREE, _DEGREE, 4 * newton])
        thrusts = dict.fromkeys(("thrust_min", "thrust_max", "thrust_base"), 4 * newton)
        return dict.fromkeys(_TILT, tilt) | thrusts | {"tilt_max": np.array(_DEGREE)}
    # In the firmware's mixer, two rotors give half of the PWM in roll and pitch each.
    torque = np.array([2 * own["L"], 2 * own["L"], 4 * shared["thrust2torque"]]) * newton
    rates = dict.fromkeys(("rate_kp", "rate_ki", "rate_kd"), torque / _DEGREE)
    integrals = dict.fromkeys(("int_err_max", "rate_int_err_max"), np.array(_DEGREE))
    return rates | integrals | {"torque_max": torque}


def true_to_mass(params: Params, hover_thrust: Array) -> Params:
    """See `Cascade.true_to_mass`."""
    return params | {"thrust_base": hover_thrust[..., 0]}


def _times(a: Vec3, b: Vec3) -> Vec3:
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


def _integrated(integral: tuple[Array, ...], error: Vec3, dt: float) -> Vec3:
    x, y, z = (i + e * dt for i, e in zip(integral, error))
    return (x, y, z)


def _limited(v: Vec3, limit: Vec3) -> Vec3:
    x, y, z = (clip(a, -m, m) for a, m in zip(v, limit))
    return (x, y, z)


def _pi(error: Vec3, integral: Vec3, kp: Vec3, ki: Vec3) -> Vec3:
    """Return the output of a PI controller for each axis."""
    x, y, z = (p * e + k * i for p, e, k, i in zip(kp, error, ki, integral))
    return (x, y, z)


def state2attitude(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Vec3, Vec4],
    memory: Memory,
    dt: float,
    params: Params,
) -> tuple[Vec3, Array, Memory]:
    """See `Cascade.state2attitude`. Velocity and acceleration of the setpoint are ignored."""
    pos_sp, _, _, quat_sp = setpoint
    c, s, _ = heading(body.quat)

    def turned(v: Vec3) -> Vec3:
        return (c * v[0] + s * v[1], c * v[1] - s * v[0], v[2])

    # The firmware's limits of these integrals are far out of reach.
    pos_err = turned(subtract(pos_sp, body.pos))
    pos_err_i = _integrated(memory["pos_err_i"], pos_err, dt)
    vel_sp = _pi(pos_err, pos_err_i, vector(params["kp"]), vector(params["ki"]))
    vel_err = subtract(_limited(vel_sp, vector(params["vel_max"])), turned(body.vel))
    vel_err_i = _integrated(memory["vel_err_i"], vel_err, dt)
    ahead, left, up = _pi(vel_err, vel_err_i, vector(params["vel_kp"]), vector(params["vel_ki"]))
    tilt = params["tilt_max"]
    roll, pitch = clip(-left, -tilt, tilt), clip(ahead, -tilt, tilt)
    east, north, _ = heading(quat_sp)
    thrust = clip(params["thrust_base"] + up, params["thrust_min"], params["thrust_max"])
    rpy = (roll, pitch, arctan2(north, east))
    return rpy, thrust, {"pos_err_i": pos_err_i, "vel_err_i": vel_err_i}


def attitude2force_torque(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Array],
    memory: Memory,
    dt: float,
    params: Params,
    rate_axes: RateAxes = None,
) -> tuple[Array, Vec3, Memory]:
    """See `Cascade.attitude2force_torque`. Other desired body rates are ignored."""
    rpy_sp, rates, thrust = setpoint
    rpy_sp = with_present_angles(rpy_sp, body.quat, rate_axes)
    rpy_err, ang_vel = apart(_angles_between, body.quat, rpy_sp), body.ang_vel
    rpy_err_i = _integrated(memory["rpy_err_i"], rpy_err, dt)
    rpy_err_i = _limited(rpy_err_i, vector(params["int_err_max"]))
    wanted = _pi(rpy_err, rpy_err_i, vector(params["kp"]), vector(params["ki"]))
    damping = _times(vector(params["kd"]), ang_vel)
    wanted = with_rates(subtract(wanted, damping), rates, rate_axes)
    rate_err = subtract(wanted, ang_vel)
    rate_err_i = _integrated(memory["rate_err_i"], rate_err, dt)
    rate_err_i = _limited(rate_err_i, vector(params["rate_int_err_max"]))
    torque = _pi(rate_err, rate_err_i, vector(params["rate_kp"]), vector(params["rate_ki"]))
    x, y, z = memory["prev_ang_vel"]
    change = scale(subtract(ang_vel, (x, y, z)), 1 / dt)
    torque = subtract(torque, _times(vector(params["rate_kd"]), change))
    if rate_axes is not None:  # an angle that nobody controls must not wind up
        still = zeros_like(thrust)
        rpy_err_i = with_rates(rpy_err_i, (still, still, still), rate_axes)
    memory = {"rpy_err_i": rpy_err_i, "rate_err_i": rate_err_i, "prev_ang_vel": ang_vel}
    return thrust, _limited(torque, vector(params["torque_max"])), memory


def _angles_between(quat: Vec4, rpy_sp: Vec3) -> Vec3:
    """Return desired minus present roll, pitch and yaw, the yaw the shorter way."""
    roll, pitch, yaw = subtract(rpy_sp, rpy_from_rotation_matrix(rotation_matrix(quat)))
    return roll, pitch, yaw - 2 * pi * nearest_integer(yaw / (2 * pi))
