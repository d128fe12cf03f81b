"""The fitted models: roll, thrust and drag against closed forms, limits, rates, refusals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import Drone, load_drone, load_model
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.components import BodyState, Wrench, split, stack
from crazyflow_ros.sim import Sim

DRONE, MODEL = Drone.cf2x_P250, Dynamics.so_rpy_rotor_drag
WEIGHT = load_drone(DRONE)["mass"] * 9.81


def test_roll_answers_like_a_spring_and_thrust_with_a_lag() -> None:
    figures, seconds = load_model(DRONE, MODEL), 0.3
    with jax.enable_x64(True):
        sim = Sim(drone=DRONE, dynamics=MODEL, control="attitude", integrator="rk4", freq=1000)
        high = sim.data.states.replace(pos=jnp.array([[[0.0, 0, 100]]]))
        sim.data = sim.data.replace(states=high)
        sim.attitude_control([[[0.3, 0, 0, WEIGHT]]])
        sim.step(300)
        states = jax.device_get(sim.data.states)
    stiffness, damping, answer = (
        figures[f"{name}_coef"][0] for name in ("rpy", "rpy_rates", "cmd_rpy")
    )
    settled = -answer / stiffness * 0.3
    motion = expm(np.array([[0, 1], [stiffness, damping]]) * seconds)
    roll, rate = motion @ [-settled, 0] + [settled, 0]
    angles = Rotation.from_quat(states.quat[0, 0]).as_euler("xyz")
    np.testing.assert_allclose(angles, [roll, 0, 0], atol=1e-7)
    np.testing.assert_allclose(states.ang_vel[0, 0], [rate, 0, 0], atol=1e-6)
    thrust = WEIGHT * (1 - np.exp(-figures["thrust_dyn_coef"][0] * seconds))
    np.testing.assert_allclose(states.rotor_vel[0, 0], np.full(4, thrust), rtol=1e-9)


def test_wrenches_act_as_on_a_rigid_body() -> None:
    """Differences to the derivative without them, with any attitude and full matrices."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        params = MODEL.params.create(DRONE)
        J = np.diag([1.0, 2, 2.5]) * 1e-5 + 1e-6
        drag = -np.diag([1.0, 2, 3]) - 0.1
        params = params.replace(
            J=jnp.array(J), J_inv=jnp.linalg.inv(J), drag_matrix=jnp.array(drag)
        )
        attitude = Rotation.random(rng=rng)
        vel, force, torque = rng.normal(size=(3, 3))
        zero, ang_vel, rotor_vel = np.zeros(3), rng.normal(size=3), np.full(4, 0.3)

        def rates(vel: np.ndarray, force: np.ndarray, torque: np.ndarray) -> np.ndarray:
            fields = (zero, attitude.as_quat(), vel, ang_vel, rotor_vel)
            state = BodyState(*(split(jnp.array(f)) for f in fields))
            command = split(jnp.array([0.1, 0.2, 0.3, 0.4]))
            wrench = Wrench(split(jnp.array(force)), split(jnp.array(torque)))
            rate = params.derivative(state, command, wrench)
            return np.array([stack(rate.acc), stack(rate.ang_acc)])

        bare = rates(zero, zero, zero)
        pushed = rates(zero, force, torque) - bare
        moving = rates(vel, zero, zero) - bare
    mass, R = float(params.mass[0]), attitude.as_matrix()
    np.testing.assert_allclose(pushed[0], force / mass, rtol=1e-10)
    np.testing.assert_allclose(pushed[1], np.linalg.solve(J, R.T @ torque), rtol=1e-10)
    np.testing.assert_allclose(moving[0], R @ drag @ R.T @ vel / mass, rtol=1e-10)
    np.testing.assert_allclose(moving[1], 0, atol=1e-9)


def test_commands_wait_for_their_rate_and_stay_within_limits() -> None:
    sim = Sim(1, 4, drone=DRONE, dynamics=MODEL, control="attitude", attitude_freq=100)
    sim.step()
    armed = jnp.array([[[True], [True], [True], [False]]])
    sim.data = sim.data.replace(controls=sim.data.controls.replace(armed=armed))
    thrust = np.array([0.0, -1, 100, WEIGHT])
    sim.attitude_control(thrust[None, :, None] * np.array([0.0, 0, 0, 1]))
    for tick in range(1, 7):
        sim.step()
        applied = np.asarray(sim.data.controls.actuators[0, :, 3])
        limits = 4 * np.array([load_drone(DRONE)[f"thrust_{end}"] for end in ("min", "max")])
        expected = [0, *limits, 0] if tick >= 5 else np.zeros(4)
        np.testing.assert_allclose(applied, expected, rtol=1e-6)


def test_straight_up_nothing_becomes_infinite() -> None:
    sim = Sim(1, 2, drone=DRONE, dynamics=MODEL, control="attitude", attitude_freq=100)
    quat = Rotation.from_euler("xyz", [[0, np.pi / 2, 0], [1, -np.pi / 2, 2]]).as_quat()
    states = sim.data.states
    states = states.replace(
        quat=jnp.asarray(quat[None], states.pos.dtype), ang_vel=jnp.ones_like(states.vel)
    )
    sim.data = sim.data.replace(states=states)
    sim.attitude_control(np.array([[[0, 1.5, 0, WEIGHT]]]).repeat(2, axis=1))
    for _ in range(10):
        sim.step(50)
        assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(sim.data.states))


@pytest.mark.parametrize("control", ["body_rate", "force_torque", "rotor_vel"])
def test_what_the_models_cannot_follow_is_refused(control: str) -> None:
    with pytest.raises(ValueError, match=f"control={control} needs dynamics=first_principles"):
        Sim(dynamics="so_rpy", control=control)
