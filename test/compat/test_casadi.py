"""CasADi's expressions against the right-hand side and Jacobians of JAX, and their refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as cs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from multirotors import HEXA, OCTO, QUADROTORS, tilted
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from crazyflow_ros.compat.casadi import CasadiModel, casadi_model
from crazyflow_ros.compat.dynamics import first_principles, parametrize
from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.components import BodyState, Wrench, split, stack
from crazyflow_ros.sim import Sim

N = 1000
DRONES = QUADROTORS
FITTED = [model for model in Dynamics if not model.has_rotors]
PARTS = {"pos": 3, "quat": 4, "vel": 3, "ang_vel": 3}


def of_jax(model: Dynamics, has_wrench: bool) -> Callable[..., jax.Array]:
    """The derivative of x in JAX, in which the quaternion's is that of a rotation by body rates."""
    n = model.params.ROTOR_STATES

    def derivative(x: jax.Array, u: jax.Array, p: jax.Array, params: Any) -> jax.Array:
        *body, rotors = jnp.split(x, np.cumsum([*PARTS.values()]))
        state = BodyState(*map(split, body), split(jnp.tile(rotors, 4 // n) if n else jnp.zeros(4)))
        force, torque = (p[:3], p[3:]) if has_wrench else jnp.zeros((2, 3))
        rate = params.derivative(state, split(u), Wrench(split(force), split(torque)))
        x_, y, z, w = body[1]
        half = jnp.array([[w, -z, y], [z, w, -x_], [-y, x_, w], [-x_, -y, -z]]) / 2
        rotor_acc = stack(rate.rotor_acc)[:n]
        parts = (stack(rate.vel), half @ body[3], stack(rate.acc), stack(rate.ang_acc), rotor_acc)
        return jnp.concatenate(parts)

    return derivative


def random_inputs(model: CasadiModel, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """N states and inputs within what the drone can do, and wrenches."""
    scale = model.input_limits[1, -1]
    x = rng.normal(size=(N, model.x.shape[0]))
    x[:, 3:7] = Rotation.random(N, rng=rng).as_quat()
    x[:, 10:13] *= 5
    x[:, 13:] = rng.uniform(0, scale, x[:, 13:].shape)
    u = rng.uniform(0, scale, (N, 4))
    if model.inputs[0].name == "rpy":
        u[:, :3] = rng.uniform(-1, 1, (N, 3))
    return x, u, rng.normal(size=(N, 6)) * ([0.1] * 3 + [1e-4] * 3)


def same(actual: np.ndarray, wanted: np.ndarray) -> None:
    """To 1e-12 of the largest value of each component; a few of them are sums of large numbers."""
    scale = np.maximum(1, np.abs(wanted).max(axis=0))
    assert np.abs((actual - wanted) / scale).max() < 1e-12


@pytest.mark.parametrize("kind", Dynamics)
def test_right_hand_side_and_jacobians_are_those_of_jax(kind: Dynamics) -> None:
    with jax.enable_x64(True):
        function = of_jax(kind, True)
        rates = jax.jit(jax.vmap(function, (0, 0, 0, None)))
        slopes = jax.vmap(jax.jacfwd(function, (0, 1, 2)), (0, 0, 0, None))
        jacobians = jax.jit(slopes)
        for seed, drone in enumerate(DRONES):
            model = casadi_model(kind, drone, wrench=True)
            inputs = random_inputs(model, np.random.default_rng(seed))
            params = kind.params.create(drone)
            columns = [values.T for values in inputs]
            same(np.array(model.f(*columns)).T, np.asarray(rates(*inputs, params)))
            wanted = jacobians(*inputs, params)
            for symbol, matrix in zip((model.x, model.u, model.p), wanted):
                jacobian = cs.Function(
                    "J", [model.x, model.u, model.p], [cs.jacobian(model.f_expl, symbol)]
                )
                matrices = np.array(jacobian.map(N)(*columns)).reshape(len(matrix[0]), N, -1)
                same(matrices.transpose(1, 0, 2), np.asarray(matrix))


@pytest.mark.parametrize("kind", FITTED)
@pytest.mark.parametrize("drone", ["cf21B_500", "hb_x500"])
def test_roll_pitch_and_yaw_describe_the_same_flight(kind: Dynamics, drone: str) -> None:
    by_quat, by_rpy = (
        casadi_model(kind, drone, attitude=form, wrench=True) for form in ("quat", "rpy")
    )
    command = [0.2, -0.15, 0.3, 1.1 * by_quat.hover_input[3]]
    force = np.array([0.05, -0.02, 0.01]) * by_quat.hover_input[3]
    ends = []
    for model in (by_quat, by_rpy):
        p = np.zeros(model.p.shape[0])
        p[:3] = force
        flight = solve_ivp(
            lambda t, x: np.array(model.f(x, command, p))[:, 0],  # noqa: B023
            (0, 0.5), model.hover_state, rtol=1e-10, atol=1e-10,
        )  # fmt: skip
        ends.append({name: flight.y[part, -1] for name, part in model.slices().items()})
    quat, rpy = ends
    for name in quat.keys() & rpy.keys():
        np.testing.assert_allclose(quat[name], rpy[name], atol=1e-8)
    np.testing.assert_allclose(
        Rotation.from_quat(quat["quat"]).as_euler("xyz"), rpy["rpy"], atol=1e-8
    )
    assert np.abs(rpy["rpy"]).min() > 0.1


@pytest.mark.parametrize("kind", [Dynamics.first_principles, Dynamics.so_rpy_rotor_drag])
def test_flight_is_that_of_the_simulation(kind: Dynamics) -> None:
    control = "rotor_vel" if kind.has_rotors else "attitude"
    model = casadi_model(kind, "cf2x_L250")
    command = model.hover_input * [1.02, 1.01, 1.03, 1.02] + [0, 0, 0, 0]
    if not kind.has_rotors:
        command[:3] = [0.2, 0.1, 0.1]
    with jax.enable_x64(True):
        sim = Sim(dynamics=kind, control=control, drone="cf2x_L250", integrator="rk4", freq=1000)
        states = sim.data.states
        sim.data = sim.data.replace(states=states.replace(pos=states.pos + jnp.array([0, 0, 9.0])))
        getattr(sim, f"{control}_control")(command[None, None])
        sim.step(300)
        states = jax.tree.map(lambda leaf: np.asarray(leaf[0, 0]), sim.data.states)
    start = np.zeros_like(model.hover_state)
    start[[2, 6]] = 9, 1
    flight = solve_ivp(
        lambda t, x: np.array(model.f(x, command, []))[:, 0],
        (0, 0.3), start, rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    for name, part in model.slices().items():
        wanted = states.rotor_vel[:1] if name == "thrust" else getattr(states, name)
        np.testing.assert_allclose(flight.y[part, -1], wanted, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", Dynamics)
def test_without_states_of_rotors_they_follow_at_once(kind: Dynamics) -> None:
    whole, short = (casadi_model(kind, "cf21B_500", rotors=rotors) for rotors in (True, False))
    assert [s.name for s in short.states] == list(PARTS)
    x, u, _ = random_inputs(whole, np.random.default_rng(0))
    x, u = x[0], u[0]
    x[13:] = u if kind.has_rotors else u[3:]
    np.testing.assert_array_equal(
        np.array(whole.f(x, u, []))[:13], np.array(short.f(x[:13], u, []))
    )


@pytest.mark.parametrize("drone", [HEXA, OCTO, "tilted"])
def test_other_numbers_of_rotors(drone: str, tmp_path: Path) -> None:
    """CasADi, NumPy and JAX compute the same, and the hover is one."""
    drone = tilted(tmp_path / drone) if drone == "tilted" else drone
    with jax.enable_x64(True):
        model, rng = casadi_model("first_principles", drone), np.random.default_rng(1)
        n = len(rotors_of(drone))
        assert model.u.shape == (n, 1) and model.x.shape == (13 + n, 1)
        assert np.abs(np.array(model.f(model.hover_state, model.hover_input, []))).max() < 1e-6
        pos, vel, ang_vel = rng.normal(size=(3, N, 3))
        rotor_vel, command = rng.uniform(4000, 9000, (2, N, n))
        quat = Rotation.random(N, rng=rng).as_quat()
        state = BodyState(*(split(jnp.asarray(x)) for x in (pos, quat, vel, ang_vel, rotor_vel)))
        still = Wrench(split(jnp.zeros((N, 3))), split(jnp.zeros((N, 3))))
        params = Dynamics.first_principles.params.create(drone)
        wanted = params.derivative(state, split(jnp.asarray(command)), still)
        of_numpy = parametrize(first_principles, drone)(
            pos, quat, vel, ang_vel, command, rotor_vel=rotor_vel
        )[2:]
        x = np.hstack([pos, quat, vel, ang_vel, rotor_vel]).T
        of_casadi = np.split(np.array(model.f(x, command.T, np.zeros((0, N)))).T[:, 7:], [3, 6], 1)
        for ours in (of_numpy, of_casadi):
            for one, other in zip(ours, (wanted.acc, wanted.ang_acc, wanted.rotor_acc)):
                same(np.asarray(one), np.asarray(stack(other)))


@pytest.mark.parametrize("kind", Dynamics)
def test_hovers_where_it_says(kind: Dynamics) -> None:
    for drone in DRONES:
        model = casadi_model(kind, drone)
        assert np.abs(np.array(model.f(model.hover_state, model.hover_input, []))).max() < 1e-9
        least, most = model.input_limits
        assert (least <= model.hover_input).all() and (model.hover_input <= most).all()
        assert 4 * load_drone(drone)["thrust_max"] > load_drone(drone)["mass"] * 9.81


def test_refusals_say_what_is_possible() -> None:
    for model, drone, attitude, named in (
        ("so_rpyx", "cf2x_L250", "quat", "'so_rpyx', only first_principles"),
        ("so_rpy", "cf3", "quat", "'cf3'"),
        ("first_principles", "cf2x_L250", "rpy", "attitude .*quat with .*'rpy'"),
        ("so_rpy", "cf2x_L250", "euler", "attitude .*quat or rpy.*'euler'"),
    ):
        with pytest.raises(ValueError, match=named):
            casadi_model(model, drone, attitude=attitude)
