"""Incremental nonlinear dynamic inversion, component by component.

E. Smeur, Q. Chu, G. de Croon, "Adaptive incremental nonlinear dynamic inversion for attitude
control of micro air vehicles", Journal of Guidance, Control, and Dynamics 39 (2016), for attitude
and rates; E. Smeur, G. de Croon, Q. Chu, "Cascaded incremental nonlinear dynamic inversion for MAV
disturbance rejection", Control Engineering Practice 73 (2018), for the position. The command is the
present one plus what the measured acceleration lacks, so that unknown forces and torques are
cancelled without an integral. The present command passes a model of the rotors, and then the same
filter as the measurement, so that both are late by the same time.

Gains, filters and limits are the firmware's, and independent of the drone. The firmware's
effectiveness of the rotors was measured on a Crazyflie; here it follows from inertia and mass, as
does the time constant of the rotors from their figures. Like in the firmware, setpoints of velocity
and acceleration are ignored. Differences are:

- The change of the velocity is the measured acceleration, not the accelerometer.
- Attitude errors are those of quaternions, and the increments of the position controller those of
  the thrust vector: the firmware linearises both in roll and pitch.
- The inertia of the rotors in yaw, three per cent of the firmware's effectiveness, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control.attitude_error import attitude_error
from crazyflow_ros.control.filters import LowPass
from crazyflow_ros.control.memory import Memory
from crazyflow_ros.drones import load_controller, load_drone, load_mellinger
from crazyflow_ros.dynamics.components import (
    BodyState,
    Vec3,
    Vec4,
    add,
    dot,
    heading,
    matrix_rows,
    rotation_matrix,
    scale,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.rigid_body import of_each
from crazyflow_ros.kernels import apart
from crazyflow_ros.on_device import on_device

Params = dict[str, Array]

POSITION_MEMORY = {"ran": 1, "thrust": 1, "vel_filter": 6, "vel": 3, "lift_filter": 6}
"""Whether the controller has run; modelled thrust [N]; memory of the filters of velocity and
thrust vector; filtered velocity [m/s]."""
ATTITUDE_MEMORY = {"ran": 1, "torque": 3, "rate_filter": 6, "rate": 3, "torque_filter": 6}
"""The same with torque [N m] and body rates [rad/s]."""


def load_params(stage: str, drone: str | Sequence[str]) -> Params:
    """See `Cascade.load_params`."""
    return of_each(partial(_load_params, stage), drone)


def _load_params(stage: str, drone: str) -> Params:
    own, shared = load_drone(drone), load_mellinger(drone, "attitude")
    figures = load_controller(drone, "indi", stage) | {"rotor_tau": _rotor_tau(own)}
    if stage == "state":
        figures |= {"mass": own["mass"], "gravity_vec": own["gravity_vec"]}
        figures |= {name: 4 * own[name] for name in ("thrust_min", "thrust_max")}
        figures["tilt_max"] = np.deg2rad(figures["tilt_max"])
    else:
        levers = np.array([2 * own["L"], 2 * own["L"], 4 * shared["thrust2torque"]])
        figures["J"] = own["J"]
        figures["torque_max"] = figures["torque_max"] * levers * own["thrust_max"]
    return {name: on_device(np.asarray(value, float)) for name, value in figures.items()}


def _rotor_tau(figures: dict[str, np.ndarray]) -> float:
    """Return the time constant of small changes of the rotor speeds near hover, s."""
    k0, k1, k2 = figures["rpm2thrust"]
    share = -figures["mass"] * figures["gravity_vec"][2] / 4
    hover = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - share))) / (2 * k2)
    rise, rise2, fall, fall2 = figures["rotor_dyn_coef"]
    return float(2 / (rise + fall + 2 * hover * (rise2 + fall2)))


def true_to_mass(params: Params, hover_thrust: Array) -> Params:
    """See `Cascade.true_to_mass`. The thrust follows from measurements whatever the mass."""
    return params | {"mass": -hover_thrust[..., 0] / params["gravity_vec"][..., 2]}


def _filtered(
    low_pass: LowPass,
    signal: Vec3,
    memory: tuple[Array, ...],
    start: Callable[[Array, Array], Array],
) -> tuple[Vec3, tuple[Array, ...]]:
    """Return a filtered vector and the new memory of its three filters."""
    outputs: list[Array] = []
    after: list[Array] = []
    for i, value in enumerate(signal):
        first, second = low_pass.settled(value)
        before = start(first, memory[2 * i]), start(second, memory[2 * i + 1])
        output, new = low_pass(value, before)
        outputs.append(output)
        after += new
    return (outputs[0], outputs[1], outputs[2]), tuple(after)


def state2attitude(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Vec3, Vec4],
    memory: Memory,
    dt: float,
    params: Params,
) -> tuple[Vec3, Array, Memory]:
    """See `Cascade.state2attitude`. Velocity and acceleration of the setpoint are ignored."""
    pos_sp, _, _, quat_sp = setpoint
    return apart(
        partial(_thrust_and_attitude, dt=dt),
        *(body.pos, body.quat, body.vel, pos_sp, quat_sp, memory, params),
    )


def _thrust_and_attitude(
    pos: Vec3,
    quat: Vec4,
    vel: Vec3,
    pos_sp: Vec3,
    quat_sp: Vec4,
    memory: Memory,
    params: Params,
    *,
    dt: float,
) -> tuple[Vec3, Array, Memory]:
    is_first = memory["ran"][0] == 0

    def start(first: Array, later: Array) -> Array:
        return jnp.where(is_first, first, later)

    mass, weight = params["mass"], -params["mass"] * params["gravity_vec"][..., 2]
    low_pass = LowPass(params["cutoff"], dt)
    zero = jnp.zeros_like(pos[2])
    z_axis = transpose(rotation_matrix(quat))[2]
    vel_f, vel_filter = _filtered(low_pass, vel, memory["vel_filter"], start)
    acc_f = tuple((now - start(now, old)) / dt for now, old in zip(vel_f, memory["vel"]))
    # At the start the drone is taken to hover.
    thrust = start(weight, memory["thrust"][0])
    x, y, z = (start(hover, thrust * up) for hover, up in zip((zero, zero, weight), z_axis))
    lift_f, lift_filter = _filtered(low_pass, (x, y, z), memory["lift_filter"], start)

    errors = zip(subtract(pos_sp, pos), vel, vector(params["kp"]), vector(params["kd"]))
    x, y, z = (kd * (kp * error - v) for error, v, kp, kd in errors)
    wanted = add(lift_f, scale(subtract((x, y, z), acc_f), mass))  # type: ignore[arg-type]

    command = jnp.clip(dot(wanted, z_axis), params["thrust_min"], params["thrust_max"])
    share = -jnp.expm1(-dt / params["rotor_tau"])
    memory = {
        "ran": (zero + 1,),
        "thrust": (thrust + share * (command - thrust),),
        "vel_filter": vel_filter,
        "vel": vel_f,
        "lift_filter": lift_filter,
    }
    return _tilted(wanted, heading(quat_sp), params), command, memory


def _tilted(lift: Vec3, heading: Vec3, params: Params) -> Vec3:
    """Return roll, pitch and yaw of a thrust, with limited roll and pitch."""
    c, s, _ = heading
    ahead, left, up = c * lift[0] + s * lift[1], c * lift[1] - s * lift[0], lift[2]
    roll = -jnp.arctan2(left, jnp.sqrt(ahead * ahead + up * up))
    pitch, most = jnp.arctan2(ahead, up), params["tilt_max"]
    return jnp.clip(roll, -most, most), jnp.clip(pitch, -most, most), jnp.arctan2(s, c)


def attitude2force_torque(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Array],
    memory: Memory,
    dt: float,
    params: Params,
) -> tuple[Array, Vec3, Memory]:
    """See `Cascade.attitude2force_torque`. The desired body rates are ignored."""
    rpy_sp, _, thrust = setpoint
    torque, memory = apart(partial(_torque, dt=dt), body.quat, body.ang_vel, rpy_sp, memory, params)
    return thrust, torque, memory


def _torque(
    quat: Vec4, ang_vel: Vec3, rpy_sp: Vec3, memory: Memory, params: Params, *, dt: float
) -> tuple[Vec3, Memory]:
    is_first = memory["ran"][0] == 0

    def start(first: Array, later: Array) -> Array:
        return jnp.where(is_first, first, later)

    low_pass = LowPass(params["cutoff"], dt)
    rate_f, rate_filter = _filtered(low_pass, ang_vel, memory["rate_filter"], start)
    acc_f = tuple((now - start(now, old)) / dt for now, old in zip(rate_f, memory["rate"]))
    old = memory["torque"]
    torque_f, torque_filter = _filtered(
        low_pass, (old[0], old[1], old[2]), memory["torque_filter"], start
    )

    error = attitude_error(quat, rpy_sp)
    pairs = zip(error, ang_vel, vector(params["kR"]), vector(params["kw"]), acc_f)
    x, y, z = (kw * (kR * e - w) - a for e, w, kR, kw, a in pairs)
    wanted = add(torque_f, transform(matrix_rows(params["J"]), (x, y, z)))
    tx, ty, tz = (jnp.clip(t, -m, m) for t, m in zip(wanted, vector(params["torque_max"])))

    share = -jnp.expm1(-dt / params["rotor_tau"])
    modelled = tuple(before + share * (t - before) for before, t in zip(old, (tx, ty, tz)))
    memory = {
        "ran": (jnp.ones_like(tx),),
        "torque": modelled,
        "rate_filter": rate_filter,
        "rate": rate_f,
        "torque_filter": torque_filter,
    }
    return (tx, ty, tz), memory
