"""The controllers: formulas in matrix form, steady flight, what each mode's command means."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from control_helpers import array, body, components
from quadrotor_reference import Quadrotor
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Control, mellinger
from crazyflow_ros.control.memory import INTEGRAL, RATES
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    heading,
    rotation_matrix,
    rotation_matrix_from_rpy,
    rpy_from_rotation_matrix,
)
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.stages import control_state

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = "cf2x_L250"
PWM_MAX, PWM_MIN, MASS_THRUST = 65535, 7000, 132000


def attitudes(n: int, seed: int = 0) -> Rotation:
    return Rotation.random(n, rng=np.random.default_rng(seed))


def test_rotation_matrices_and_angles_agree_with_scipy() -> None:
    R = attitudes(200)
    ours = rotation_matrix(components(R.as_quat()))
    matrix = np.stack([array(row) for row in ours], axis=-2)
    np.testing.assert_allclose(matrix, R.as_matrix(), atol=1e-14)
    rpy = array(rpy_from_rotation_matrix(ours))
    np.testing.assert_allclose(rpy, R.as_euler("xyz"), atol=1e-12)
    back = rotation_matrix_from_rpy(components(rpy))
    np.testing.assert_allclose(np.stack([array(r) for r in back], axis=-2), matrix, atol=1e-12)


def test_heading_is_that_of_the_body_x_axis_for_any_norm() -> None:
    R, scale = attitudes(200), np.random.default_rng(1).uniform(0.1, 10, (200, 1))
    yaw = R.as_euler("xyz")[:, 2]
    ours = array(heading(components(R.as_quat() * scale)))
    expected = np.stack([np.cos(yaw), np.sin(yaw), 0 * yaw], -1)
    np.testing.assert_allclose(ours, expected, atol=1e-12)
    straight_up = Rotation.from_euler("y", -90, degrees=True).as_quat().round(15)
    assert np.isfinite(array(heading(components(straight_up)))).all()


def test_position_controller_in_matrix_form() -> None:
    """D. Mellinger, V. Kumar 2011, eqs. (2), (6)-(8), with the firmware's gains."""
    rng, n, dt = np.random.default_rng(2), 100, 0.01
    figures = load_drone(DRONE)
    pos, vel, acc_sp, pos_sp, vel_sp = rng.normal(size=(5, n, 3))
    integral = rng.normal(0, 0.3, (n, 3))
    R, R_sp = attitudes(n), attitudes(n, 1)
    rpy, thrust, memory = mellinger.state2attitude(
        body(pos, R.as_quat(), vel),
        tuple(components(v) for v in (pos_sp, vel_sp, acc_sp, R_sp.as_quat())),
        {INTEGRAL: components(integral)},
        dt,
        mellinger.load_params("state", DRONE),
    )
    limit = np.array([2, 2, 0.4])
    expected_integral = np.clip(integral + (pos_sp - pos) * dt, -limit, limit)
    np.testing.assert_allclose(array(memory[INTEGRAL]), expected_integral, rtol=1e-13)
    force = (
        0.029 * (acc_sp - np.array([0, 0, -9.81]))
        + [0.4, 0.4, 1.25] * (pos_sp - pos)
        + [0.2, 0.2, 0.5] * (vel_sp - vel)
        + 0.05 * expected_integral
    )
    along = np.einsum("ni,ni->n", force, R.as_matrix()[..., 2])
    to_newton = 4 * figures["thrust_max"] / PWM_MAX
    np.testing.assert_allclose(thrust, MASS_THRUST * to_newton * along, rtol=1e-12, atol=1e-12)
    z = force / np.linalg.norm(force, axis=-1, keepdims=True)
    yaw = R_sp.as_euler("xyz")[:, 2]
    y = np.cross(z, np.stack([np.cos(yaw), np.sin(yaw), 0 * yaw], -1))
    y /= np.linalg.norm(y, axis=-1, keepdims=True)
    desired = np.stack([np.cross(y, z), y, z], axis=-1)
    ours = Rotation.from_euler("xyz", array(rpy)).as_matrix()
    np.testing.assert_allclose(ours, desired, atol=1e-10)


