"""INDI: filters as SciPy's, commanded accelerations whatever the inertia, torques and forces."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control_helpers import LEVEL, array, body, components, fresh, linear, rolled, state_setpoint
from scipy.signal import butter, lfilter, lfilter_zi
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import indi
from crazyflow_ros.control.filters import LowPass
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import rotate_quat, rotation_matrix_from_rpy, transpose
from crazyflow_ros.sim import Sim

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = "cf2x_L250"
FIGURES = load_drone(DRONE)
J, MASS = np.diag(FIGURES["J"]), FIGURES["mass"]
KR, KW, KP, KD = 5.0, 24.0, 1.0, 5.0


def rotor_tau() -> float:
    share = indi.load_params("attitude", DRONE, 500)["rotor_share"]
    return -0.002 / float(np.log1p(-share))


def test_the_filter_is_the_one_of_scipy_and_starts_settled() -> None:
    signal = np.random.default_rng(0).normal(3.0, 1.0, 500)
    b, a = butter(2, 8.0, fs=500)
    expected, _ = lfilter(b, a, signal, zi=lfilter_zi(b, a) * signal[0])
    low_pass = LowPass(jnp.asarray(LowPass.coefficients(8.0, 500)))

    def step(memory: Any, value: jax.Array) -> Any:
        output, memory = low_pass(value, memory)
        return memory, output

    ours = jax.lax.scan(step, low_pass.settled(jnp.asarray(signal[0])), jnp.asarray(signal))[1]
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


def test_a_cutoff_beyond_half_of_the_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="cutoff must be below half of 10 Hz, got 8 Hz"):
        Sim(control="state", controller="indi", state_freq=10)


def test_the_time_constant_is_that_of_small_changes_of_the_rotor_speeds() -> None:
    """Of a linear rotor exactly, of the Crazyflie's between that of rise and fall."""
    share = float(indi.load_params("state", "hb_x500", 100)["rotor_share"])
    assert share == pytest.approx(1 - np.exp(-60 / 100))
    hover = 19_200.0  # RPM
    rise, _, _, fall = FIGURES["rotor_dyn_coef"]
    assert 1 / (2 * hover * fall) < rotor_tau() < 1 / rise


def turned(inertia: float, load: float, goal: float, dt: float, n: int, every: int) -> np.ndarray:
    """Roll of a body with another inertia and an external torque, behind the modelled rotors."""
    params, share = indi.load_params("attitude", DRONE, 1 / dt), -np.expm1(-dt / rotor_tau())

    def step(carry: Any) -> Any:
        quat, rate, actual, memory = carry
        drone = body(quat=jnp.stack(quat), ang_vel=jnp.stack((rate, 0 * rate, 0 * rate)))
        setpoint = (components((goal, 0, 0)), components((9.0, 9, 9)), jnp.asarray(0.3))
        _, torque, memory = indi.attitude2force_torque(drone, setpoint, memory, dt, params)
        before = rate
        # Over a tick the torque rises, as the model says.
        rate = rate + (actual + load) / inertia * dt
        actual = actual + share * (torque[0] - actual)
        turn = ((before + rate) / 2 * dt, 0 * rate, 0 * rate)
        return (rotate_quat(quat, turn), rate, actual, memory), 2 * jnp.arcsin(quat[0])

    zero = jnp.zeros(())
    start = (zero, zero, zero, zero + 1), zero, zero, fresh(indi.ATTITUDE_MEMORY)
    return rolled(step, start, n, every)


