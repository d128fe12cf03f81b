"""The controller of Brescianini, Hehn and D'Andrea, component by component.

D. Brescianini, M. Hehn, R. D'Andrea, "Nonlinear quadrocopter attitude control", technical report,
ETH Zurich 2013. The position error behaves like a spring-damper system, the attitude error decays
exponentially on the quaternions, and each body rate follows with its own time constant. The gains
are time constants, so those of the firmware suit any drone; mass and inertia are the drone's own.

The attitude is controlled in full: the report's reduced control, which leaves out the yaw, is also
off in the firmware. The firmware's rule for fast spins (over 12 rad/s) is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from jax import Array

from crazyflow_ros.control.attitude_error import attitude_error
from crazyflow_ros.control.firmware_parameters import FirmwareParameter, by_plane, shared
from crazyflow_ros.control.memory import RATES, Memory, unless_idle
from crazyflow_ros.control.power_distribution import PowerDistribution
from crazyflow_ros.control.rate_axes import RateAxes, with_present_angles, with_rates
from crazyflow_ros.control.setpoint_modes import Modes
from crazyflow_ros.drones import load_controller, load_drone, load_mellinger
from crazyflow_ros.dynamics.components import (
    BodyState,
    Vec3,
    Vec4,
    add,
    cross,
    dot,
    heading,
    matrix_rows,
    normalize,
    rpy_from_rotation_matrix,
    scale,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.rigid_body import of_each
from crazyflow_ros.elementwise import absolute, clip, maximum, sqrt, where, zeros_like
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.on_device import on_device

Params = dict[str, Array]

POSITION_MEMORY: dict[str, int] = {}
ATTITUDE_MEMORY = {RATES: 3}

HAS_RATE_MODES = True
HAS_SETPOINT_MODES = True
GAINS = {
    **dict.fromkeys(("state.tau", "state.zeta"), 3),
    **dict.fromkeys(("state.fairness", "attitude.tau"), 1),
}
PARAMETERS = {
    **shared("state", "ctrlAtt", by_plane({"tau": "tau", "zeta": "zeta"})),
    "ctrlAtt.coll_fairness": FirmwareParameter("state", "fairness"),
    "ctrlAtt.tau_rp": FirmwareParameter("attitude", "tau"),
}

_LEAST_COSINE = 0.01  # of the tilt; the lift is divided by it


def load_params(stage: str, drone: str | Sequence[str], freq: int) -> Params:
    """See `Cascade.load_params`."""
    del freq
    return of_each(partial(_load_params, stage), drone)


def _load_params(stage: str, drone: str) -> Params:
    figures = load_controller(drone, "brescianini", stage)
    if stage == "state":
        figures["mass"] = load_mellinger(drone, "state")["mass"]
        figures["gravity_vec"] = load_drone(drone)["gravity_vec"]
    else:
        figures["J"] = load_drone(drone)["J"]
    return {name: on_device(np.asarray(value, float)) for name, value in figures.items()}


def firmware_units(stage: str, drone: str) -> dict[str, np.ndarray]:
    """See `Cascade.firmware_units`."""
    del stage, drone
    return {}


def true_to_mass(params: Params, hover_thrust: Array) -> Params:
    """See `Cascade.true_to_mass`."""
    return params | {"mass": -hover_thrust[..., 0] / params["gravity_vec"][..., 2]}


def state2attitude(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Vec3, Vec4],
    memory: Memory,
    dt: float,
    params: Params,
    modes: Modes | None = None,
) -> tuple[Vec3, Array, Memory]:
    """See `Cascade.state2attitude`.

    As in the firmware, all setpoints are states, with zeros for what they do not give, and heading
    0 for full states, too; except attitudes, which stop the rotors.
    """
    del dt
    if modes is not None:
        pos, vel, acc, (x, y, z, w) = setpoint
        no_yaw = modes.turns | modes.by_quat
        x, y, z = (where(no_yaw, 0.0, part) for part in (x, y, z))
        setpoint = pos, vel, acc, (x, y, z, where(no_yaw, 1.0, w))
    rpy, thrust = apart(_thrust_and_attitude, body, setpoint, params)
    return rpy, thrust if modes is None else where(modes.z_thrust, 0.0, thrust), memory


def _thrust_and_attitude(
    body: BodyState, setpoint: tuple[Vec3, Vec3, Vec3, Vec4], params: Params
) -> tuple[Vec3, Array]:
    pos_sp, vel_sp, acc_sp, quat_sp = setpoint
    most, gravity = params["thrust_max"], -params["gravity_vec"][..., 2]
    errors = zip(subtract(pos_sp, body.pos), subtract(vel_sp, body.vel))
    wanted = []
    for i, (pos, vel) in enumerate(errors):
        tau, zeta = params["tau"][..., i], params["zeta"][..., i]
        lift = acc_sp[i] + (gravity if i == 2 else 0.0)
        wanted.append(clip(pos / tau**2 + vel * 2 * zeta / tau + lift, -most, most))
    x, y, z = wanted

    qx, qy, _, _ = body.quat
    cosine = 1 - 2 * (qx * qx + qy * qy)  # of the tilt
    cosine = where(cosine < 0, -1.0, 1.0) * maximum(absolute(cosine), _LEAST_COSINE)
    x, y, z = _attainable((x, y, z), absolute(z / cosine) > most, params)
    thrust = params["mass"] * clip(z / cosine, params["thrust_min"], most)

    # The x axis is the heading after the shortest rotation from the vertical to the thrust.
    up = zeros_like(z)
    z_axis = normalize((x, y, z), (up, up, up + 1))
    ahead = heading(quat_sp)
    share = dot(ahead, z_axis) / maximum(1 + z_axis[2], 1e-6)
    x_axis = subtract(ahead, scale(add(z_axis, (up, up, up + 1)), share))
    axes = (x_axis, cross(z_axis, x_axis), z_axis)
    return rpy_from_rotation_matrix(transpose(axes)), thrust


def _attainable(acc: Vec3, is_beyond: Array, params: Params) -> Vec3:
    """Reduce a mass-normalised thrust that is beyond the maximum.

    The share `fairness` of the vertical acceleration is reduced like the horizontal one; the rest
    is kept.
    """
    x, y, z = acc
    gravity, fair = -params["gravity_vec"][..., 2], params["fairness"]
    reduced, kept = fair * (z - gravity), (1 - fair) * (z - gravity) + gravity
    # |(r x, r y, r reduced + kept)| = thrust_max
    a, b = x * x + y * y + reduced * reduced, reduced * kept
    c = maximum(params["thrust_max"] ** 2 - kept * kept, 0.0)
    is_small = a < 1e-6
    root = sqrt(maximum(b * b + a * c, 1e-12))
    ratio = (root - b) / where(is_small, 1.0, a)
    ratio = where(is_beyond, where(is_small, 0.0, clip(ratio, 0, 1)), 1.0)
    return ratio * x, ratio * y, ratio * reduced + kept


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
    """See `Cascade.attitude2force_torque`. Except on `rate_axes`, only the yaw rate is used."""
    del dt, memory, distribution
    rpy, rates, thrust = setpoint
    torque, wanted = apart(_torque_and_rates, body, rpy, rates, rate_axes, params)
    return thrust, *unless_idle(armed, thrust, torque, {RATES: wanted})


def _torque_and_rates(
    body: BodyState, rpy: Vec3, rates: Vec3, rate_axes: RateAxes, params: Params
) -> tuple[Vec3, Vec3]:
    quat, ang_vel = body.quat, body.ang_vel
    error = attitude_error(quat, with_present_angles(rpy, quat, rate_axes))
    x, y, z = scale(error, 1 / params["tau"])
    wanted = with_rates((x, y, z + rates[2]), rates, rate_axes)
    excess = [absolute(w) / params["rate_max"][..., i] for i, w in enumerate(wanted)]
    scaling = 1 / maximum(maximum(excess[0], excess[1]), maximum(excess[2], 1.0))
    wanted = scale(wanted, scaling)
    error = subtract(wanted, ang_vel)
    tau_x, tau_y, tau_z = vector(params["rate_tau"])
    ang_acc = (error[0] / tau_x, error[1] / tau_y, error[2] / tau_z)
    return transform(matrix_rows(params["J"]), ang_acc), wanted