@pytest.mark.parametrize("level", [False, True])
def test_attitude_controller_in_matrix_form(level: bool) -> None:
    """The same paper, eqs. (9)-(10), and the firmware's PWM limits and power distribution."""
    rng, n, dt = np.random.default_rng(3), 200, 0.002
    figures, R, R_sp = load_drone(DRONE), attitudes(n), attitudes(n, 1)
    ang_vel, rates_sp = rng.normal(0, 2, (2, n, 3))
    change, integral = rng.normal(0, 0.05, (n, 3)), rng.normal(0, 0.5, (n, 3))
    thrust_sp = rng.uniform(-0.05, 0.5, n)
    force, torque, memory = mellinger.attitude2force_torque(
        body((0, 0, 0), R.as_quat(), ang_vel=ang_vel),
        (
            None if level else components(R_sp.as_euler("xyz")),
            components(rates_sp),
            jnp.asarray(thrust_sp),
        ),
        {
            "r_int_error": components(integral),
            "prev_ang_vel": components(ang_vel + change),
            RATES: components(rates_sp),
        },
        dt,
        mellinger.load_params("attitude", DRONE),
    )
    if level:
        R_sp = Rotation.from_euler("z", R.as_euler("xyz")[:, 2:])
    delta = R_sp.as_matrix().swapaxes(-1, -2) @ R.as_matrix()
    skew = delta - delta.swapaxes(-1, -2)
    error = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], -1)
    limit = np.array([1, 1, 1500])
    expected_integral = np.clip(integral - error * dt, -limit, limit)
    np.testing.assert_allclose(array(memory["r_int_error"]), expected_integral, atol=1e-13)
    pwm = (
        -np.array([7e4, 7e4, 6e4]) * error
        + np.array([2e4, 2e4, 1.2e4]) * (rates_sp - ang_vel)
        + np.array([0, 0, 500]) * expected_integral
        + np.array([200, 200, 0]) * change / dt
    )
    pwm = np.where(thrust_sp[:, None] > 0, np.clip(pwm, -32000, 32000), 0)
    to_newton = figures["thrust_max"] / PWM_MAX
    roll, pitch, yaw = pwm.T
    motors = np.stack(
        [
            -roll / 2 - pitch / 2 - yaw,
            -roll / 2 + pitch / 2 + yaw,
            roll / 2 + pitch / 2 - yaw,
            roll / 2 - pitch / 2 + yaw,
        ],
        -1,
    )
    forces = np.clip(thrust_sp[:, None] / 4 / to_newton + motors, PWM_MIN, PWM_MAX) * to_newton
    np.testing.assert_allclose(force, forces.sum(-1), rtol=1e-12)
    L, drag_arm = figures["L"], 0.007350862856566459
    f = forces.T
    expected = [
        L * (-f[0] - f[1] + f[2] + f[3]),
        L * (-f[0] + f[1] + f[2] - f[3]),
        drag_arm * (-f[0] + f[1] - f[2] + f[3]),
    ]
    np.testing.assert_allclose(array(torque), np.stack(expected, -1), atol=1e-14)


@pytest.mark.parametrize("drone", ["cf2x_L250", "cf21B_500"])
def test_the_mixer_is_the_inverse_of_the_rotors(drone: str) -> None:
    rng, n, quadrotor = np.random.default_rng(4), 100, Quadrotor(drone)
    weight = quadrotor.mass * 9.81
    thrust = rng.uniform(0.8, 1.2, n) * weight
    torque = rng.normal(0, 0.02, (n, 3)) * weight * [0.03, 0.03, 0.006]
    params = mellinger.load_params("force_torque", drone)
    speeds = array(
        mellinger.force_torque2rotor_vel(jnp.asarray(thrust), components(torque), params)
    )
    forces = np.polynomial.polynomial.polyval(speeds, quadrotor.thrust_curve)
    np.testing.assert_allclose(forces.sum(-1), thrust, rtol=1e-12)
    moments = np.cross(quadrotor.rotors, forces[..., None] * [0, 0, 1.0]).sum(-2)
    np.testing.assert_allclose(moments[:, :2], torque[:, :2], atol=1e-14)
    yaw = float(params["thrust2torque"]) * forces @ [-1, 1, -1, 1]
    np.testing.assert_allclose(yaw, torque[:, 2], atol=1e-14)


def test_the_mixer_keeps_each_rotor_within_its_limits_and_can_stop_them() -> None:
    params = mellinger.load_params("force_torque", DRONE)
    figures, zero = load_drone(DRONE), np.zeros((3, 3))
    speeds = array(
        mellinger.force_torque2rotor_vel(jnp.array([0.0, 1e-6, 9.0]), components(zero), params)
    )
    forces = np.polynomial.polynomial.polyval(speeds, figures["rpm2thrust"])
    expected = [0, figures["thrust_min"], figures["thrust_max"]]
    np.testing.assert_allclose(forces, np.outer(expected, np.ones(4)), atol=1e-12)
    np.testing.assert_array_equal(speeds[0], 0)
    lopsided = mellinger.force_torque2rotor_vel(jnp.array(0.3), (1.0, 0.0, 0.0), params)
    limits = [
        (-k1 + np.sqrt(k1**2 + 4 * k2 * f)) / (2 * k2)
        for f in expected[1:]
        for _, k1, k2 in [figures["rpm2thrust"]]
    ]
    np.testing.assert_allclose(array(lopsided), np.array(limits)[[0, 0, 1, 1]], rtol=1e-12)


def flying(control: str, drone: str = DRONE, **options: bool) -> Sim:
    """At 1 m with rotors at hover speed."""
    sim = Sim(control=control, drone=drone, **options)
    states = sim.data.states
    sim.data = sim.data.replace(
        states=states.replace(
            pos=states.pos + jnp.array([0, 0, 1.0]),
            rotor_vel=states.rotor_vel + Quadrotor(drone).hover_speed(),
        )
    )
    return sim


