"""The quadrotor model against closed-form motion, conservation laws, SciPy and MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from quadrotor_reference import SPIN, Quadrotor, State, angle_between, tumbling
from scipy.integrate import solve_ivp

from crazyflow_ros.drones import Drone
from crazyflow_ros.dynamics import Dynamics, first_principles
from crazyflow_ros.dynamics.components import BodyState, Wrench, no_wrench, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.sim import Sim

pytestmark = pytest.mark.usefixtures("double_precision")

DRONES = ["cf2x_L250", "cf21B_500"]
RPM = 2 * np.pi / 60
FREQ = 500


def derivative(
    states: list[State],
    commands: np.ndarray,
    params: Params,
    wrench: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Of a batch of drones: name to (n, k)."""
    fields = [np.stack([vars(s)[name] for s in states]) for name in vars(states[0])]
    body = BodyState(*(split(jnp.asarray(f)) for f in fields))
    wrench = wrench or (np.zeros((len(states), 3)),) * 2
    external = Wrench(*(split(jnp.asarray(w)) for w in wrench))
    rate = first_principles.derivative(body, split(jnp.asarray(commands)), external, params)
    return {name: np.asarray(stack(value)) for name, value in rate._asdict().items()}


@cache
def _simulation() -> Sim:
    return Sim(control="rotor_vel", integrator="rk4", freq=FREQ)


def simulation(state: State, drone: str) -> Sim:
    """One drone in rotor speed control, integrated with rk4; its rotors keep their speeds."""
    sim = _simulation()  # the same for all: drones differ in their data
    sim.reset()
    states = {k: jnp.asarray(v)[None, None] for k, v in vars(state).items()}
    sim.data = sim.data.replace(
        states=sim.data.states.replace(**states), params=Params.create(drone)
    )
    sim.rotor_vel_control(state.rotor_vel[None, None])
    return sim


def present(sim: Sim) -> State:
    states = sim.data.states
    return State(*(np.asarray(getattr(states, name))[0, 0] for name in vars(State())))


def set_params(sim: Sim, **changes: Any) -> None:
    sim.data = sim.data.replace(params=sim.data.params.replace(**changes))


@pytest.mark.parametrize("drone", DRONES)
def test_derivative_agrees_with_newton_and_euler(drone: str) -> None:
    quadrotor, rng = Quadrotor(drone), np.random.default_rng(1)
    states = [tumbling(quadrotor, seed) for seed in range(50)]
    commands = quadrotor.hover_speed() * rng.uniform(0.5, 1.2, (50, 4))
    forces, torques = rng.normal(0, 0.1, (50, 3)), rng.normal(0, 1e-3, (50, 3))
    ours = derivative(states, commands, Params.create(drone), (forces, torques))
    theirs = [quadrotor.derivative(*args) for args in zip(states, commands, forces, torques)]
    for name, field in [("acc", "vel"), ("ang_acc", "ang_vel"), ("rotor_acc", "rotor_vel")]:
        expected = np.stack([getattr(d, field) for d in theirs])
        np.testing.assert_allclose(ours[name], expected, rtol=1e-11, atol=1e-9)
    np.testing.assert_array_equal(ours["vel"], [s.vel for s in states])
    np.testing.assert_array_equal(ours["ang_vel"], [s.ang_vel for s in states])


@pytest.mark.parametrize("names", [("J",), ("J_inv",), ("J", "J_inv")])
@pytest.mark.parametrize("array", [np.asarray, jnp.asarray])
def test_a_full_inertia_matrix_is_used(names: tuple[str, ...], array: Any) -> None:
    """J and its inverse follow each other, also one for each of several drones."""
    quadrotor, rng = Quadrotor("cf2x_L250"), np.random.default_rng(2)
    tilt = rng.normal(size=(3, 3)) * 2e-6
    quadrotor.J = quadrotor.J + tilt + tilt.T
    state, command = tumbling(quadrotor), np.full(4, quadrotor.hover_speed())
    zero = np.zeros(3)
    expected = quadrotor.derivative(state, command, zero, zero).ang_vel
    params, known = Params.create("cf2x_L250"), {"J": quadrotor.J}
    known["J_inv"] = np.linalg.inv(quadrotor.J)
    changes = {k: array(known[k]) for k in names}
    ours = derivative([state], command[None], params.replace(**changes))["ang_acc"][0]
    np.testing.assert_allclose(ours, expected, rtol=1e-11)
    changes = {k: array([known[k], 2 * getattr(params, k)]) for k in names}
    both = derivative([state] * 2, np.stack([command] * 2), params.replace(**changes))["ang_acc"]
    np.testing.assert_allclose(both[0], expected, rtol=1e-11)