def test_the_angle_follows_the_linear_system_of_rotors_and_gains() -> None:
    """With the right inertia and no disturbance the filters cancel, whatever their cutoff."""
    goal, dt, n, every = 0.1, 2e-4, 10_000, 1000
    flown = turned(J[0], 0.0, goal, dt, n, every)
    lag = 1 / rotor_tau()
    matrix = np.array([[0, 1, 0], [0, 0, 1], [-lag * KR * KW, -lag * KW, -lag]])
    offset = np.array([0, 0, lag * KR * KW * goal])
    expected = linear(matrix, np.zeros(3), offset, np.arange(n // every) * every * dt)[:, 0]
    np.testing.assert_allclose(flown, expected, atol=0.02 * goal)


@pytest.mark.parametrize(("inertia", "load"), [(1.0, 2e-4), (1.2, 0.0), (0.8, -1e-4)])
def test_a_wrong_inertia_or_an_unknown_torque_leaves_no_error(inertia: float, load: float) -> None:
    flown = turned(inertia * J[0], load, 0.1, 2e-3, 10_000, 100)
    np.testing.assert_allclose(flown[-5:], 0.1, atol=1e-5)
    assert np.abs(flown).max() < 0.4


def test_torques_are_limited_and_the_model_follows_what_is_left() -> None:
    params, dt = indi.load_params("attitude", DRONE, 500), 0.002
    setpoint = (components((3.0, 0, 0)), components((0, 0, 0)), jnp.asarray(0.3))
    memory = fresh(indi.ATTITUDE_MEMORY)
    _, torque, memory = indi.attitude2force_torque(body(), setpoint, memory, dt, params)
    most = 32000 / 65535 * 2 * FIGURES["L"] * FIGURES["thrust_max"]
    assert torque[0] == pytest.approx(most, rel=1e-6)
    assert memory["torque"][0] == pytest.approx(most * -np.expm1(-dt / rotor_tau()), rel=1e-6)


def test_the_first_run_is_as_after_a_long_steady_flight() -> None:
    """A controller that takes over in flight sees neither an acceleration nor a jump."""
    rng = np.random.default_rng(1)
    vel, rates = rng.normal(0, 2, (2, 50, 3))
    drone = body(np.zeros((50, 3)), vel=vel, ang_vel=rates)
    memory = fresh(indi.POSITION_MEMORY, (50,))
    level = np.tile(LEVEL, (50, 1))
    setpoint = state_setpoint(vel / KP, 0 * vel, 0 * vel, level)  # wants the present velocity
    params = indi.load_params("state", DRONE, 100)
    rpy, thrust, _ = indi.state2attitude(drone, setpoint, memory, 0.01, params)
    np.testing.assert_allclose(array(rpy), 0, atol=1e-9)
    np.testing.assert_allclose(thrust, MASS * 9.81, rtol=1e-9)
    params = indi.load_params("attitude", DRONE, 500)
    level = (components(np.zeros((50, 3))), components(np.zeros((50, 3))), jnp.full(50, 0.3))
    memory = fresh(indi.ATTITUDE_MEMORY, (50,))
    _, torque, _ = indi.attitude2force_torque(drone, level, memory, 0.002, params)
    most = np.asarray(params["torque_max"])
    np.testing.assert_allclose(array(torque), np.clip(-KW * rates * J, -most, most), rtol=1e-9)


def flown(force: np.ndarray, mass: float, goal: np.ndarray, dt: float, n: int, every: int):
    """A point of another mass with an external force, behind the modelled rotors."""
    params, share = indi.load_params("state", DRONE, 1 / dt), -np.expm1(-dt / rotor_tau())

    def step(carry: Any) -> Any:
        pos, vel, actual, quat, memory = carry
        rpy, thrust, memory = indi.state2attitude(
            body(pos, quat, vel), state_setpoint(goal), memory, dt, params
        )
        up = jnp.stack(transpose(rotation_matrix_from_rpy(rpy))[2])
        # The drone turns at once, and its thrust follows.
        acc = (actual * up + force) / mass - jnp.array([0, 0, 9.81])
        actual = actual + share * (thrust - actual)
        roll, pitch, _ = rpy
        half = (jnp.sin(roll / 2), jnp.cos(roll / 2), jnp.sin(pitch / 2), jnp.cos(pitch / 2))
        quat = jnp.stack(
            (half[0] * half[3], half[1] * half[2], -half[0] * half[2], half[1] * half[3])
        )
        after = vel + acc * dt
        return (pos + (vel + after) / 2 * dt, after, actual, quat, memory), pos

    start = (
        *(jnp.zeros(3), jnp.zeros(3), jnp.asarray(MASS * 9.81)),
        *(jnp.array([0.0, 0, 0, 1]), fresh(indi.POSITION_MEMORY)),
    )
    return rolled(step, start, n, every)


def test_the_height_follows_the_linear_system_of_rotors_and_gains() -> None:
    goal, dt, n, every = 0.3, 2e-3, 2500, 250
    heights = flown(np.zeros(3), MASS, np.array([0, 0, goal]), dt, n, every)[:, 2]
    lag = 1 / rotor_tau()
    matrix = np.array([[0, 1, 0], [0, 0, 1], [-lag * KP * KD, -lag * KD, -lag]])
    offset = np.array([0, 0, lag * KP * KD * goal])
    expected = linear(matrix, np.zeros(3), offset, np.arange(n // every) * every * dt)[:, 0]
    np.testing.assert_allclose(heights, expected, atol=0.02 * goal)


@pytest.mark.parametrize("mass", [1.0, 1.2])
def test_unknown_forces_and_a_wrong_mass_leave_no_error(mass: float) -> None:
    force, goal = np.array([0.02, -0.03, 0.05]), np.array([0.3, 0.2, -0.4])
    path = flown(force, mass * MASS, goal, 0.01, 2000, 100)
    np.testing.assert_allclose(path[-3:], np.tile(goal, (3, 1)), atol=1e-5)


def test_tilt_and_thrust_have_their_limits() -> None:
    params, far = indi.load_params("state", DRONE, 100), state_setpoint((50.0, -50.0, 50.0))
    memory = fresh(indi.POSITION_MEMORY)
    rpy, thrust, _ = indi.state2attitude(body(), far, memory, 0.01, params)
    np.testing.assert_allclose(np.abs(array(rpy)), np.deg2rad([10, 10, 0]), atol=1e-9)
    assert thrust == pytest.approx(4 * FIGURES["thrust_max"])
    _, least, _ = indi.state2attitude(body(), state_setpoint((0, 0, -50.0)), memory, 0.01, params)
    assert least == pytest.approx(4 * FIGURES["thrust_min"])  # its rotors keep turning


def test_the_thrust_is_tilted_along_the_heading() -> None:
    quat = Rotation.from_euler("z", 2.0)
    drone = body(quat=quat.as_quat())
    goal = state_setpoint(quat.apply([0.1, 0.0, 0.0]), quat=quat.as_quat())
    params, memory = indi.load_params("state", DRONE, 100), fresh(indi.POSITION_MEMORY)
    rpy, _, _ = indi.state2attitude(drone, goal, memory, 0.01, params)
    np.testing.assert_allclose(array(rpy), [0, np.arctan2(0.5, 9.81), 2.0], atol=1e-9)
