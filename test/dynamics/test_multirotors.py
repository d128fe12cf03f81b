"""Drones with six and eight rotors, against MuJoCo's dynamics and flights of `Sim`."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from multirotors import HEXA, OCTO, tilted
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Control, PowerDistribution, mellinger
from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import RPM, Dynamics, SlungLoad
from crazyflow_ros.dynamics.components import BodyState, Wrench, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.conditions import AIR, Conditions
from crazyflow_ros.sim import MotorFailure, Sim
from crazyflow_ros.sim.pipeline import insert_before

pytestmark = pytest.mark.usefixtures("double_precision")

G = 9.81


@pytest.fixture(params=[HEXA, OCTO, "tilted"])
def drone(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return tilted(tmp_path / "tilted") if request.param == "tilted" else request.param


def forces_of(drone: str, speeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return thrust [N] and drag torque [N m] of each rotor as vectors in the body frame."""
    rotors = rotors_of(drone)
    thrust, drag = ((c * speeds[:, None] ** (0, 1, 2)).sum(axis=1) for c in
                    (rotors.rpm2thrust, rotors.rpm2torque))  # fmt: skip
    return thrust[:, None] * rotors.axis, -(rotors.spin * drag)[:, None] * rotors.axis


def test_the_wrench_on_the_body_is_that_of_mujoco(drone: str) -> None:
    """With gyroscopic and reaction torques of the rotors: MuJoCo's inverse dynamics of the drawn
    drone, whose joints move as ours, returns thrust and torque of the rotors alone."""
    rng, rotors = np.random.default_rng(3), rotors_of(drone)
    n = len(rotors)
    speeds, command = rng.uniform(5000, 9000, (2, n))
    turn = Rotation.random(random_state=4)
    vel, ang_vel = rng.normal(size=(2, 3))
    state = BodyState(*(split(jnp.asarray(x)) for x in
                        (np.zeros(3), turn.as_quat(), vel, ang_vel, speeds)))  # fmt: skip
    params = Params.create(drone).replace(drag_matrix=jnp.zeros((3, 3)))
    still = Wrench(split(jnp.zeros(3)), split(jnp.zeros(3)))
    ours = params.derivative(state, split(jnp.asarray(command)), still)

    model = build_spec(drone, ["a"]).compile()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qpos[:7] = [0, 0, 5, *np.roll(turn.as_quat(), 1)]
    data.qvel[:] = [*vel, *ang_vel, *speeds * RPM]
    data.qacc[:] = np.concatenate(
        [stack(ours.acc), stack(ours.ang_acc), stack(ours.rotor_acc) * RPM]
    )
    mujoco.mj_inverse(model, data)
    pull, drag = forces_of(drone, speeds)
    torque = (np.cross(rotors.position, pull) + drag).sum(axis=0)
    expected = [*turn.apply(pull.sum(axis=0)), *torque]
    np.testing.assert_allclose(data.qfrc_inverse[:6], expected, rtol=1e-9, atol=1e-9)