def test_the_gradient_of_the_inertia_is_that_of_the_equations() -> None:
    """Of the angular acceleration, against differences of the reference."""
    quadrotor, rng = Quadrotor("cf21B_500"), np.random.default_rng(5)
    state, command, zero = tumbling(quadrotor), np.full(4, quadrotor.hover_speed()), np.zeros(3)
    weights, nominal, params = rng.normal(size=3), quadrotor.J, Params.create("cf21B_500")
    body = BodyState(*(split(jnp.asarray(x)) for x in vars(state).values()))

    def ours(J: jax.Array) -> jax.Array:
        external = no_wrench(jnp.zeros(()))
        changed = params.replace(J=J)
        rate = first_principles.derivative(body, split(jnp.asarray(command)), external, changed)
        return stack(rate.ang_acc) @ weights

    def theirs(J: np.ndarray) -> float:
        quadrotor.J = J
        return float(weights @ quadrotor.derivative(state, command, zero, zero).ang_vel)

    gradient = np.asarray(jax.jit(jax.grad(ours))(jnp.asarray(nominal)))
    for _ in range(4):
        step = rng.normal(size=(3, 3)) * 1e-11
        step = step + step.T
        slope = (theirs(nominal + step) - theirs(nominal - step)) / 2
        np.testing.assert_allclose((gradient * step).sum(), slope, rtol=1e-5)


def test_figures_may_differ_by_rotor_and_by_drone() -> None:
    quadrotor = Quadrotor("cf21B_500")
    params, state = Params.create("cf21B_500"), tumbling(quadrotor)
    command = np.full((1, 4), quadrotor.hover_speed())
    factors = np.array([1.0, 0.9, 0.0, 1.2])  # rotor 2 is lost
    curve = params.rpm2thrust * factors[:, None]
    scaled = derivative([state], command, params.replace(rpm2thrust=curve))
    alone = [
        derivative(
            [replace(state, rotor_vel=state.rotor_vel * (np.arange(4) == i))], command, params
        )
        for i in range(4)
    ]
    bare = derivative([replace(state, rotor_vel=np.zeros(4))], command, params)["acc"]
    expected = bare + sum(f * (a["acc"] - bare) for f, a in zip(factors, alone))
    np.testing.assert_allclose(scaled["acc"], expected, rtol=1e-12)
    for name in ("L", "prop_inertia", "rpm2thrust", "rpm2torque", "rotor_dyn_coef"):
        value = getattr(params, name)
        same = params.replace(**{name: jnp.repeat(value, 4, axis=0)})
        for key, rate in derivative([state], command, same).items():
            reference = derivative([state], command, params)[key]
            np.testing.assert_allclose(rate, reference, rtol=1e-14, err_msg=name)
    heavy = params.replace(mass=params.mass * jnp.array([[1.0], [2.0]]))
    both = derivative([state, state], np.repeat(command, 2, axis=0), heavy)["acc"]
    np.testing.assert_allclose(both[1] + [0, 0, 9.81], (both[0] + [0, 0, 9.81]) / 2, rtol=1e-12)


