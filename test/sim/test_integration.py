"""Integrators against a high-accuracy solution: order of convergence, structure preserved."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quadrotor_reference import Quadrotor, State, angle_between, tumbling
from scipy.spatial.transform import Rotation
from scipy.special import ellipj

from crazyflow_ros.drones import Drone
from crazyflow_ros.dynamics import first_principles
from crazyflow_ros.dynamics.components import BodyState, Wrench, rotate_quat, split
from crazyflow_ros.sim import Integrator, Sim

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = Drone.cf21B_500
WRENCH = np.array([0.02, -0.03, 0.05]), np.array([1e-4, -2e-4, 5e-5])  # N, N m, world frame


def body_state(state: State) -> BodyState:
    fields = (state.pos, state.quat, state.vel, state.ang_vel, state.rotor_vel)
    return BodyState(*(split(jnp.asarray(f)[None]) for f in fields))


def plain_state(state: BodyState) -> State:
    return State(*(np.array(field)[:, 0] for field in state))


@cache
def rollout(integrator: str) -> Callable[[State, np.ndarray, float, int], State]:
    """Integrate n steps of dt."""
    params, step = first_principles.Params.create(DRONE), Integrator(integrator).fn
    external = Wrench(*(split(jnp.asarray(w)[None]) for w in WRENCH))

    @jax.jit
    def run(state: BodyState, command: jax.Array, dt: jax.Array, n: jax.Array) -> BodyState:
        def derivative(state: BodyState) -> first_principles.BodyDerivative:
            return first_principles.derivative(state, split(command), external, params)

        return jax.lax.fori_loop(0, n, lambda _, s: step(s, derivative, dt), state)

    return lambda state, command, dt, n: plain_state(
        run(body_state(state), jnp.asarray(command)[None], dt, n)
    )


def distances(a: State, b: State) -> np.ndarray:
    """Of position, attitude, velocity, body rates, rotor speeds."""
    length = np.linalg.norm
    return np.array(
        [
            length(a.pos - b.pos),
            angle_between(a.quat, b.quat),
            length(a.vel - b.vel),
            length(a.ang_vel - b.ang_vel),
            length(a.rotor_vel - b.rotor_vel),
        ]
    )


@pytest.mark.parametrize(
    ("integrator", "order", "freq"),
    [("euler", 1, 4000), ("symplectic_euler", 1, 4000), ("rk4", 4, 160)],
)
def test_order_of_convergence(integrator: str, order: int, freq: int) -> None:
    quadrotor, duration = Quadrotor(DRONE), 0.2
    state = tumbling(quadrotor)
    command = quadrotor.hover_speed() * np.array([1.1, 0.6, 1.05, 0.65])
    exact = quadrotor.solve(state, command, duration, *WRENCH)
    assert angle_between(state.quat, exact.quat) > 1
    steps = [int(duration * f) for f in (freq, 2 * freq, 4 * freq)]
    errors = np.array(
        [distances(rollout(integrator)(state, command, duration / n, n), exact) for n in steps]
    )
    observed = np.log2(errors[:-1] / errors[1:])
    np.testing.assert_allclose(observed[-1], order, atol=0.15)


def test_rk4_in_a_simulation_is_accurate() -> None:
    quadrotor = Quadrotor(DRONE)
    state = tumbling(quadrotor, seed=4)
    command = quadrotor.hover_speed() * np.array([1.1, 0.6, 1.05, 0.65])
    sim = Sim(drone=DRONE, control="rotor_vel", integrator="rk4", freq=1000)
    fields = vars(state) | dict(zip(("force", "torque"), WRENCH))
    states = sim.data.states.replace(**{k: jnp.asarray(v)[None, None] for k, v in fields.items()})
    sim.data = sim.data.replace(states=states.replace(pos=states.pos + jnp.array([0, 0, 50.0])))
    sim.rotor_vel_control(command[None, None])
    sim.step(300)
    end = sim.data.states
    ours = State(*(np.asarray(getattr(end, k))[0, 0] for k in vars(state)))
    exact = quadrotor.solve(state, command, 0.3, *WRENCH)
    exact.pos[2] += 50
    assert distances(ours, exact).max() < 1e-6  # of rotor speeds in RPM
    assert distances(ours, exact)[:4].max() < 1e-9


def falling(acc: float) -> Callable[[BodyState], first_principles.BodyDerivative]:
    zero = (jnp.zeros(1),) * 3
    return lambda s: first_principles.BodyDerivative(
        s.vel, s.ang_vel, (zero[0], zero[0], zero[0] + acc), zero, (*zero, zero[0])
    )


def test_what_the_euler_schemes_do_in_one_step() -> None:
    state = State(vel=np.array([1.0, 0, 2]), ang_vel=np.array([0, 0, 3.0]))
    dt, acc = 0.01, -10.0
    explicit, symplectic, rk4 = (
        plain_state(Integrator(name).fn(body_state(state), falling(acc), dt))
        for name in ("euler", "symplectic_euler", "rk4")
    )
    np.testing.assert_allclose(explicit.pos, [0.01, 0, 0.02], rtol=1e-14)
    np.testing.assert_allclose(symplectic.pos, [0.01, 0, 0.019], rtol=1e-14)
    np.testing.assert_allclose(rk4.pos, [0.01, 0, 0.0195], rtol=1e-14)
    for end in (explicit, symplectic, rk4):
        np.testing.assert_allclose(end.vel, [1, 0, 1.9], rtol=1e-14)
        np.testing.assert_allclose(end.attitude.as_rotvec(), [0, 0, 0.03], atol=1e-15)


@pytest.mark.parametrize("integrator", ["euler", "symplectic_euler", "rk4"])
def test_a_quaternion_stays_of_unit_length(integrator: str) -> None:
    quadrotor = Quadrotor(DRONE)
    command = np.full(4, quadrotor.hover_speed())
    end = rollout(integrator)(tumbling(quadrotor, seed=2), command, 2e-3, 5000)
    assert abs(np.linalg.norm(end.quat) - 1) < 1e-15


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e-8, 0.1, 1.0, 4.0])
def test_rotate_quat_is_the_exponential_map(scale: float) -> None:
    rng = np.random.default_rng(0)
    start = Rotation.random(100, rng=rng)
    rotvec = rng.normal(size=(100, 3))
    rotvec *= scale / np.linalg.norm(rotvec, axis=-1, keepdims=True)
    turned = np.stack(rotate_quat(split(jnp.asarray(start.as_quat())), split(jnp.asarray(rotvec))))
    expected = (start * Rotation.from_rotvec(rotvec)).as_matrix()
    np.testing.assert_allclose(Rotation.from_quat(turned.T).as_matrix(), expected, atol=2e-14)


def test_rotate_quat_has_a_gradient_at_rest() -> None:
    identity = tuple(jnp.asarray(v) for v in (0.0, 0.0, 0.0, 1.0))
    zero = tuple(jnp.asarray(0.0) for _ in range(3))
    jacobian = np.array(jax.jacobian(lambda v: rotate_quat(identity, v))(zero))
    np.testing.assert_allclose(jacobian, np.eye(4, 3) / 2, atol=1e-15)


def test_integrators_by_name() -> None:
    assert {str(i) for i in Integrator} == {"euler", "symplectic_euler", "rk4"}
    assert Integrator.default is Integrator.euler
    with pytest.raises(ValueError, match=r"integrator 'rk5'.*euler, symplectic_euler, rk4"):
        Sim(integrator="rk5")


def tumbled(integrator: str, rates: np.ndarray, inertia: np.ndarray, seconds: float) -> State:
    """Return a body without forces and torques after some time at 500 Hz."""
    j, dt, n = jnp.asarray(inertia), 1 / 500, round(seconds * 500)

    def derivative(state: BodyState) -> first_principles.BodyDerivative:
        zero = (jnp.zeros(1),) * 3
        turn = jnp.stack(state.ang_vel)
        spun = jnp.cross(j[:, None] * turn, turn, axis=0) / j[:, None]
        return first_principles.BodyDerivative(
            state.vel, state.ang_vel, zero, split(spun.T), (*zero, zero[0])
        )

    step = jax.jit(lambda _, s: Integrator(integrator).fn(s, derivative, dt))
    return plain_state(jax.lax.fori_loop(0, n, step, body_state(State(ang_vel=rates))))


def test_energy_and_momentum_of_a_body_that_tumbles_freely() -> None:
    """Against the solution by Jacobi's elliptic functions, Landau and Lifshitz, Mechanics, 37."""
    a, b, c = inertia = np.array([1.0, 1.6, 2.2]) * 1e-5
    start = np.array([6.0, 0.0, 5.0])
    momentum, energy = inertia * start, (inertia * start**2).sum() / 2
    square, seconds = (momentum**2).sum(), 10.0
    time = seconds * np.sqrt((c - b) * (square - 2 * energy * a) / (a * b * c))
    modulus = (b - a) * (2 * energy * c - square) / ((c - b) * (square - 2 * energy * a))
    sn, cn, dn, _ = ellipj(time, modulus)
    middle = np.sqrt((2 * energy * c - square) / (b * (c - b)))
    exact = np.array([start[0] * cn, middle * sn, start[2] * dn])

    def change(integrator: str) -> tuple[float, float, float]:
        """Return relative changes of energy and momentum, and the error of the rates [rad/s]."""
        end = tumbled(integrator, start, inertia, seconds)
        now = end.attitude.apply(inertia * end.ang_vel)
        return (
            (inertia * end.ang_vel**2).sum() / 2 / energy - 1,
            np.linalg.norm(now - momentum) / np.linalg.norm(momentum),
            np.linalg.norm(end.ang_vel - exact),
        )

    assert np.abs(change("rk4")).max() < 1e-8
    explicit, symplectic = change("euler"), change("symplectic_euler")
    # Each explicit step of the rates adds sum(J dw^2) / 2, as in Crazyflow's symplectic Euler.
    grid = np.linspace(0, seconds, 20_001)
    sn, cn, dn, _ = ellipj(time * grid / seconds, modulus)
    rates = np.stack([start[0] * cn, middle * sn, start[2] * dn])
    power = (inertia[:, None] * np.gradient(rates, grid, axis=1) ** 2).sum(axis=0) / 2 / 500
    gain = np.trapezoid(power, grid) / energy
    assert explicit[0] == symplectic[0] == pytest.approx(gain, rel=0.1)
    assert symplectic[0] == pytest.approx(0.105, abs=1e-3)  # as docs/reference/dynamics.md says
    assert symplectic[1] == pytest.approx(0.044, abs=1e-3)