def test_flights_are_those_of_mujoco_with_as_many_thrusters(drone: str) -> None:
    """A drone that tumbles under unequal constant thrusts, without angular momentum of rotors."""
    rng, rotors, figures = np.random.default_rng(5), rotors_of(drone), load_drone(drone)
    speeds = rotors.hover_speeds(figures["mass"] * G) * rng.uniform(0.99, 1.01, len(rotors))
    pull, drag = forces_of(drone, speeds)
    thrust = np.linalg.norm(pull, axis=1)
    sites, motors = [], []
    for i, (place, axis, f, q) in enumerate(zip(rotors.position, rotors.axis, thrust, drag)):
        quat = Rotation.align_vectors([axis], [[0, 0, 1]])[0].as_quat(scalar_first=True)
        sites.append(f'<site name="s{i}" pos="{" ".join(map(str, place))}" '
                     f'quat="{" ".join(map(str, quat))}"/>')  # fmt: skip
        motors.append(f'<motor site="s{i}" gear="0 0 {f} 0 0 {q @ axis}"/>')
    inertia = " ".join(map(str, np.diag(figures["J"])))
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="0.002" integrator="RK4"/>
        <worldbody><body pos="0 0 3"><freejoint/>
        <inertial pos="0 0 0" mass="{figures["mass"]}" diaginertia="{inertia}"/>{"".join(sites)}
        </body></worldbody><actuator>{"".join(motors)}</actuator></mujoco>""")
    data = mujoco.MjData(model)
    data.ctrl[:] = 1
    mujoco.mj_step(model, data, 500)

    sim = Sim(drone=drone, control="rotor_vel", integrator="rk4", forces=())
    params = sim.data.params
    params = params.replace(
        drag_matrix=0 * params.drag_matrix, prop_inertia=0 * params.prop_inertia
    )
    states = sim.data.states
    states = states.replace(
        pos=states.pos.at[..., 2].set(3), rotor_vel=jnp.broadcast_to(speeds, states.rotor_vel.shape)
    )
    sim.data = sim.data.replace(params=params, states=states)
    sim.rotor_vel_control(speeds[None, None])
    sim.step(500)
    ours = sim.data.states
    assert abs(Rotation.from_quat(ours.quat[0, 0]).magnitude()) > 0.1
    np.testing.assert_allclose(ours.pos[0, 0], data.qpos[:3], atol=1e-7)
    np.testing.assert_allclose(ours.quat[0, 0], np.roll(data.qpos[3:], -1), atol=1e-7)
    np.testing.assert_allclose(ours.ang_vel[0, 0], data.qvel[3:], atol=1e-7)


@pytest.mark.parametrize("distribution", list(PowerDistribution))
def test_the_mixer_gives_thrust_and_torque_as_wanted(drone: str, distribution: str) -> None:
    rotors, figures = rotors_of(drone), load_drone(drone)
    params = mellinger.load_params("force_torque", drone)
    wanted = np.array([figures["mass"] * G, 0.4, -0.3, 0.05])
    speeds = mellinger.force_torque2rotor_vel(
        jnp.asarray(wanted[0]),
        split(jnp.asarray(wanted[1:])),
        params,
        PowerDistribution(distribution),
    )
    pull, drag = forces_of(drone, np.array(speeds))
    torque = (np.cross(rotors.position, pull) + drag).sum(axis=0)
    np.testing.assert_allclose([*pull.sum(axis=0), *torque], [0, 0, *wanted], atol=2e-9)


def test_saturated_rotors_keep_the_torque(drone: str) -> None:
    rotors = rotors_of(drone)
    params = mellinger.load_params("force_torque", drone)
    wanted = np.array([2 * rotors.most_thrust, 1.0, -0.5, 0.1])

    def wrench(distribution: str) -> np.ndarray:
        torque = split(jnp.asarray(wanted[1:]))
        speeds = np.array(
            mellinger.force_torque2rotor_vel(
                jnp.asarray(wanted[0]), torque, params, PowerDistribution(distribution)
            )
        )
        assert (speeds <= rotors.vel_limits[1] * (1 + 1e-12)).all()
        pull, drag = forces_of(drone, speeds)
        return np.array([pull[:, 2].sum(), *(np.cross(rotors.position, pull) + drag).sum(axis=0)])

    capped, clipped = wrench("capped"), wrench("clipped")
    np.testing.assert_allclose(capped[1:], wanted[1:], atol=1e-9)
    assert 0.7 * rotors.most_thrust < capped[0] < rotors.most_thrust
    assert clipped[0] > capped[0] and np.abs(clipped[1:] - wanted[1:]).max() > 0.1


def test_a_low_battery_takes_the_same_share_from_all_rotors() -> None:
    rotors, params = rotors_of(OCTO), mellinger.load_params("force_torque", OCTO)
    low = 0.5 * rotors.thrust_limits[1].min()
    none = split(jnp.zeros(3))
    speeds = mellinger.force_torque2rotor_vel(
        jnp.asarray(99.0), none, params, PowerDistribution.capped, jnp.asarray(low)
    )
    pull, _ = forces_of(OCTO, np.array(speeds))
    np.testing.assert_allclose(pull[:, 2], 0.5 * rotors.thrust_limits[1])


@pytest.mark.parametrize("distribution", list(PowerDistribution))
def test_it_hovers_and_flies_a_square(drone: str, distribution: str) -> None:
    sim = Sim(drone=drone, control="state", true_mass=True, power_distribution=distribution)
    for x, y in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0)):
        command = np.zeros((1, 1, 13))
        command[..., :3], command[..., 9] = (x, y, 1), 0.5
        sim.state_control(command)
        sim.step(4 * sim.freq)
        np.testing.assert_allclose(sim.data.states.pos[0, 0], [x, y, 1], atol=0.08)
    sim.step(4 * sim.freq)
    weight = load_drone(drone)["mass"] * G
    hover = rotors_of(drone).hover_speeds(weight)
    np.testing.assert_allclose(sim.data.states.rotor_vel[0, 0], hover, rtol=5e-3)


def test_its_rotors_carry_a_load_in_thin_air(drone: str) -> None:
    thin = Conditions(density=0.8 * AIR)
    load = SlungLoad(mass=0.3, stiffness=2000.0, damping=5.0)
    sim = Sim(drone=drone, control="state", true_mass=True, conditions=thin, payload=load)
    command = np.zeros((1, 1, 13))
    command[..., 2], command[..., 9] = 2.0, 0.5
    sim.state_control(command)
    sim.step(12 * sim.freq)
    thrust, _ = forces_of(drone, np.asarray(sim.data.states.rotor_vel[0, 0]))
    weight = (load_drone(drone)["mass"] + 0.3) * G
    np.testing.assert_allclose(0.8 * thrust.sum(axis=0), [0, 0, weight], atol=1e-3 * weight)
    np.testing.assert_allclose(sim.data.payload.tension[0, 0, 0], 0.3 * G, rtol=1e-3)


@pytest.mark.parametrize("rotor", [0, 1])
def test_an_octocopter_flies_on_without_a_rotor(rotor: int) -> None:
    """Integrals and gains are enough: the thrust and torque of the others suffice."""
    sim = Sim(drone=OCTO, control="state", controller="mellinger", power_distribution="capped")
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", MotorFailure(rotor, time=4.0))
    command = np.zeros((1, 1, 13))
    command[..., 2] = 1
    sim.state_control(command)
    sim.step(12 * sim.freq)
    states = sim.data.states
    assert float(states.rotor_vel[0, 0, rotor]) < 1
    assert Rotation.from_quat(states.quat[0, 0]).as_matrix()[2, 2] > 0.95
    np.testing.assert_allclose(states.pos[0, 0, 2], 1, atol=0.5)


def test_commands_have_as_many_speeds_as_rotors() -> None:
    sim = Sim(drone=HEXA, control="rotor_vel")
    assert sim.data.states.rotor_vel.shape == (1, 1, 6)
    with pytest.raises(ValueError, match=r"must have shape \(1, 1, 6\), got \(1, 1, 4\)"):
        sim.rotor_vel_control(np.zeros((1, 1, 4)))
    with pytest.raises(ValueError, match="rotor must be one of 0 to 5, got 6"):
        sim.step_pipeline = (MotorFailure(6), *sim.step_pipeline)


@pytest.mark.parametrize("model", [model for model in Dynamics if not model.has_rotors])
def test_models_of_quadrotors_refuse_other_drones(model: Dynamics) -> None:
    with pytest.raises(ValueError, match="describes quadrotors, but hexa_x680 has tables of its 6"):
        Sim(drone=HEXA, dynamics=model, control=Control.attitude)


def test_worlds_of_different_drones_are_refused() -> None:
    with pytest.raises(ValueError, match="cf2x_L250 has 4 rotors, hexa_x680 6"):
        Sim(drone=["cf2x_L250", HEXA])
    sim = Sim(drone=[HEXA, HEXA], control="state")
    sim.step(2)
