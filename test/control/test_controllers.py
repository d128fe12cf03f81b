"""All controllers in flight: hovering from random starts, disturbances, gradients, selection."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control_helpers import body, components, fresh, state_setpoint
from quadrotor_reference import Quadrotor
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.sim import Sim, SimData, functional

DRONE = "cf2x_L250"
SIZE = (32, 2)  # worlds and drones; what is compiled for one kind of drone flies the others
OTHERS = [c for c in Controller if c is not Controller.default]


def flying(
    controller: str, size: tuple[int, int] = SIZE, drone: str = DRONE, **options: str
) -> Sim:
    """Drones near 1 m with rotors at hover speed, sent to (0, 0, 1)."""
    sim = Sim(*size, drone=drone, control="state", controller=controller, true_mass=True, **options)
    rng, states = np.random.default_rng(0), sim.data.states
    tilt, yaw = rng.uniform(-0.1, 0.1, (*size, 2)), rng.uniform(-0.3, 0.3, (*size, 1))
    turned = Rotation.from_euler("xyz", np.concatenate((tilt, yaw), -1).reshape(-1, 3))
    sim.data = sim.data.replace(
        states=states.replace(
            pos=jnp.asarray(rng.uniform([-0.15, -0.15, 0.9], [0.15, 0.15, 1.1], (*size, 3))),
            quat=jnp.asarray(turned.as_quat().reshape(*size, 4)),
            vel=jnp.asarray(rng.uniform(-0.15, 0.15, (*size, 3))),
            rotor_vel=states.rotor_vel + Quadrotor(drone).hover_speed(),
        )
    )
    sim.state_control(hover(size))
    return sim


def hover(size: tuple[int, int]) -> np.ndarray:
    command = np.zeros((*size, 13))
    command[..., 2] = 1.0
    return command


def error(sim: Sim) -> np.ndarray:
    """Distance from the commanded position, of each drone."""
    return np.linalg.norm(np.asarray(sim.data.states.pos) - [0, 0, 1], axis=-1)


@pytest.mark.parametrize("controller", Controller)
def test_hover_from_random_starts(controller: str) -> None:
    sim, most = flying(controller), 0.0
    for _ in range(20):
        sim.step(sim.freq // 2)
        most = max(most, float(error(sim).max()))
    assert most < 0.35
    assert error(sim).max() < 0.01
    assert np.abs(sim.data.states.ang_vel).max() < 1e-2
    upright = Rotation.from_quat(np.asarray(sim.data.states.quat).reshape(-1, 4))
    np.testing.assert_allclose(upright.as_euler("xyz"), 0, atol=0.02)


@pytest.mark.parametrize("controller", OTHERS)
@pytest.mark.parametrize("drone", [drone for drone in Drone if drone != DRONE])
def test_every_drone_hovers(controller: str, drone: str) -> None:
    sim = flying(controller, drone=drone)
    sim.step(10 * sim.freq)
    assert error(sim).max() < 0.01
    assert np.abs(sim.data.states.ang_vel).max() < 0.02


@pytest.mark.parametrize("controller", OTHERS)
def test_fitted_models_follow_the_position_controllers(controller: str) -> None:
    sim = flying(controller, dynamics="so_rpy_rotor_drag")
    states = sim.data.states
    weight = load_drone(DRONE)["mass"] * 9.81
    sim.data = sim.data.replace(states=states.replace(rotor_vel=0 * states.rotor_vel + weight))
    sim.step(10 * sim.freq)
    assert error(sim).max() < 0.01


def test_what_a_constant_force_leaves() -> None:
    """Integrals and increments remove it; Brescianini's spring gives by tau^2 F / m."""
    force = np.array([0.02, -0.015, 0.03], np.float32)
    left = {}
    for controller in Controller:
        sim = flying(controller)
        states = sim.data.states
        sim.data = sim.data.replace(states=states.replace(force=states.force + force))
        sim.step(200 * sim.freq)
        left[controller] = np.asarray(sim.data.states.pos) - [0, 0, 1]
    spring = np.broadcast_to(0.3**2 * force / load_drone(DRONE)["mass"], (*SIZE, 3))
    np.testing.assert_allclose(left[Controller.brescianini], spring, rtol=0.02)
    np.testing.assert_allclose(left[Controller.mellinger][..., :2], 0, atol=2e-3)
    np.testing.assert_allclose(left[Controller.indi], 0, atol=2e-3)
    np.testing.assert_allclose(left[Controller.pid], 0, atol=2e-3)


