"""Brescianini's controller: its attitude error by the ODE, its position error as an oscillator."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control_helpers import array, body, components, linear, rolled, state_setpoint
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import brescianini
from crazyflow_ros.control.attitude_error import attitude_error
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import rotate_quat, rotation_matrix_from_rpy, transpose

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = "cf2x_L250"
TAU, RATE_TAU = 0.25, np.array([0.015, 0.015, 0.0075])
MASS, J = 0.029, load_drone(DRONE)["J"]


@jax.jit
def _position(drone_body, setpoint):
    params = brescianini.load_params("state", DRONE, 100)
    return brescianini.state2attitude(drone_body, setpoint, {}, 0.01, params)


@jax.jit
def _torque(drone_body, setpoint):
    params = brescianini.load_params("attitude", DRONE, 500)
    return brescianini.attitude2force_torque(drone_body, setpoint, {}, 0.002, params)[1]


def position(drone_body, setpoint):
    rpy, thrust, memory = _position(drone_body, setpoint)
    assert memory == {}
    return array(rpy), np.asarray(thrust)


def torque(drone_body, rpy, rates=(0, 0, 0), thrust=0.3):
    return _torque(drone_body, (components(rpy), components(rates), jnp.asarray(thrust)))


def test_the_attitude_error_is_the_shorter_rotation() -> None:
    rng = np.random.default_rng(0)
    present, desired = (Rotation.random(500, rng=rng) for _ in range(2))
    error = array(
        attitude_error(components(present.as_quat()), components(desired.as_euler("xyz")))
    )
    vector = (present.inv() * desired).as_rotvec()
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    np.testing.assert_allclose(error, 2 * np.sin(angle / 2) * vector / angle, atol=1e-10)
    negative = attitude_error(components(-present.as_quat()), components(desired.as_euler("xyz")))
    np.testing.assert_allclose(array(negative), error, atol=1e-12)


@pytest.mark.parametrize("angle", [0.1, 1.5, 3.0])
def test_the_attitude_error_decays_like_the_solution_of_its_equation(angle: float) -> None:
    """Where rates are as commanded, a' = -2/tau sin(a/2), so tan(a/4) decays exponentially."""
    dt, n, axis = 1e-4, 5000, np.array([0.6, -0.64, 0.48])
    start = Rotation.from_rotvec(angle * axis).as_quat()

    def step(quat):
        wanted = torque(body(quat=jnp.stack(quat)), (0, 0, 0))
        rates = [t / J[i, i] * RATE_TAU[i] for i, t in enumerate(wanted)]
        return rotate_quat(quat, tuple(w * dt for w in rates)), quat

    quats = array(rolled(step, tuple(jnp.asarray(x) for x in start), n, 500))
    turned = Rotation.from_quat(quats).as_rotvec()
    times = np.arange(len(quats)) * 500 * dt
    expected = 4 * np.arctan(np.tan(angle / 4) * np.exp(-times / TAU))
    np.testing.assert_allclose(turned, expected[:, None] * axis, atol=1e-3 * angle)


def test_body_rates_follow_with_their_time_constants() -> None:
    rates = np.random.default_rng(1).normal(0, 3, (100, 3))
    level = array(torque(body(ang_vel=rates), np.zeros((100, 3)), np.zeros((100, 3))))
    np.testing.assert_allclose(level, -rates / RATE_TAU @ J, rtol=1e-12)
    turning = array(torque(body(), (0, 0, 0), (1.0, 1.0, 2.0)))
    np.testing.assert_allclose(turning, [0, 0, 2.0 / RATE_TAU[2] * J[2, 2]], rtol=1e-12)


def test_commanded_rates_are_scaled_to_the_greatest() -> None:
    turning = array(torque(body(), (0, 0, 0.8), (0, 0, 20.0)))
    assert turning[2] * RATE_TAU[2] / J[2, 2] == pytest.approx(10.0)