def rpy(sim: Sim) -> np.ndarray:
    return Rotation.from_quat(np.asarray(sim.data.states.quat)[0, 0]).as_euler("xyz")


@pytest.mark.parametrize(
    ("drone", "true_mass", "height"),
    [
        ("cf2x_L250", False, 0.977),
        ("cf21B_500", False, 1.081),
        ("cf21B_500", True, 1.0),
        ("hb_x500", True, 1.0),
    ],
)
def test_hover_in_state_control(drone: str, true_mass: bool, height: float) -> None:
    """The thrust scale of the firmware leaves an offset, as Crazyflow measured after 60 s."""
    sim = flying("state", drone, true_mass=true_mass)
    command = np.zeros((1, 1, 13))
    command[..., :3] = 0.5, -0.5, 1
    command[..., 9] = 0.5
    sim.state_control(command)
    sim.step(30_000)
    np.testing.assert_allclose(sim.data.states.pos[0, 0], [0.5, -0.5, height], atol=1e-3)
    np.testing.assert_allclose(sim.data.states.vel[0, 0], 0, atol=1e-4)
    np.testing.assert_allclose(rpy(sim), [0, 0, 0.5], atol=1e-2)


@pytest.mark.parametrize("dynamics", ["first_principles", "so_rpy_rotor_drag"])
def test_a_controller_that_knows_the_mass_wants_the_weight(dynamics: str) -> None:
    """Where it should be and at rest, the position controller asks for what carries the drone."""
    sim = Sim(dynamics=dynamics, control="state", true_mass=True)
    thrust = control_state(sim.data).controls.attitude.cmd[0, 0, 3]
    model, weight = sim.data.params, float(sim.data.params.mass[0]) * 9.81
    scale = float(model.cmd_f_coef[0]) if dynamics != "first_principles" else 1.0
    assert float(thrust) * scale == pytest.approx(weight, rel=1e-5)


@pytest.mark.parametrize("east", [0.0, 1.0])
def test_without_lift_there_is_still_an_attitude(east: float) -> None:
    """Free fall wants no thrust, or one along the heading: neither says where the left is."""
    sim = Sim(control="state", true_mass=True)
    sim.state_control(np.array([[[0, 0, 0, 0, 0, 0, east, 0, -9.81, 0, 0, 0, 0]]]))
    assert np.isfinite(control_state(sim.data).controls.attitude.cmd).all()


def test_attitude_control_holds_an_attitude_and_a_thrust() -> None:
    sim = flying("attitude")
    weight = load_drone(DRONE)["mass"] * 9.81
    sim.attitude_control(np.array([[[0.2, -0.1, 0.5, weight]]]))
    sim.step(1000)
    np.testing.assert_allclose(rpy(sim), [0.2, -0.1, 0.5], atol=0.02)
    # Tilted like this the thrust pulls forward-left or back-right, by roll, pitch and yaw.
    up = Rotation.from_euler("xyz", [0.2, -0.1, 0.5]).as_matrix()[:, 2]
    vel = np.asarray(sim.data.states.vel[0, 0])
    assert vel[:2] @ up[:2] / np.linalg.norm(vel[:2]) / np.linalg.norm(up[:2]) > 0.99


def test_body_rate_control_turns_and_levels() -> None:
    sim = flying("body_rate")
    weight = load_drone(DRONE)["mass"] * 9.81
    tilt = jnp.asarray(Rotation.from_euler("x", 0.3).as_quat())[None, None]
    sim.data = sim.data.replace(states=sim.data.states.replace(quat=tilt))
    sim.body_rate_control(np.array([[[0, 0, 1.0, weight]]]))
    sim.step(1000)
    assert sim.data.states.ang_vel[0, 0, 2] == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(rpy(sim)[:2], 0, atol=0.02)


def test_force_torque_control_is_felt_as_commanded() -> None:
    sim = flying("force_torque")
    figures = load_drone(DRONE)
    force, torque = 1.1 * figures["mass"] * 9.81, 2e-5
    sim.force_torque_control(np.array([[[force, torque, 0, 0]]]))
    sim.step(500)  # the rotors settle; meanwhile it turns over
    thrust = np.polynomial.polynomial.polyval(
        np.asarray(sim.data.states.rotor_vel[0, 0]), figures["rpm2thrust"]
    )
    assert thrust.sum() == pytest.approx(force, rel=2e-3)
    assert figures["L"] * (thrust @ [-1, -1, 1, 1]) == pytest.approx(torque, rel=2e-2)


def test_control_modes_by_name() -> None:
    assert [str(c) for c in Control] == [
        "state",
        "attitude",
        "body_rate",
        "force_torque",
        "rotor_vel",
    ]
    assert Control.default is Control.attitude
    assert Control.state.sizes == (16, 13) and Control.attitude.sizes == (4,)
