"""The cascade of PID controllers of the Crazyflie firmware, component by component.

Position, velocity, attitude and body rates each have a controller per axis: position and velocity
along axes that turn with the heading, attitude in roll, pitch and yaw, whose rates are assumed to
be the body rates, as they are near hover. For the theory, see e.g. K. Åström, T. Hägglund,
"Advanced PID control", ISA 2006; structure, gains and limits are the firmware's. As there, the
velocity and acceleration of a state are ignored, so that drones follow a moving setpoint half a
second late; setpoints of velocity have modes of their own.

A drone without its own gains, in its table `pid`, uses those of the `cf2x_L250`, scaled by mass and
inertia for the same bandwidths.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import pi

import numpy as np
from jax import Array

from crazyflow_ros.control.filters import LowPass
from crazyflow_ros.control.firmware_parameters import FirmwareParameter, by_axis
from crazyflow_ros.control.memory import RATES, Memory, unless_idle
from crazyflow_ros.control.power_distribution import PowerDistribution
from crazyflow_ros.control.rate_axes import RateAxes, with_present_angles, with_rates
from crazyflow_ros.control.setpoint_modes import Modes
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
from crazyflow_ros.elementwise import arctan2, clip, nearest_integer, where, zeros_like
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.on_device import on_device

Params = dict[str, Array]

POSITION_MEMORY = {"pos_err_i": 3, "vel_err_i": 3, "prev_vel": 3, "vel_filter": 6, "acc_filter": 6}
"""Integrals of position [m s] and velocity error [m], previous velocity [m/s], and memory of the
filters of velocity and acceleration, along axes that turn with the heading."""
ATTITUDE_MEMORY = {"rpy_err_i": 3, "rate_err_i": 3, "prev_ang_vel": 3, RATES: 3}
"""Integrals of roll, pitch, yaw [rad s] and body rates [rad]; previous body rates [rad/s]."""

_PID = ("kp", "ki", "kd", "kff")
HAS_RATE_MODES = True
HAS_SETPOINT_MODES = True
FORGETS_WITH_MODE = True
GAINS = {
    **{f"state.{prefix}{gain}": 3 for prefix in ("", "vel_") for gain in _PID},
    "state.vel_max": 3,
    "state.tilt_max": 2,
    **dict.fromkeys(("state.thrust_base", "state.thrust_min"), 1),
    **{f"attitude.{prefix}{gain}": 3 for prefix in ("", "rate_") for gain in _PID},
}
_VELOCITY_MARGIN = 1.1  # factor on the limit of velocities in the firmware
_THOUSAND = 1000.0  # the firmware multiplies vertical gains by this
PARAMETERS = {
    **by_axis("attitude", "pid_attitude", "roll pitch yaw", {f"_{gain}": gain for gain in _PID}),
    **by_axis(
        "attitude", "pid_rate", "roll pitch yaw", {f"_{gain}": f"rate_{gain}" for gain in _PID}
    ),
    **by_axis(
        "state",
        "velCtlPid",
        "vx vy vz",
        {"Kp": "vel_kp", "Ki": "vel_ki", "Kd": "vel_kd", "KFF": "vel_kff"},
        (1.0, 1.0, _THOUSAND),
    ),
    **by_axis("state", "posCtlPid", "x y z", {gain.capitalize(): gain for gain in _PID}),
    **by_axis("state", "posCtlPid", "x y z", {"VelMax": "vel_max"}, (_VELOCITY_MARGIN,) * 3),
    **by_axis("state", "posCtlPid", "r p", {"Limit": "tilt_max"}),
    "posCtlPid.thrustBase": FirmwareParameter("state", "thrust_base"),
    "posCtlPid.thrustMin": FirmwareParameter("state", "thrust_min"),
}

_MODEL = "cf2x_L250"  # whose gains are scaled for drones without gains
_DEGREE = pi / 180
_HIGHEST = 0.4  # cutoff of a filter as a share of the rate of its controller
_TILT = ("vel_kp", "vel_ki", "vel_kd", "vel_kff")  # degrees; of the vertical axis, thrust
_TORQUE = ("rate_kp", "rate_ki", "rate_kd", "rate_kff")


def load_params(stage: str, drone: str | Sequence[str], freq: int) -> Params:
    """See `Cascade.load_params`."""
    return of_each(partial(_load_params, stage, freq), drone)


def _load_params(stage: str, freq: int, drone: str) -> Params:
    model = drone if has_controller(drone, "pid") else _MODEL
    figures = _gains(stage, model)
    if stage == "state":
        cutoff = min(float(figures.pop("cutoff")), _HIGHEST * freq)
        figures["low_pass"] = LowPass.coefficients(cutoff, freq)
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
            for name in (*_TORQUE, "torque_max"):
                figures[name] *= heavier
    return {name: on_device(np.asarray(value, float)) for name, value in figures.items()}


def _gains(stage: str, drone: str) -> dict[str, np.ndarray]:
    """Return the firmware's gains, converted to SI units."""
    units = firmware_units(stage, drone)
    figures = load_controller(drone, "pid", stage)
    if stage == "state":
        figures["tilt_max"] = np.broadcast_to(figures["tilt_max"], 2)
    return {name: np.array(value) * units.get(name, 1.0) for name, value in figures.items()}


