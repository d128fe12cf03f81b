"""Incremental nonlinear dynamic inversion, component by component.

E. Smeur, Q. Chu, G. de Croon, "Adaptive incremental nonlinear dynamic inversion for attitude
control of micro air vehicles", Journal of Guidance, Control, and Dynamics 39 (2016), for attitude
and rates; E. Smeur, G. de Croon, Q. Chu, "Cascaded incremental nonlinear dynamic inversion for MAV
disturbance rejection", Control Engineering Practice 73 (2018), for the position. The new command is
the present one plus a correction for the acceleration error, so that unknown forces and torques are
cancelled without an integral. The present command passes a model of the rotors, and then the same
filter as the measurement, so that both have the same delay.

Gains, filters and limits are the firmware's, and independent of the drone. The firmware's
effectiveness of the rotors was measured on a Crazyflie; here it follows from inertia and mass, and
the rotors' time constant follows from their figures. As in the firmware, setpoints of velocity
and acceleration are ignored. The differences are:

- The measured acceleration is the change of the velocity, not the reading of the accelerometer.
- Attitude errors are computed from quaternions, and the position controller corrects the thrust
  vector; the firmware linearises both in roll and pitch.
- The inertia of the rotors in yaw, three per cent of the firmware's effectiveness, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import expm1

import numpy as np
from jax import Array

from crazyflow_ros.control.attitude_error import attitude_error
from crazyflow_ros.control.filters import LowPass
from crazyflow_ros.control.firmware_parameters import FirmwareParameter
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
from crazyflow_ros.elementwise import arctan2, clip, ones_like, sqrt, where, zeros_like
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.on_device import on_device

Params = dict[str, Array]

POSITION_MEMORY = {"ran": 1, "thrust": 1, "vel_filter": 6, "vel": 3, "lift_filter": 6}
"""Whether the controller has run; modelled thrust [N]; memory of the filters of velocity and
thrust vector; filtered velocity [m/s]."""
_MEMORY = {"ran": 1, "torque": 3, "rate_filter": 6, "rate": 3, "torque_filter": 6}
ATTITUDE_MEMORY = _MEMORY | {RATES: 3}
"""As `POSITION_MEMORY`, with torque [N m] and body rates [rad/s]."""

HAS_RATE_MODES = True
HAS_SETPOINT_MODES = True
GAINS = {
    **dict.fromkeys(("state.kp", "state.kd", "attitude.kR", "attitude.kw"), 3),
    "state.tilt_max": 1,
}
PARAMETERS = {
    **{
        f"ctrlINDI.ref_{parameter}_{axis}": FirmwareParameter("attitude", gain, (i,))
        for parameter, gain in (("err", "kR"), ("rate", "kw"))
        for i, axis in enumerate("pqr")
    },
    **{
        f"posCtrlIndi.K_{parameter}_{axis}": FirmwareParameter("state", gain, (i,))
        for parameter, gain in (("xi", "kp"), ("dxi", "kd"))
        for i, axis in enumerate("xyz")
    },
    "posCtrlIndi.pq_clamping": FirmwareParameter("state", "tilt_max"),
}


def load_params(stage: str, drone: str | Sequence[str], freq: int) -> Params:
    """See `Cascade.load_params`."""
    return of_each(partial(_load_params, stage, freq), drone)


def _load_params(stage: str, freq: int, drone: str) -> Params:
    own, shared = load_drone(drone), load_mellinger(drone, "attitude")
    figures = load_controller(drone, "indi", stage)
    figures["low_pass"] = LowPass.coefficients(figures.pop("cutoff"), freq)
    figures["rotor_share"] = -expm1(-1 / (freq * _rotor_tau(own)))  # of a change, in a period
    if stage == "state":
        figures |= {"mass": own["mass"], "gravity_vec": own["gravity_vec"]}
        figures |= {name: 4 * own[name] for name in ("thrust_min", "thrust_max")}
        figures["tilt_max"] = np.deg2rad(figures["tilt_max"])
    else:
        levers = np.array([2 * own["L"], 2 * own["L"], 4 * shared["thrust2torque"]])
        figures["J"] = own["J"]
        figures["torque_max"] = figures["torque_max"] * levers * own["thrust_max"]
    return {name: on_device(np.asarray(value, float)) for name, value in figures.items()}


def firmware_units(stage: str, drone: str) -> dict[str, np.ndarray]:
    """See `Cascade.firmware_units`."""
    del drone
    return {"tilt_max": np.array(np.pi / 180)} if stage == "state" else {}


def _rotor_tau(figures: dict[str, np.ndarray]) -> float:
    """Return the time constant of small changes of the rotor speeds near hover, s."""
    k0, k1, k2 = figures["rpm2thrust"]
    share = -figures["mass"] * figures["gravity_vec"][2] / 4
    hover = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - share))) / (2 * k2)
    rise, rise2, fall, fall2 = figures["rotor_dyn_coef"]
    return float(2 / (rise + fall + 2 * hover * (rise2 + fall2)))


def true_to_mass(params: Params, hover_thrust: Array) -> Params:
    """See `Cascade.true_to_mass`. The thrust follows from measurements, whatever the mass is."""
    return params | {"mass": -hover_thrust[..., 0] / params["gravity_vec"][..., 2]}


def _filtered(
    signal: Vec3, memory: tuple[Array, ...], is_first: Array, coefficients: Array
) -> tuple[Vec3, tuple[Array, ...]]:
    """Return a filtered vector and the new memory of its three filters."""
    low_pass = LowPass(coefficients)
    outputs: list[Array] = []
    after: list[Array] = []
    for value, old in zip(signal, zip(memory[::2], memory[1::2])):
        first, second = (where(is_first, x, y) for x, y in zip(low_pass.settled(value), old))
        output, new = low_pass(value, (first, second))
        outputs.append(output)
        after += new
    return (outputs[0], outputs[1], outputs[2]), tuple(after)


def _change(now: Vec3, before: tuple[Array, ...], is_first: Array, dt: float) -> Vec3:
    """Return the time derivative of a signal, zero in the first run."""
    x, y, z = (where(is_first, 0.0, (a - b) / dt) for a, b in zip(now, before))
    return (x, y, z)


def state2attitude(
    body: BodyState,
    setpoint: tuple[Vec3, Vec3, Vec3, Vec4],
    memory: Memory,
    dt: float,
    params: Params,
    modes: Modes | None = None,
) -> tuple[Vec3, Array, Memory]:
    """See `Cascade.state2attitude`. Velocities have an effect only in their modes.

    As in the firmware, all of them are in the world frame, and a drone does not turn at a yaw rate
    but to heading 0, since the angle to which the rate is added shrinks by pi / 180 each time. Full
    states have heading 0, too.
    """
    pos_sp, given, _, quat_sp = setpoint
    is_first = memory["ran"][0] == 0
    low_pass, share = params["low_pass"], params["rotor_share"]
    z_axis = transpose(rotation_matrix(body.quat))[2]
    vel, vel_filter = apart(_filtered, body.vel, memory["vel_filter"], is_first, low_pass)
    acc = _change(vel, memory["vel"], is_first, dt)
    # At the start, the drone is assumed to hover.
    weight = -params["mass"] * params["gravity_vec"][..., 2]
    thrust = where(is_first, weight, memory["thrust"][0])
    x, y, z = (thrust * up for up in z_axis)
    still = zeros_like(x)
    lift = (
        where(is_first, still, x),
        where(is_first, still, y),
        where(is_first, thrust, z),
    )
    lift, lift_filter = apart(_filtered, lift, memory["lift_filter"], is_first, low_pass)

    kp, kd = vector(params["kp"]), vector(params["kd"])
    vel_sp = _times(kp, subtract(pos_sp, body.pos))
    ahead = heading(quat_sp)
    if modes is not None:
        in_place = (modes.xy_velocity, modes.xy_velocity, modes.z_velocity)
        x, y, z = (where(*each) for each in zip(in_place, given, vel_sp))
        vel_sp = (x, y, z)
        no_yaw = modes.turns | modes.by_quat
        ahead = (where(no_yaw, 1.0, ahead[0]), where(no_yaw, 0.0, ahead[1]), ahead[2])
    x, y, z = (k * (wanted - v) for wanted, v, k in zip(vel_sp, body.vel, kd))
    wanted = add(lift, scale(subtract((x, y, z), acc), params["mass"]))
    rpy, command = apart(_attitude_and_thrust, wanted, z_axis, ahead, params)
    if modes is not None:
        command = where(modes.z_thrust, modes.thrust, command)
        roll, pitch = (
            where(modes.xy_angles, *each) for each in zip((modes.roll, modes.pitch), rpy)
        )
        rpy = (roll, pitch, rpy[2])
    return (
        rpy,
        command,
        {
            "ran": (ones_like(command),),
            "thrust": (thrust + share * (command - thrust),),
            "vel_filter": vel_filter,
            "vel": vel,
            "lift_filter": lift_filter,
        },
    )


def _attitude_and_thrust(
    lift: Vec3, z_axis: Vec3, heading: Vec3, params: Params
) -> tuple[Vec3, Array]:
    """Return roll, pitch and yaw for a thrust vector, and its part along the present z axis."""
    c, s, _ = heading
    ahead, left, up = c * lift[0] + s * lift[1], c * lift[1] - s * lift[0], lift[2]
    roll = -arctan2(left, sqrt(ahead * ahead + up * up))
    pitch, most = arctan2(ahead, up), params["tilt_max"]
    rpy = (clip(roll, -most, most), clip(pitch, -most, most), arctan2(s, c))
    return rpy, clip(dot(lift, z_axis), params["thrust_min"], params["thrust_max"])


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
    is_first = memory["ran"][0] == 0
    low_pass, share = params["low_pass"], params["rotor_share"]
    rate, rate_filter = apart(_filtered, body.ang_vel, memory["rate_filter"], is_first, low_pass)
    acc = _change(rate, memory["rate"], is_first, dt)
    x, y, z = before = memory["torque"]
    torque, torque_filter = apart(_filtered, (x, y, z), memory["torque_filter"], is_first, low_pass)
    rpy_sp = with_present_angles(rpy_sp, body.quat, rate_axes)
    error = apart(attitude_error, body.quat, rpy_sp)
    wanted = with_rates(_times(vector(params["kR"]), error), rates, rate_axes)
    command = apart(_torque, wanted, body.ang_vel, acc, torque, params)
    memory = {
        "ran": (ones_like(x),),
        "torque": tuple(old + share * (new - old) for old, new in zip(before, command)),
        "rate_filter": rate_filter,
        "rate": rate,
        "torque_filter": torque_filter,
        RATES: wanted,
    }
    return thrust, *unless_idle(armed, thrust, command, memory)


def _times(a: Vec3, b: Vec3) -> Vec3:
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


def _torque(rates: Vec3, ang_vel: Vec3, acc: Vec3, present: Vec3, params: Params) -> Vec3:
    """Return the present torque, corrected for the error of the angular acceleration."""
    terms = zip(rates, ang_vel, acc, vector(params["kw"]))
    x, y, z = (kw * (rate - w) - a for rate, w, a, kw in terms)
    wanted = add(present, transform(matrix_rows(params["J"]), (x, y, z)))
    x, y, z = (clip(t, -m, m) for t, m in zip(wanted, vector(params["torque_max"])))
    return (x, y, z)