def test_what_a_constant_torque_leaves() -> None:
    """INDI and PID turn back to the commanded attitude; Brescianini's is off by tau tau_r T / J."""
    torque, figures = 2e-5, load_drone(DRONE)
    left = {}
    for controller in OTHERS:
        sim = Sim(drone=DRONE, control="attitude", controller=controller)
        states = sim.data.states
        sim.data = sim.data.replace(
            states=states.replace(
                pos=states.pos + jnp.array([0, 0, 50.0]),
                rotor_vel=states.rotor_vel + Quadrotor(DRONE).hover_speed(),
                torque=states.torque + jnp.array([torque, 0, 0]),
            )
        )
        sim.attitude_control([[[0.0, 0.0, 0.0, figures["mass"] * 9.81]]])
        sim.step(5 * sim.freq)
        left[controller] = Rotation.from_quat(sim.data.states.quat[0, 0]).as_euler("xyz")[0]
    expected = 0.25 * 0.015 * torque / figures["J"][0, 0]
    assert left[Controller.brescianini] == pytest.approx(expected, rel=0.05)
    assert abs(left[Controller.indi]) < expected / 10
    assert abs(left[Controller.pid]) < expected / 10


@pytest.mark.parametrize("controller", Controller)
def test_drones_of_a_batch_do_not_notice_one_another(controller: str) -> None:
    command = hover(SIZE) + np.linspace(-0.03, 0.03, 2 * SIZE[0]).reshape(*SIZE, 1)
    command[..., 3:] = 0
    flown = []
    for further in (0.0, 0.05):
        sim = flying(controller)
        command[7, 1, 0] += further
        sim.state_control(command)
        sim.step(10 * sim.freq)
        flown.append(np.asarray(sim.data.states.pos))
    differs = (flown[0] != flown[1]).any(-1)
    assert np.argwhere(differs).tolist() == [[7, 1]]
    assert np.linalg.norm(flown[1] - command[..., :3], axis=-1).max() < 0.01


def assert_differentiable(fn: Callable[[jax.Array], jax.Array], x: jax.Array) -> None:
    """The gradient is finite, not zero, and that of central differences."""
    gradient, h = jax.jit(jax.grad(fn))(x), 1e-6
    value, units = jax.jit(fn), jnp.eye(x.size)
    differences = [(value(x + h * e) - value(x - h * e)) / (2 * h) for e in units]
    assert np.isfinite(gradient).all() and (np.abs(gradient) > 0).all()
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("controller", OTHERS)
def test_a_controller_has_the_gradient_of_finite_differences(controller: str) -> None:
    """Of its second run, by everything that is measured."""
    with jax.enable_x64(True):
        cascade = controller.cascade
        state = cascade.load_params("state", DRONE, 100)
        attitude = cascade.load_params("attitude", DRONE, 500)
        setpoint = state_setpoint((0.1, -0.1, 0.05), (0.1, 0.2, 0.1), (0.3, 0.1, 0.2))

        def output(x: jax.Array) -> jax.Array:
            pos, quat, vel, ang_vel = jnp.split(x, [3, 7, 10])
            outer, inner = fresh(cascade.POSITION_MEMORY), fresh(cascade.ATTITUDE_MEMORY)
            first = body(0.9 * pos, (0, 0, 0, 1), 0.5 * vel, 0.5 * ang_vel)
            for drone in (first, body(pos, quat / jnp.linalg.norm(quat), vel, ang_vel)):
                rpy, thrust, outer = cascade.state2attitude(drone, setpoint, outer, 0.01, state)
                force, torque, inner = cascade.attitude2force_torque(
                    drone, (rpy, components((0, 0, 0.1)), thrust), inner, 0.002, attitude
                )
            return force + 300 * torque[0] - 500 * torque[1] + 900 * torque[2]

        x = np.random.default_rng(3).normal(0, 0.02, 13)
        x[6] = 1.0  # the real part of the attitude
        assert_differentiable(output, jnp.asarray(x))


