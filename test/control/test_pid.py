"""The PID cascade: each linear loop by its closed form, the firmware's units, limits, scaling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from control_helpers import array, body, components, fresh, linear, rolled, state_setpoint
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import pid
from crazyflow_ros.drones import Drone, load_drone, load_mellinger
from crazyflow_ros.dynamics.components import rotation_matrix, rpy_from_rotation_matrix

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = "cf2x_L250"
FIGURES = load_drone(DRONE)
DEGREE, PWM = np.pi / 180, FIGURES["thrust_max"] / 65535  # N of a rotor
LEVERS = np.array([2 * FIGURES["L"], 2 * FIGURES["L"], 4 * 0.007350862856566459])
KP, KI, KD = np.array([6.0, 6, 6]), np.array([3.0, 3, 1]), np.array([0, 0, 0.35])
RATE_KP, RATE_KI = (
    np.array(pwm) / DEGREE * PWM * LEVERS for pwm in ([250, 250, 120], [500, 500, 16.7])
)
RATE_KD = np.array([2.5, 2.5, 0]) / DEGREE * PWM * LEVERS
J = np.diag(FIGURES["J"])
HEAVY = 3.0  # without the lag of rotors, the D term in fine steps needs a greater inertia


def position(drone_body, setpoint, memory=None, dt=0.01, drone=DRONE, **changes):
    params = pid.load_params("state", drone, 100) | changes
    memory = fresh(pid.POSITION_MEMORY) if memory is None else memory
    return pid.state2attitude(drone_body, setpoint, memory, dt, params)


def torque(drone_body, rpy, memory=None, dt=0.002):
    memory = fresh(pid.ATTITUDE_MEMORY, drone_body.pos[0].shape) if memory is None else memory
    setpoint = (components(rpy), components((9.0, 9.0, 9.0)), jnp.asarray(0.3))
    params = pid.load_params("attitude", DRONE, 500)
    return pid.attitude2force_torque(drone_body, setpoint, memory, dt, params)[1:]


def test_gains_are_those_of_the_firmware_in_its_units() -> None:
    """A degree of pitch in the first run: 6 deg/s, which are 1500 PWM, and the integrals."""
    turn, memory = torque(body(), (0, DEGREE, 0))
    rate = 6 + 3 * 0.002
    pwm = 250 * rate + 500 * rate * 0.002
    assert turn[1] == pytest.approx(pwm * PWM * LEVERS[1])
    spun, _ = torque(body(ang_vel=(0, 0, DEGREE)), (0, 0, 0))
    assert spun[2] == pytest.approx(-(120 + 16.7 * 0.002) * 1.35 * PWM * LEVERS[2])
    assert memory["rpy_err_i"][1] == pytest.approx(DEGREE * 0.002)
    (_, pitch, _), thrust, _ = position(body(), state_setpoint((0.1, 0, 0.1)))
    assert pitch == pytest.approx((25 * 0.2 + 1 * 0.2 * 0.01) * DEGREE)
    up = 0.2 + 0.5 * 0.1 * 0.01
    assert thrust == pytest.approx((36000 + 25000 * up + 15000 * up * 0.01) * 4 * PWM)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_step_of_the_attitude_is_that_of_the_linear_system(axis: int) -> None:
    """Angle, rate and both integrals of a body without other torques."""
    dt, n, every, goal = 1e-4, 10_000, 1000, 0.02
    kp, ki, kd = KP[axis], KI[axis], KD[axis]
    p, i, inertia = RATE_KP[axis], RATE_KI[axis], HEAVY * J[axis] + RATE_KD[axis]
    # a' = w; E' = g - a; wanted = kp (g - a) + ki E - kd w; I' = wanted - w
    # J w' = p (wanted - w) + i I - d w'
    wanted = np.array([-kp, -kd - 1, ki, 0.0])
    matrix = np.array([[0, 1, 0, 0], (p * wanted + [0, 0, 0, i]) / inertia, [-1, 0, 0, 0], wanted])
    offset = np.array([0, p * kp * goal / inertia, goal, kp * goal])
    desired = np.zeros(3)
    desired[axis] = goal

    def step(carry: Any) -> Any:
        angle, rate, memory = carry
        vector = jnp.zeros(3).at[axis].set(angle / 2)
        quat = jnp.append(vector, jnp.sqrt(1 - angle**2 / 4))
        turn, memory = torque(
            body(quat=quat, ang_vel=jnp.zeros(3).at[axis].set(rate)), desired, memory, dt
        )
        after = rate + turn[axis] / (HEAVY * J[axis]) * dt
        return (angle + (rate + after) / 2 * dt, after, memory), jnp.stack((angle, rate))

    zero = jnp.zeros(())
    flown = rolled(step, (zero, zero, fresh(pid.ATTITUDE_MEMORY)), n, every)
    expected = linear(matrix, np.zeros(4), offset, np.arange(n // every) * every * dt)[:, :2]
    np.testing.assert_allclose(flown[:, 0], expected[:, 0], atol=2e-3 * goal)
    np.testing.assert_allclose(flown[:, 1], expected[:, 1], atol=1e-2 * goal)


@pytest.mark.parametrize("yaw", [0.0, 2.0])
def test_a_step_of_the_position_is_that_of_the_linear_system(yaw: float) -> None:
    """Position, velocity and integrals of a point whose tilt is as commanded."""
    dt, n, every = 1e-3, 5000, 500
    goal, wind = np.array([0.2, -0.3, 0.25]), np.array([0.1, -0.2, 0.3])
    mass, gravity = FIGURES["mass"], 9.81
    kv = np.array([25 * DEGREE * gravity] * 2 + [25000 * 4 * PWM / mass])
    iv = np.array([1 * DEGREE * gravity] * 2 + [15000 * 4 * PWM / mass])
    turn = Rotation.from_euler("z", yaw)
    params = {"thrust_base": jnp.asarray(mass * gravity)}

    def step(carry: Any) -> Any:
        pos, vel, memory = carry
        drone = body(pos, turn.as_quat(), vel)
        (roll, pitch, _), thrust, memory = position(
            drone, state_setpoint(goal), memory, dt, **params
        )
        along = jnp.stack((pitch * gravity, -roll * gravity, thrust / mass - gravity))
        acc = turn.as_matrix() @ along + wind
        vel = vel + acc * dt
        return (pos + vel * dt, vel, memory), pos

    start = jnp.zeros(3), jnp.zeros(3), fresh(pid.POSITION_MEMORY)
    flown = rolled(step, start, n, every)
    times = np.arange(n // every) * every * dt
    for axis, ki in enumerate((0.0, 0.0, 0.5)):
        # x' = v; E' = g - x; wanted = 2 (g - x) + ki E; I' = wanted - v; v' = kv (..) + iv I + wind
        wanted = np.array([-2.0, -1.0, ki, 0.0])
        matrix = np.array(
            [[0, 1, 0, 0], kv[axis] * wanted + [0, 0, 0, iv[axis]], [-1, 0, 0, 0], wanted]
        )
        g = goal[axis]
        offset = np.array([0, kv[axis] * 2 * g + wind[axis], g, 2 * g])
        expected = linear(matrix, np.zeros(4), offset, times)[:, 0]
        np.testing.assert_allclose(flown[:, axis], expected, atol=1e-3)


def test_velocity_tilt_thrust_and_integrals_have_their_limits() -> None:
    far = state_setpoint((1.0, -1.0, 10.0))
    (roll, pitch, _), thrust, memory = position(body(), far)
    np.testing.assert_allclose(memory["vel_err_i"], [0.011, -0.011, 0.011])
    assert (roll, pitch) == (pytest.approx(20 * DEGREE), pytest.approx(20 * DEGREE))
    least = position(body(), state_setpoint((0, 0, -10.0)))[1]
    assert least == pytest.approx(20000 * 4 * PWM)
    base = jnp.asarray(60000 * 4 * PWM)
    assert position(body(), far, thrust_base=base)[1] == pytest.approx(65535 * 4 * PWM)
    turn, memory = torque(body(), (3.0, -3.0, 3.0), dt=100.0)
    np.testing.assert_allclose(array(memory["rpy_err_i"]) / DEGREE, [20, -20, 360])
    np.testing.assert_allclose(array(memory["rate_err_i"]) / DEGREE, [33.3, -33.3, 166.7])
    np.testing.assert_allclose(array(turn), np.array([1, -1, 1]) * 32767 * PWM * LEVERS)
    assert thrust <= 65535 * 4 * PWM


def test_the_yaw_takes_the_shorter_way_and_the_setpoint_that_of_the_heading() -> None:
    quat = Rotation.from_euler("z", 3.0).as_quat()
    turn, _ = torque(body(quat=quat), (0, 0, -3.0))
    assert turn[2] > 0
    rpy, _, _ = position(body(), state_setpoint((0, 0, 0), quat=quat))
    np.testing.assert_allclose(array(rpy), [0, 0, 3.0], atol=1e-12)


def test_drones_without_gains_have_the_same_bandwidths() -> None:
    own, other = load_drone("hb_x500"), FIGURES
    ours, theirs = (pid.load_params("attitude", drone, 500) for drone in ("hb_x500", DRONE))
    for name in ("rate_kp", "rate_ki", "rate_kd"):
        np.testing.assert_allclose(
            ours[name] / np.diag(own["J"]), theirs[name] / np.diag(other["J"]), rtol=1e-12
        )
    np.testing.assert_array_equal(ours["kp"], theirs["kp"])
    ours, theirs = (pid.load_params("state", drone, 100) for drone in ("hb_x500", DRONE))
    for name in ("vel_kp", "vel_ki"):
        scale = [1, 1, own["mass"] / other["mass"]]
        np.testing.assert_allclose(ours[name], theirs[name] * np.array(scale), rtol=1e-12)


@pytest.mark.parametrize("drone", [drone for drone in Drone if drone.startswith("cf2")])
def test_crazyflies_have_the_gains_of_their_platform(drone: str) -> None:
    figures = load_drone(drone)
    pwm = figures["thrust_max"] / 65535
    brushless = drone.startswith("cf21B")
    params = pid.load_params("attitude", drone, 500)
    assert params["rate_kp"][0] == pytest.approx(
        (200 if brushless else 250) / DEGREE * pwm * 2 * figures["L"]
    )
    yaw = 4 * load_mellinger(drone, "attitude")["thrust2torque"]
    assert params["rate_kp"][2] == pytest.approx(120 / DEGREE * pwm * yaw)
    base = pid.load_params("state", drone, 100)["thrust_base"]
    assert base == pytest.approx((30000 if brushless else 36000) * 4 * pwm)


def test_angles_are_those_of_the_drone_for_any_attitude() -> None:
    attitudes = Rotation.random(100, rng=np.random.default_rng(4))
    rpy = array(rpy_from_rotation_matrix(rotation_matrix(components(attitudes.as_quat()))))
    turn, memory = torque(body(np.zeros((100, 3)), attitudes.as_quat()), rpy)
    np.testing.assert_allclose(array(turn), 0, atol=1e-12)
    np.testing.assert_allclose(array(memory["rpy_err_i"]), 0, atol=1e-12)
