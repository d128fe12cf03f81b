"""The Mellinger controller of the Crazyflie firmware, component by component.

D. Mellinger, V. Kumar, "Minimum snap trajectory generation and control for quadrotors", ICRA 2011,
with the firmware's gains, PWM scaling and limits as in Crazyflow 0.4, which also clips the
result to what the rotors can give and keeps part of its memory whether the drone is armed or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from jax import Array

from crazyflow_ros.control.allocation import allocated, capped
from crazyflow_ros.control.firmware_parameters import FirmwareParameter, by_plane, shared
from crazyflow_ros.control.memory import INTEGRAL, RATES, Memory
from crazyflow_ros.control.power_distribution import PowerDistribution
from crazyflow_ros.control.rate_axes import RateAxes
from crazyflow_ros.control.setpoint_modes import Modes
from crazyflow_ros.drones import load_drone, load_mellinger
from crazyflow_ros.drones.rotors import Rotors
from crazyflow_ros.dynamics.components import (
    BodyState,
    Matrix3,
    PerRotor,
    Vec3,
    Vec4,
    add,
    cross,
    dot,
    heading,
    normalize,
    rotation_matrix,
    rotation_matrix_from_rpy,
    rpy_from_rotation_matrix,
    scale,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.rigid_body import of_each
from crazyflow_ros.elementwise import arctan2, clip, sqrt, where
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.on_device import on_device

Params = dict[str, Array]

POSITION_MEMORY = {INTEGRAL: 3}
ATTITUDE_MEMORY = {"r_int_error": 3, "prev_ang_vel": 3, RATES: 3}
"""Integral of the attitude error [s], previous body rates [rad/s]."""

HAS_RATE_MODES = False
HAS_SETPOINT_MODES = True
GAINS = {
    **dict.fromkeys(("state.kp", "state.kd", "state.ki", "state.int_err_max"), 3),
    **dict.fromkeys(("state.mass", "state.mass_thrust"), 1),
    **dict.fromkeys(("attitude.kR", "attitude.kw", "attitude.ki_m", "attitude.kd_omega"), 3),
    "attitude.int_err_max": 3,
}
PARAMETERS = {
    **shared("state", "ctrlMel", by_plane({gain: gain for gain in ("kp", "kd", "ki")})),
    **shared("state", "ctrlMel", by_plane({"i_range": "int_err_max"})),
    "ctrlMel.mass": FirmwareParameter("state", "mass"),
    "ctrlMel.massThrust": FirmwareParameter("state", "mass_thrust"),
    **shared("attitude", "ctrlMel", by_plane({gain: gain for gain in ("kR", "kw", "ki_m")})),
    **shared("attitude", "ctrlMel", by_plane({"i_range_m": "int_err_max"})),
    "ctrlMel.kd_omega_rp": FirmwareParameter("attitude", "kd_omega", (0, 1)),
}


def load_params(stage: str, drone: str | Sequence[str], freq: int | None = None) -> Params:
    """See `Cascade.load_params`. A third stage, `force_torque`, is the motor mixer."""
    del freq
    return of_each(partial(_load_params, stage), drone)


def _load_params(stage: str, drone: str) -> Params:
    return {name: on_device(values) for name, values in load_figures(stage, drone).items()}


def load_figures(stage: str, drone: str) -> dict[str, np.ndarray]:
    """Load the parameters of one stage as NumPy arrays in double precision.

    Args:
        stage: As for `load_params`.
        drone: Name of the drone, or path of its folder.

    Raises:
        ValueError: There is no such drone, or it has no figures of the controller.
    """
    figures = load_drone(drone) | load_mellinger(drone, stage)
    rotors: Rotors = figures["rotors"]
    if rotors.has_tables and stage == "force_torque":
        thrust_min, thrust_max = rotors.thrust_limits
        return {
            "allocation": rotors.allocation,
            "thrust_min": thrust_min,
            "thrust_max": thrust_max,
            "idle_thrust": rotors.idle_thrust,
            "rpm2thrust": rotors.rpm2thrust,
        }
    names = {
        "state": "mass kp kd ki gravity_vec mass_thrust int_err_max thrust_max pwm_max",
        "attitude": "kR kw ki_m kd_omega int_err_max torque_pwm_max thrust_max pwm_min pwm_max L "
        "thrust2torque mixing_matrix",
        "force_torque": "thrust_min thrust_max idle_thrust L rpm2thrust thrust2torque "
        "mixing_matrix",
    }[stage].split()
    if rotors.has_tables and stage == "attitude":  # which then leaves the limits to the mixer
        names.remove("mixing_matrix")
    return {name: np.asarray(figures[name], float) for name in names}


def firmware_units(stage: str, drone: str) -> dict[str, np.ndarray]:
    """See `Cascade.firmware_units`."""
    del stage, drone
    return {}


def true_to_mass(params: Params, hover_thrust: Array) -> Params:
    """See `Cascade.true_to_mass`.

    The firmware's mass and thrust scaling leave an error that the integral term cannot remove.
    """
    weight = -_thrust_gain(params) * params["gravity_vec"][..., 2]
    return params | {"mass": hover_thrust[..., 0] / weight}


def _thrust_gain(params: Params) -> Array:
    # The firmware sends PWM = mass_thrust * newtons, whatever thrust the motors produce for that
    # PWM. So the thrust is also rescaled here.
    return params["mass_thrust"] * 4 * params["thrust_max"] / params["pwm_max"]


def _clip(v: Vec3, limit: Vec3) -> Vec3:
    a, b, c = (clip(x, -m, m) for x, m in zip(v, limit))
    return (a, b, c)


def _times(a: Vec3, b: Vec3) -> Vec3:
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


def _mix(torque: Vec3, mixing: Array) -> list[Array]:
    """Return the share of each rotor in a torque: mixing^T torque."""
    return [
        mixing[..., 0, i] * torque[0]
        + mixing[..., 1, i] * torque[1]
        + mixing[..., 2, i] * torque[2]
        for i in range(4)
    ]


def state2attitude(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Vec3, Vec4],
    memory: Memory,
    dt: float,
    params: Params,
    modes: Modes | None = None,
) -> tuple[Vec3, Array, Memory]:
    """See `Cascade.state2attitude`.

    As in the firmware, a drone with a setpoint other than a state, or an attitude and thrust, holds
    its height, which is 0 in setpoints without height, and stays level at its present heading.
    """
    pos_sp, vel_sp, acc_sp, quat_sp = setpoint
    pos_err, vel_err = add(pos_sp, scale(body.pos, -1)), add(vel_sp, scale(body.vel, -1))
    x, y, z = memory[INTEGRAL]
    integral = _clip(add((x, y, z), scale(pos_err, dt)), vector(params["int_err_max"]))
    feed_forward = scale(add(acc_sp, scale(vector(params["gravity_vec"]), -1)), params["mass"])
    proportional = _times(vector(params["kp"]), pos_err)
    derivative = _times(vector(params["kd"]), vel_err)
    integrated = _times(vector(params["ki"]), integral)
    thrust_vec = add(add(feed_forward, proportional), add(derivative, integrated))

    x_heading = heading(quat_sp)
    if modes is not None:
        levels = modes.xy_velocity & ~modes.z_thrust
        x, y = (where(levels, 0.0, part) for part in thrust_vec[:2])
        thrust_vec, present = (x, y, thrust_vec[2]), heading(body.quat)
        x, y = (where(modes.turns, *each) for each in zip(present[:2], x_heading[:2]))
        x_heading = (x, y, x_heading[2])

    body_z = transpose(rotation_matrix(body.quat))[2]
    thrust = _thrust_gain(params) * dot(thrust_vec, body_z)

    # Any attitude is valid in free fall, and any rotation about a thrust along the heading.
    z_des = normalize(thrust_vec, body_z)
    y_des = normalize(cross(z_des, x_heading), (-x_heading[1], x_heading[0], x_heading[2]))
    x_des = cross(y_des, z_des)
    rpy = rpy_from_rotation_matrix(transpose((x_des, y_des, z_des)))
    if modes is not None:
        given = (modes.roll, modes.pitch, arctan2(x_heading[1], x_heading[0]))
        x, y, z = (where(modes.z_thrust, *each) for each in zip(given, rpy))
        rpy, thrust = (x, y, z), where(modes.z_thrust, modes.thrust, thrust)
    return rpy, thrust, {INTEGRAL: integral}


def attitude2force_torque(
    body: BodyState,
    setpoint: tuple[Vec3 | None, Vec3, Array],
    memory: Memory,
    dt: float,
    params: Params,
    rate_axes: RateAxes = None,
    armed: Array | None = None,
    distribution: PowerDistribution = PowerDistribution.default,
) -> tuple[Array, Vec3, Memory]:
    """See `Cascade.attitude2force_torque`.

    Without roll, pitch and yaw (None), the desired attitude is level at the present yaw. As in the
    firmware, `rate_axes` have no effect. With `clipped`, the limits of a quadrotor's rotors already
    reduce the result here, as in Crazyflow.
    """
    del rate_axes
    rpy_sp, rates, thrust_sp = setpoint
    quat, ang_vel, prev_rates, prev = body.quat, body.ang_vel, memory[RATES], memory["prev_ang_vel"]
    desired = _level(heading(quat)) if rpy_sp is None else rotation_matrix_from_rpy(rpy_sp)
    ang_vel_err = add(rates, scale(ang_vel, -1))
    x, y, z = ((rates[i] - prev_rates[i]) - (ang_vel[i] - prev[i]) for i in range(3))
    torque_pwm, r_int_error = apart(
        partial(_torque_pwm, dt=dt),
        quat, desired, ang_vel_err, (x, y, z), memory["r_int_error"], thrust_sp, params,
    )  # fmt: skip
    if armed is not None:
        x, y, z = (where(armed, i, 0.0) for i in r_int_error)
        r_int_error = (x, y, z)
    is_clipped = distribution is PowerDistribution.clipped and "mixing_matrix" in params
    distribute = _clipped if is_clipped else _in_newtons
    memory = {"r_int_error": r_int_error, "prev_ang_vel": ang_vel, RATES: rates}
    return *apart(distribute, thrust_sp, torque_pwm, params), memory


def _torque_pwm(
    quat: Vec4,
    desired: Matrix3,
    ang_vel_err: Vec3,
    ang_vel_change: Vec3,
    r_int_error: Vec3,
    thrust: Array,
    params: Params,
    *,
    dt: float,
) -> tuple[Vec3, Vec3]:
    """Return the torque in the firmware's PWM units, and the new integral of the attitude error."""
    error = _attitude_error(desired, rotation_matrix(quat))
    r_int_error = _clip(add(r_int_error, scale(error, -dt)), vector(params["int_err_max"]))
    rate_error_dot = scale((ang_vel_change[0], ang_vel_change[1], 0 * ang_vel_change[2]), 1 / dt)
    torque_pwm = add(
        add(
            scale(_times(vector(params["kR"]), error), -1),
            _times(vector(params["kw"]), ang_vel_err),
        ),
        add(
            _times(vector(params["ki_m"]), r_int_error),
            _times(vector(params["kd_omega"]), rate_error_dot),
        ),
    )
    limited = _clip(torque_pwm, vector(params["torque_pwm_max"]))
    x, y, z = (where(thrust > 0, part, 0.0) for part in limited)
    return (x, y, z), r_int_error