@pytest.mark.parametrize("controller", OTHERS)
def test_an_axis_that_follows_a_rate_does_not_depend_on_its_angle(controller: str) -> None:
    """Nor on how long it was there; the desired torque vanishes at the desired rate."""
    with jax.enable_x64(True):
        cascade = controller.cascade
        params = cascade.load_params("attitude", DRONE, 500)

        def torque(roll: float, rate: float, told: float, runs: int = 1) -> np.ndarray:
            memory = fresh(cascade.ATTITUDE_MEMORY)
            drone = body((0, 0, 0), Rotation.from_euler("x", roll).as_quat(), ang_vel=(rate, 0, 0))
            setpoint = (components((0.3, 0, 0)), components((told, 0, 0)), jnp.asarray(0.3))
            axes = (jnp.asarray(True), jnp.asarray(False))
            for _ in range(runs):
                _, found, memory = cascade.attitude2force_torque(
                    drone, setpoint, memory, 0.002, params, axes
                )
            return np.asarray(found)

        start = torque(0.0, 0.0, 2.0)
        assert start[0] > 1e-5
        np.testing.assert_allclose(torque(1.2, 0.0, 2.0), start, atol=1e-12)
        np.testing.assert_allclose(torque(-2.5, 0.0, 2.0), start, atol=1e-12)
        if controller != "pid":  # whose derivative sees a jump of the rate in the first run
            np.testing.assert_allclose(torque(1.2, 2.0, 2.0), 0.0, atol=1e-12)
        upside = torque(3.0, 2.0, 2.0, 100)
        np.testing.assert_allclose(upside, torque(0.5, 2.0, 2.0, 100), atol=1e-9)


@pytest.mark.soak
def test_a_flight_has_the_gradient_of_finite_differences() -> None:
    with jax.enable_x64(True):
        sim = flying("indi", (1, 1))
        step = sim.build_step_fn()

        def place(x: jax.Array) -> jax.Array:
            """Of a drone after 20 ms, by setpoint, velocity and mass."""
            data: SimData = sim.data
            command = jnp.zeros((1, 1, 13)).at[..., :3].set(jnp.stack((x[0], 0.1, 1.0)))
            data = functional.state_control(data, command)
            data = data.replace(
                states=data.states.replace(vel=data.states.vel + x[1]),
                params=data.params.replace(mass=data.params.mass * x[2]),
            )
            pos = step(data, 10).states.pos[0, 0]
            return 2 * pos[0] - pos[1] + 3 * pos[2]

        assert_differentiable(place, jnp.array([0.05, 0.1, 1.0]))


@pytest.mark.parametrize("controller", [Controller.pid, Controller.indi])
def test_an_unarmed_drone_forgets(controller: str) -> None:
    sim = flying(controller)
    sim.step(50)

    def memory(data: SimData) -> list[np.ndarray]:
        controls = data.controls
        return jax.tree.leaves((controls.state.memory, controls.attitude.memory))

    assert all(np.any(x) for x in memory(sim.data))
    controls = sim.data.controls
    sim.data = sim.data.replace(controls=controls.replace(armed=~controls.armed))
    sim.step(10)
    for now in memory(sim.data):
        np.testing.assert_array_equal(now, 0)


def test_the_default_is_mellingers() -> None:
    assert Sim(control="state").controller is Controller.default is Controller.mellinger


def test_numbers_are_those_of_the_firmware() -> None:
    assert {str(c): c.number for c in Controller} == {
        "pid": 1,
        "mellinger": 2,
        "indi": 3,
        "brescianini": 4,
    }
    assert [Controller.of_number(c.number) for c in Controller] == list(Controller)
    expected = "there is no controller 5, only 1 pid, 2 mellinger, 3 indi, 4 brescianini"
    with pytest.raises(ValueError, match=expected):
        Controller.of_number(5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"controller": "lee"},
            "there is no controller 'lee', only pid, mellinger, indi, brescianini",
        ),
        *(
            (
                {"controller": "pid", "control": control},
                "controller=pid needs control=state or attitude with "
                f"dynamics=first_principles, got {control}",
            )
            for control in (Control.body_rate, Control.force_torque, Control.rotor_vel)
        ),
        (
            {"controller": "indi", "control": "attitude", "dynamics": "so_rpy"},
            "controller=indi needs control=state with dynamics=so_rpy, got attitude",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Sim(**options)