def test_thrust_and_attitude_give_the_wanted_acceleration() -> None:
    """In the commanded attitude: a spring with time constant 0.3 s, damped by 0.85."""
    rng, n = np.random.default_rng(2), 100
    pos, vel, vel_sp, acc_sp = rng.normal(0, 0.1, (4, n, 3))
    yaw = rng.uniform(-3, 3, n)
    heading = Rotation.from_euler("z", yaw[:, None])
    setpoint = state_setpoint(np.zeros((n, 3)), vel_sp, acc_sp, heading.as_quat())
    rpy, _ = position(body(pos, vel=vel), setpoint)
    attitude = Rotation.from_euler("xyz", rpy)
    again, thrust = position(body(pos, attitude.as_quat(), vel), setpoint)
    np.testing.assert_array_equal(again, rpy)
    acc = attitude.apply(thrust[:, None] * [0, 0, 1] / MASS) - [0, 0, 9.81]
    wanted = -pos / 0.3**2 + (vel_sp - vel) * 2 * 0.85 / 0.3 + acc_sp
    np.testing.assert_allclose(acc, wanted, atol=1e-9)
    # First the heading, then the shortest turn to the thrust.
    turn = (attitude * heading.inv()).as_rotvec()
    np.testing.assert_allclose(turn[:, 2], 0, atol=1e-9)


def test_a_point_that_accelerates_as_wanted_is_a_damped_oscillator() -> None:
    dt, n, every = 1e-4, 20_000, 2000
    start = np.array([0.3, -0.2, 0.25])

    def step(carry):
        pos, vel = carry
        rpy, thrust, _ = brescianini.state2attitude(
            body(jnp.stack(pos), vel=jnp.stack(vel)),
            state_setpoint((0, 0, 0)),
            *({}, dt, brescianini.load_params("state", DRONE, 100)),
        )
        # The thrust is that of a level drone: it carries the vertical acceleration.
        lift = thrust / MASS
        east, north, up = transpose(rotation_matrix_from_rpy(rpy))[2]
        acc = (lift * east / up, lift * north / up, lift - 9.81)
        vel = tuple(v + a * dt for v, a in zip(vel, acc))
        return (tuple(p + v * dt for p, v in zip(pos, vel)), vel), jnp.stack(pos)

    begin = tuple(jnp.asarray(x) for x in start), (jnp.zeros(()),) * 3
    flown = rolled(step, begin, n, every)
    matrix = np.array([[0, 1], [-1 / 0.3**2, -2 * 0.85 / 0.3]])
    times = np.arange(len(flown)) * every * dt
    expected = linear(matrix, np.array([1.0, 0.0]), np.zeros(2), times)[:, 0]
    np.testing.assert_allclose(flown, expected[:, None] * start, atol=1e-4)


def test_thrust_beyond_the_greatest_is_reduced_mostly_in_the_horizontal() -> None:
    """For a drone whose tilt leaves too little lift: its thrust is to be 18 m/s^2."""
    wanted = np.array([1.0, -0.5, 0.5]) / 0.09
    tilted = Rotation.from_euler("x", 0.8).as_quat()
    rpy, thrust = position(body(quat=tilted), state_setpoint((1.0, -0.5, 0.5)))
    reduced = 18 * Rotation.from_euler("xyz", rpy).apply([0, 0, 1.0]) - [0, 0, 9.81]
    ratio = reduced / wanted
    np.testing.assert_allclose(ratio, [ratio[0], ratio[0], 0.75 + 0.25 * ratio[0]], rtol=1e-9)
    assert 0 < ratio[0] < 0.95
    assert thrust == pytest.approx(MASS * min((reduced[2] + 9.81) / np.cos(0.8), 18))


@pytest.mark.parametrize("up", [(0, 0, -100.0), (1e6, 0, 0), (0, 0, 1e6)])
def test_setpoints_far_away_and_falling_drones_have_an_attitude(up) -> None:
    for quat in (Rotation.random(50, rng=np.random.default_rng(3)).as_quat(), (1.0, 0, 0, 0)):
        rpy, thrust = position(body(quat=quat), state_setpoint(up))
        assert np.isfinite(rpy).all()
        assert (thrust >= MASS * 1 - 1e-12).all() and (thrust <= MASS * 18 + 1e-12).all()