def _in_newtons(thrust: Array, torque_pwm: Vec3, params: Params) -> tuple[Array, Vec3]:
    """Return thrust [N] and torque [N m] of the firmware's legacy power distribution."""
    x, y, z = scale(torque_pwm, params["thrust_max"] / params["pwm_max"])  # N, of each rotor
    # Roll and pitch have half the weight.
    lever = 2 * params["L"]
    return thrust, (x * lever, y * lever, 4 * z * params["thrust2torque"])


def _clipped(thrust: Array, torque_pwm: Vec3, params: Params) -> tuple[Array, Vec3]:
    """Return thrust [N] and torque [N m] after each rotor's PWM is limited by itself."""
    x, y, z = torque_pwm
    # Roll and pitch have half the weight.
    mixing, to_newton = params["mixing_matrix"], params["thrust_max"] / params["pwm_max"]
    thrust_pwm = thrust / 4 / to_newton
    pwm = [thrust_pwm + share for share in _mix((x / 2, y / 2, z), mixing)]
    idle = (pwm[0] == 0) & (pwm[1] == 0) & (pwm[2] == 0) & (pwm[3] == 0)
    forces = [
        where(idle, 0.0, clip(p, params["pwm_min"], params["pwm_max"])) * to_newton for p in pwm
    ]
    levers = (params["L"], params["L"], params["thrust2torque"])
    tx, ty, tz = (
        sum(mixing[..., axis, i] * f for i, f in enumerate(forces)) * lever
        for axis, lever in enumerate(levers)
    )
    return forces[0] + forces[1] + forces[2] + forces[3], (tx, ty, tz)