@pytest.mark.parametrize("drone", DRONES)
def test_drag_leads_to_terminal_velocity(drone: str) -> None:
    quadrotor = Quadrotor(drone)
    sim = simulation(State(pos=np.array([0, 0, 5000.0]), vel=np.array([4.0, 0, 0])), drone)
    settling = -quadrotor.mass / np.diag(quadrotor.drag)
    terminal = np.array([0, 0, -9.81 * settling[2]])
    for seconds in (1, 4, 60):
        before = np.asarray(sim.time).item()
        sim.step(FREQ * seconds)
        decay = np.exp(-(before + seconds) / settling)
        expected = terminal + (np.array([4.0, 0, 0]) - terminal) * decay
        np.testing.assert_allclose(present(sim).vel, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(present(sim).vel, terminal, atol=1e-6)


def test_a_tumbling_body_conserves_angular_momentum_and_energy() -> None:
    quadrotor = Quadrotor("cf21B_500")  # three different moments of inertia
    start = State(pos=np.array([0, 0, 1e4]), quat=tumbling(quadrotor).quat)
    start.ang_vel = np.array([0.1, 12.0, 0.1])  # about the unstable axis: it flips over
    sim = simulation(start, "cf21B_500")
    momenta, energies, spins = [], [], []
    for _ in range(20):
        state = present(sim)
        momenta.append(state.attitude.apply(quadrotor.J @ state.ang_vel))
        energies.append(state.ang_vel @ quadrotor.J @ state.ang_vel / 2)
        spins.append(state.ang_vel[1])
        sim.step(FREQ // 4)
    assert min(spins) < -10 and max(spins) > 10
    np.testing.assert_allclose(momenta, [momenta[0]] * 20, atol=1e-9 * np.linalg.norm(momenta[0]))
    np.testing.assert_allclose(energies, energies[0], rtol=1e-9)


def test_rotors_exchange_angular_momentum_with_the_body() -> None:
    quadrotor = Quadrotor("cf2x_L250")
    speed = quadrotor.hover_speed()
    start = replace(tumbling(quadrotor), pos=np.array([0, 0, 1e3]))
    sim = simulation(start, "cf2x_L250")
    set_params(sim, rpm2thrust=jnp.zeros((1, 3)), rpm2torque=jnp.zeros((1, 3)))  # in vacuum
    sim.rotor_vel_control(speed * np.array([[[1.1, 0.6, 1.1, 0.6]]]))

    def momentum(state: State) -> np.ndarray:
        rotors = quadrotor.Jp * SPIN @ state.rotor_vel * RPM
        return state.attitude.apply(quadrotor.J @ state.ang_vel + [0, 0, rotors])

    momenta, spins = [], []
    for _ in range(10):
        momenta.append(momentum(present(sim)))
        spins.append(SPIN @ present(sim).rotor_vel)
        sim.step(FREQ // 20)
    assert np.ptp(spins) > speed  # they do change speed, which turns the body
    np.testing.assert_allclose(momenta, [momenta[0]] * 10, atol=1e-9 * np.linalg.norm(momenta[0]))


@pytest.mark.parametrize("drone", DRONES)
def test_rotors_follow_a_step_as_scipy_says(drone: str) -> None:
    quadrotor = Quadrotor(drone)
    start, command = np.array([8e3, 9e3, 18e3, 2e4]), np.array([18e3, 12e3, 9e3, 0.0])
    solution = solve_ivp(
        lambda _, speed: quadrotor.rotor_acceleration(speed, command),
        (0, 0.3),
        start,
        rtol=1e-12,
        atol=1e-9,
    )
    sim = simulation(State(pos=np.array([0, 0, 9.0]), rotor_vel=start), drone)
    sim.rotor_vel_control(command[None, None])
    sim.step(int(0.3 * FREQ))
    np.testing.assert_allclose(present(sim).rotor_vel, solution.y[:, -1], rtol=1e-8)


def twin(quadrotor: Quadrotor, timestep: float = 1e-4) -> mujoco.MjModel:
    """The drone in MuJoCo: a free body with four rotors on hinges, together of mass m, inertia J.

    Joint velocities are positive when the rotors turn their way.
    """
    rotor_mass, transverse = 1e-4, 0.6 * quadrotor.Jp
    of_rotor = np.diag([transverse, transverse, quadrotor.Jp])
    of_places = sum(rotor_mass * (r @ r * np.eye(3) - np.outer(r, r)) for r in quadrotor.rotors)
    base = np.diag(quadrotor.J - 4 * of_rotor - of_places)
    rotors = "".join(
        f"""
        <body pos="{x} {y} 0">
          <joint name="rotor{i}" axis="0 0 {spin}"/>
          <inertial pos="0 0 0" mass="{rotor_mass}"
            diaginertia="{transverse} {transverse} {quadrotor.Jp}"/>
        </body>"""
        for i, ((x, y, _), spin) in enumerate(zip(quadrotor.rotors, SPIN))
    )
    return mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep="{timestep}" integrator="RK4" gravity="0 0 -9.81"/>
        <worldbody>
          <body name="drone">
            <freejoint/>
            <inertial pos="0 0 0" mass="{quadrotor.mass - 4 * rotor_mass}"
              diaginertia="{base[0]} {base[1]} {base[2]}"/>{rotors}
          </body>
        </worldbody>
      </mujoco>""")


def write(state: State, data: mujoco.MjData) -> None:
    data.qpos[:3], data.qpos[3:7] = state.pos, np.roll(state.quat, 1)
    data.qvel[:] = np.concatenate([state.vel, state.ang_vel, state.rotor_vel * RPM])


@pytest.mark.parametrize("drone", DRONES)
@pytest.mark.parametrize("seed", range(3))
def test_mujoco_needs_our_wrench_for_our_acceleration(drone: str, seed: int) -> None:
    """Inverse dynamics of the twin: gyroscopic and reaction torques are MuJoCo's own."""
    quadrotor, rng = Quadrotor(drone), np.random.default_rng(seed)
    state = tumbling(quadrotor, seed)
    command = state.rotor_vel * rng.uniform(0.7, 1.3, 4)
    force, torque = rng.normal(0, 0.1, 3), rng.normal(0, 1e-3, 3)
    rate = derivative([state], command[None], Params.create(drone), (force[None], torque[None]))
    model = twin(quadrotor)
    data = mujoco.MjData(model)
    write(state, data)
    data.qacc[:] = np.concatenate([rate["acc"][0], rate["ang_acc"][0], rate["rotor_acc"][0] * RPM])
    mujoco.mj_inverse(model, data)
    air_force, air_torque = quadrotor.aerodynamic(state)
    R = state.attitude.as_matrix()
    np.testing.assert_allclose(data.qfrc_inverse[:3], R @ air_force + force, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        data.qfrc_inverse[3:6], air_torque + R.T @ torque, rtol=1e-9, atol=1e-13
    )


def test_mujoco_flies_the_same_way_under_the_same_wrench() -> None:
    quadrotor, rng = Quadrotor("cf21B_500"), np.random.default_rng(3)
    start = replace(tumbling(quadrotor, 5), rotor_vel=np.zeros(4), pos=np.array([0, 0, 9.0]))
    force, torque = rng.normal(0, 0.3, 3), rng.normal(0, 1e-4, 3)
    sim = simulation(start, "cf21B_500")
    set_params(sim, drag_matrix=jnp.zeros((3, 3)), prop_inertia=jnp.zeros(1))
    states = sim.data.states
    sim.data = sim.data.replace(
        states=states.replace(force=states.force + force, torque=states.torque + torque)
    )
    quadrotor.Jp = 1e-13  # rotors that count for nothing
    model = twin(quadrotor)
    data = mujoco.MjData(model)
    write(start, data)
    data.xfrc_applied[model.body("drone").id] = [*force, *torque]

    def deviations() -> list[float]:
        ours, quat = present(sim), np.roll(data.qpos[3:7], -1)
        return [
            float(np.abs(ours.pos - data.qpos[:3]).max()),
            angle_between(ours.quat, quat),
            float(np.abs(ours.vel - data.qvel[:3]).max()),
            float(np.abs(ours.ang_vel - data.qvel[3:6]).max()),
        ]

    for ticks, tolerance in ((1, 1e-9), (249, 1e-6)):
        sim.step(ticks)
        mujoco.mj_step(model, data, ticks * 20)
        assert max(deviations()) < tolerance
    assert angle_between(start.quat, present(sim).quat) > 0.5


def test_sensitivities_equal_finite_differences() -> None:
    sim = Sim(2, 1, control="attitude", drone="cf2x_L250")
    states = sim.data.states
    sim.data = sim.data.replace(states=states.replace(pos=states.pos + jnp.array([0, 0, 1.0])))
    check_gradient(sim, jnp.tile(jnp.array([0.2, -0.1, 0.3, 0.33]), (2, 1, 1)), n_steps=40)


@pytest.mark.soak
def test_sensitivities_equal_finite_differences_in_contact() -> None:
    drone = "cf21B_500"
    contact = floor_contact(drone, 500)
    sim = Sim(drone=drone, control="rotor_vel", forces=(contact,))
    states = sim.data.states
    tilt = jnp.array([[[0.1, 0.05, 0, 0.99]]])
    sim.data = sim.data.replace(
        states=states.replace(
            pos=states.pos + jnp.array([0, 0, 0.03]),
            quat=tilt / jnp.linalg.norm(tilt),
            vel=states.vel + jnp.array([0.5, 0, -1.0]),
        )
    )
    command = jnp.full((1, 1, 4), 9000.0)
    end = sim.build_step_fn()(sim.data, 30).states
    assert end.vel[0, 0, 0] < 0.45 and end.vel[0, 0, 2] > -0.9  # braked by friction and floor
    check_gradient(sim, command, n_steps=30)


def check_gradient(sim: Sim, command: jax.Array, n_steps: int) -> None:
    """Of a number that depends on everything, by command, initial state and mass."""
    step = sim.build_step_fn()
    base = sim.data
    level = sim.control

    def outcome(inputs: dict[str, jax.Array]) -> jax.Array:
        states = base.states.replace(
            pos=base.states.pos + inputs["pos"],
            vel=base.states.vel + inputs["vel"],
            ang_vel=base.states.ang_vel + inputs["ang_vel"],
        )
        controls = base.controls
        if level == "rotor_vel":
            controls = controls.replace(rotor_vel=command + inputs["command"])
        else:
            attitude = controls.attitude.replace(cmd=command + inputs["command"])
            controls = controls.replace(attitude=attitude)
        params = base.params.replace(mass=base.params.mass + inputs["mass"])
        end = step(base.replace(states=states, controls=controls, params=params), n_steps).states
        return (
            (end.pos * jnp.array([1.0, 2.0, 3.0])).sum()
            + (end.vel**2).sum()
            + (end.ang_vel * jnp.array([0.1, 0.2, 0.3])).sum()
            + (end.quat * jnp.array([4.0, 3.0, 2.0, 1.0])).sum()
        )

    scales = {"pos": 1e-7, "vel": 1e-7, "ang_vel": 1e-7, "mass": 1e-9, "command": 1e-7}
    shapes = {"mass": (1,), "command": command.shape}
    zero = {k: jnp.zeros(shapes.get(k, base.states.pos.shape)) for k in scales}
    gradient = jax.jit(jax.grad(outcome))(zero)
    outcome = jax.jit(outcome)
    rng = np.random.default_rng(0)
    for name, h in scales.items():
        h *= 1e5 if (name, level) == ("command", "rotor_vel") else 1  # it is in RPM
        along = jnp.asarray(rng.normal(size=zero[name].shape))
        plus, minus = (outcome(zero | {name: zero[name] + sign * h * along}) for sign in (1, -1))
        numeric, exact = float((plus - minus) / (2 * h)), float((gradient[name] * along).sum())
        assert np.isfinite(np.asarray(gradient[name])).all()
        assert abs(exact) > 1e-9, f"{name} has no influence"
        assert numeric == pytest.approx(exact, rel=1e-5), name


def test_models_by_name() -> None:
    assert Dynamics.default is Dynamics.first_principles
    assert Drone("cf2x_L250") is Drone.cf2x_L250
    for name, value in [("drone", "cf3"), ("dynamics", "mujoco"), ("control", "thrust")]:
        with pytest.raises(ValueError, match=f"there is no {name} '{value}', only "):
            Sim(**{name: value})