def firmware_units(stage: str, drone: str) -> dict[str, np.ndarray]:
    """See `Cascade.firmware_units`. The firmware uses degrees and PWM."""
    own, shared = load_drone(drone), load_mellinger(drone, "attitude")
    newton = own["thrust_max"] / shared["pwm_max"]  # of a rotor
    if stage == "state":
        tilt = np.array([_DEGREE, _DEGREE, 4 * newton])
        thrusts = dict.fromkeys(("thrust_min", "thrust_max", "thrust_base"), 4 * newton)
        return dict.fromkeys(_TILT, tilt) | thrusts | {"tilt_max": np.array(_DEGREE)}
    # In the firmware's mixer, two rotors give half of the PWM in roll and pitch each.
    torque = np.array([2 * own["L"], 2 * own["L"], 4 * shared["thrust2torque"]]) * newton
    rates = dict.fromkeys(_TORQUE, torque / _DEGREE)
    integrals = dict.fromkeys(("int_err_max", "rate_int_err_max"), np.array(_DEGREE))
    return rates | integrals | {"torque_max": torque}


def true_to_mass(params: Params, hover_thrust: Array) -> Params:
    """See `Cascade.true_to_mass`."""
    return params | {"thrust_base": hover_thrust[..., 0]}


def _integrated(integral: tuple[Array, ...], error: Vec3, dt: float) -> Vec3:
    x, y, z = (i + e * dt for i, e in zip(integral, error))
    return (x, y, z)


def _limited(v: Vec3, limit: Vec3) -> Vec3:
    x, y, z = (clip(a, -m, m) for a, m in zip(v, limit))
    return (x, y, z)


def _chosen(which: tuple[Array, ...], a: tuple[Array, ...], b: Vec3) -> Vec3:
    """Return components of `a` where `which` holds, of `b` elsewhere."""
    x, y, z = (where(*each) for each in zip(which, a, b))
    return (x, y, z)


def _pid(
    setpoint: Vec3, error: Vec3, integral: Vec3, change: Vec3, params: Params, prefix: str
) -> Vec3:
    """Return the output of a PID controller with feed forward for each axis.

    As in the firmware, the derivative is that of the measurement.
    """
    kp, ki, kd, kff = (vector(params[prefix + name]) for name in ("kp", "ki", "kd", "kff"))
    x, y, z = (
        kp[i] * error[i] + ki[i] * integral[i] - kd[i] * change[i] + kff[i] * setpoint[i]
        for i in range(3)
    )
    return (x, y, z)


def _filtered(
    signal: Vec3, memory: tuple[Array, ...], params: Params
) -> tuple[Vec3, tuple[Array, ...]]:
    """Return a derivative after its low-pass filter, and the new memory of the filter."""
    low_pass = LowPass(params["low_pass"])
    (x, a), (y, b), (z, c) = (
        low_pass(value, pair) for value, pair in zip(signal, zip(memory[::2], memory[1::2]))
    )
    return (x, y, z), (*a, *b, *c)