def _level(x_axis: Vec3) -> Matrix3:
    """Return the rotation matrix of a level body whose heading is the horizontal `x_axis`."""
    x, y, zero = x_axis
    return ((x, -y, zero), (y, x, zero), (zero, zero, zero + 1))


def _attitude_error(desired: Matrix3, actual: Matrix3) -> Vec3:
    """Return vee(Rd^T R - R^T Rd); the firmware omits the paper's factor of one half."""
    d, r = transpose(desired), transpose(actual)  # columns: body axes in the world frame
    return (
        dot(d[2], r[1]) - dot(r[2], d[1]),
        dot(d[0], r[2]) - dot(r[0], d[2]),
        dot(d[1], r[0]) - dot(r[1], d[0]),
    )


def force_torque2rotor_vel(
    force: Array,
    torque: Vec3,
    params: Params,
    distribution: PowerDistribution = PowerDistribution.clipped,
    thrust_max: Array | None = None,
) -> PerRotor:
    """Compute rotor speeds for a thrust and torque, within the limits of the rotors.

    Args:
        force: Collective thrust, N; exactly 0 stops the rotors.
        torque: Torque about the body axes, N m.
        params: `load_params("force_torque", ...)`.
        distribution: What happens beyond the limits.
        thrust_max: Maximum thrust of the weakest rotor for `capped`, N; by default that of
            `params`. A low battery reduces it, and those of the others by the same share.

    Returns:
        RPM of each rotor.
    """
    if "allocation" in params:
        return allocated(force, torque, params, distribution, thrust_max)
    k0, k1, k2 = (params["rpm2thrust"][..., i] for i in range(3))
    tx, ty, tz = torque
    shares = _mix(
        (tx / params["L"], ty / params["L"], tz / params["thrust2torque"]), params["mixing_matrix"]
    )
    forces = [(share + force) / 4 for share in shares]
    if distribution is PowerDistribution.clipped:
        forces = [clip(f, params["thrust_min"], params["thrust_max"]) for f in forces]
        stops = [force == 0] * 4
    else:
        most = params["thrust_max"] if thrust_max is None else thrust_max
        forces = capped(forces, params["thrust_min"], most, params["idle_thrust"])
        stops = [(force == 0) | (f == 0) for f in forces]
    rotor_vel = []
    for f, stop in zip(forces, stops):
        speed = (-k1 + sqrt(k1 * k1 - 4 * k2 * (k0 - f))) / (2 * k2)
        rotor_vel.append(where(stop, 0.0, speed))
    return (rotor_vel[0], rotor_vel[1], rotor_vel[2], rotor_vel[3])