def state2attitude(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Vec3, Vec4],
    memory: Memory,
    dt: float,
    params: Params,
    modes: Modes | None = None,
) -> tuple[Vec3, Array, Memory]:
    """See `Cascade.state2attitude`. Velocities have an effect only in their modes."""
    pos_sp, given, _, quat_sp = setpoint
    c, s, _ = heading(body.quat)

    def turned(v: Vec3) -> Vec3:
        return (c * v[0] + s * v[1], c * v[1] - s * v[0], v[2])

    # The firmware's limits of these integrals are too large to matter.
    pos_err, vel = turned(subtract(pos_sp, body.pos)), turned(body.vel)
    pos_err_i = _integrated(memory["pos_err_i"], pos_err, dt)
    vel_slow, vel_filter = _filtered(vel, memory["vel_filter"], params)
    vel_sp = _pid(turned(pos_sp), pos_err, pos_err_i, vel_slow, params, "")
    vel_sp = _limited(vel_sp, vector(params["vel_max"]))
    if modes is not None:
        in_place = (modes.xy_velocity, modes.xy_velocity, modes.z_velocity)
        wanted = _chosen((modes.in_heading,) * 3, given, turned(given))
        vel_sp = _chosen(in_place, wanted, vel_sp)
        pos_err_i = _chosen(in_place, memory["pos_err_i"], pos_err_i)
    vel_err = subtract(vel_sp, vel)
    vel_err_i = _integrated(memory["vel_err_i"], vel_err, dt)
    x, y, z = memory["prev_vel"]
    acc = scale(subtract(vel, (x, y, z)), 1 / dt)
    acc, acc_filter = _filtered(acc, memory["acc_filter"], params)
    ahead, left, up = _pid(vel_sp, vel_err, vel_err_i, acc, params, "vel_")
    most = params["tilt_max"]
    roll = clip(-left, -most[..., 0], most[..., 0])
    pitch = clip(ahead, -most[..., 1], most[..., 1])
    east, north, _ = heading(quat_sp)
    least, most = params["thrust_min"], params["thrust_max"]
    thrust = clip(params["thrust_base"] + clip(up, -most / 2, most / 2), least, most)
    rpy = (roll, pitch, arctan2(north, east))
    if modes is not None:
        given = (modes.roll, modes.pitch, rpy[2])
        rpy = _chosen((modes.xy_angles, modes.xy_angles, modes.z_thrust), given, rpy)
        thrust = where(modes.z_thrust, modes.thrust, thrust)
    memory = {"pos_err_i": pos_err_i, "vel_err_i": vel_err_i, "prev_vel": vel}
    return rpy, thrust, memory | {"vel_filter": vel_filter, "acc_filter": acc_filter}


def attitude2force_torque(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Array],
    memory: Memory,
    dt: float,
    params: Params,
    rate_axes: RateAxes = None,
    armed: Array | None = None,
    distribution: PowerDistribution = PowerDistribution.default,
) -> tuple[Array, Vec3, Memory]:
    """See `Cascade.attitude2force_torque`. Except on `rate_axes`, desired rates are ignored."""
    del distribution
    rpy_sp, rates, thrust = setpoint
    rpy_sp = with_present_angles(rpy_sp, body.quat, rate_axes)
    rpy_err, ang_vel = apart(_angles_between, body.quat, rpy_sp), body.ang_vel
    rpy_err_i = _integrated(memory["rpy_err_i"], rpy_err, dt)
    rpy_err_i = _limited(rpy_err_i, vector(params["int_err_max"]))
    wanted = _pid(rpy_sp, rpy_err, rpy_err_i, ang_vel, params, "")
    wanted = with_rates(wanted, rates, rate_axes)
    rate_err = subtract(wanted, ang_vel)
    rate_err_i = _integrated(memory["rate_err_i"], rate_err, dt)
    rate_err_i = _limited(rate_err_i, vector(params["rate_int_err_max"]))
    x, y, z = memory["prev_ang_vel"]
    change = scale(subtract(ang_vel, (x, y, z)), 1 / dt)
    torque = _pid(wanted, rate_err, rate_err_i, change, params, "rate_")
    if rate_axes is not None:  # an angle that is not controlled must not wind up
        still = zeros_like(thrust)
        rpy_err_i = with_rates(rpy_err_i, (still, still, still), rate_axes)
    memory = {"rpy_err_i": rpy_err_i, "rate_err_i": rate_err_i, "prev_ang_vel": ang_vel}
    memory[RATES] = wanted
    torque = _limited(torque, vector(params["torque_max"]))
    return thrust, *unless_idle(armed, thrust, torque, memory)


def _angles_between(quat: Vec4, rpy_sp: Vec3) -> Vec3:
    """Return desired minus present roll, pitch and yaw, with the shorter turn in yaw."""
    roll, pitch, yaw = subtract(rpy_sp, rpy_from_rotation_matrix(rotation_matrix(quat)))
    return roll, pitch, yaw - 2 * pi * nearest_integer(yaw / (2 * pi))
