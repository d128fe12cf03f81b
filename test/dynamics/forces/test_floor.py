"""Drones on the floor: resting, sliding, bouncing, tipping, at slow and fast ticks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from multirotors import QUADROTORS
from numpy.typing import ArrayLike
from quadrotor_reference import Quadrotor
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces import SAG, rest_height
from crazyflow_ros.dynamics.forces.aerodynamics import downwash, ground_effect
from crazyflow_ros.dynamics.forces.collisions import drone_contact, obstacle_contact
from crazyflow_ros.dynamics.forces.external import DroneContact
from crazyflow_ros.dynamics.forces.floor import contact_points, floor_contact
from crazyflow_ros.dynamics.forces.impulses import FRICTION
from crazyflow_ros.sim import Sim

pytestmark = pytest.mark.usefixtures("double_precision")

G = 9.81
DRONE = "cf2x_L250"
FREQS = (100, 250, 500, 1000)
LEVEL = np.array([0.0, 0, 0, 1])


N = 16


@cache
def _simulation(freq: int, drone: str) -> Sim:
    forces = (floor_contact(drone, freq),)
    return Sim(N, drone=drone, control="rotor_vel", freq=freq, forces=forces)


def drones(freq: int = 500, drone: str = DRONE, **states: ArrayLike) -> Sim:
    """Drones in worlds of their own, rotors stopped; fields of SimState as (n <= N, k)."""
    sim = _simulation(freq, drone)
    sim.reset()
    fields = {}
    for name, value in states.items():
        filled = np.array(getattr(sim.data.states, name))
        filled[: len(value), 0] = value
        fields[name] = jnp.asarray(filled)
    sim.data = sim.data.replace(states=sim.data.states.replace(**fields))
    return sim


def of(sim: Sim, name: str, n: int = N) -> np.ndarray:
    """A field of the first states, (n, k)."""
    return np.asarray(getattr(sim.data.states, name))[:n, 0]


def corners(sim: Sim) -> np.ndarray:
    """Heights (n, 8) of the points that can touch the floor."""
    points = np.array(contact_points(DRONE))
    attitudes = Rotation.from_quat(of(sim, "quat")).as_matrix()
    return of(sim, "pos")[:, 2:] + (attitudes @ points.T)[:, 2]


def energy(sim: Sim) -> np.ndarray:
    """Kinetic and potential energy (n) [J]."""
    quadrotor = Quadrotor(DRONE)
    w, v = of(sim, "ang_vel"), of(sim, "vel")
    kinetic = quadrotor.mass / 2 * (v**2).sum(-1) + ((w @ quadrotor.J) * w).sum(-1) / 2
    return kinetic + quadrotor.mass * G * of(sim, "pos")[:, 2]


@pytest.mark.parametrize(
    ("freq", "drone"),
    [(100, DRONE), (250, DRONE), (500, DRONE), (500, "cf21B_500"), (1000, DRONE)],
)
def test_a_dropped_drone_comes_to_rest_on_its_feet(freq: int, drone: str) -> None:
    sim = drones(freq, drone, pos=[[0, 0, 0.3], [0, 0, 1.0], [1, 2, 0.02]])
    sim.step(3 * freq)
    height = rest_height(drone)
    expected = [[0, 0, height], [0, 0, height], [1, 2, height]]
    np.testing.assert_allclose(of(sim, "pos", 3), expected, atol=2e-4)
    np.testing.assert_allclose(of(sim, "pos", 3)[:, 2], height, atol=1e-6)
    np.testing.assert_allclose(of(sim, "quat", 3), [LEVEL] * 3, atol=5e-3)
    for name in ("vel", "ang_vel"):
        np.testing.assert_allclose(of(sim, name, 3), 0, atol=1e-5)
    for name in ("acc", "ang_acc"):  # what an accelerometer would jitter with
        rate = np.asarray(getattr(sim.data.states_deriv, name))[:3]
        np.testing.assert_allclose(rate, 0, atol=1e-3)


MODELS = [str(drone) for drone in QUADROTORS]


def test_the_wrench_of_contacts_is_one_compiled_function(caplog: pytest.LogCaptureFixture) -> None:
    """Its force balances the weight, and whatever pushes a drone that stays where it is."""
    quadrotor, z = Quadrotor(DRONE), rest_height(DRONE)
    weight, pushed = quadrotor.mass * G, 1.5 * quadrotor.mass * G
    sim = drones(
        pos=[[0, 0, z], [1, 2, z], [0, 0, 3]], force=[[0, 0, 0], [0.1, 0, weight - pushed]]
    )
    sim.step(500)
    data = sim.data
    jax.block_until_ready(data.states_deriv)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        wrench = np.asarray(sim.contact_wrench(data))
    compiled = [r for r in caplog.records if r.getMessage().startswith("Compiling ")]
    assert len(compiled) == 1
    expected = [[0, 0, weight], [-0.1, 0, pushed], [0, 0, 0]]
    np.testing.assert_allclose(wrench[:3, 0, :3], expected, atol=1e-3 * weight)


@pytest.fixture(scope="module", params=["euler", "symplectic_euler", "rk4"])
def fleet(request: pytest.FixtureRequest) -> Sim:
    """One drone of each model in each of 32 worlds, without drag."""
    with jax.enable_x64(True):
        sim = Sim(
            32, len(MODELS), drone=MODELS, control="rotor_vel", integrator=request.param,
            forces=(floor_contact(MODELS, 500),),
        )  # fmt: skip
        no_drag = jnp.zeros_like(sim.data.params.drag_matrix)
        sim.data = sim.data.replace(params=sim.data.params.replace(drag_matrix=no_drag))
        sim.build_default_data()
    return sim


def put(sim: Sim, **states: ArrayLike) -> None:
    """Set fields of SimState after a reset."""
    sim.reset()
    fields = {name: jnp.asarray(value, float) for name, value in states.items()}
    sim.data = sim.data.replace(states=sim.data.states.replace(**fields))


def test_a_drop_of_a_metre_sinks_in_by_less_than_10_mm_and_bounces_lower(fleet: Sim) -> None:
    """Upright in one half of the worlds, anyhow in the other, and at all phases of a tick."""
    n = fleet.n_worlds
    corners = np.array([contact_points(model) for model in MODELS])  # (models, 8, 3)
    quat = Rotation.random(n * len(MODELS), rng=np.random.default_rng(0)).as_quat()
    quat = quat.reshape(n, len(MODELS), 4)
    quat[: n // 2] = LEVEL

    def heights() -> np.ndarray:
        """Of the lowest corners, (worlds, drones)."""
        attitudes = Rotation.from_quat(np.array(fleet.data.states.quat).reshape(-1, 4)).as_matrix()
        up = attitudes[:, 2].reshape(n, len(MODELS), 3)
        z = np.array(fleet.data.states.pos)[..., 2]
        return z + np.einsum("mkc,nmc->nmk", corners, up).min(-1)

    put(fleet, quat=quat)
    drop = 1.0 + np.arange(n)[:, None] * 8e-3 / n  # a tick at the floor is 9 mm
    pos = np.array(fleet.data.states.pos)
    pos[..., 2] += drop - heights()
    put(fleet, quat=quat, pos=pos)
    lowest, highest = np.full(pos.shape[:2], np.inf), np.zeros(pos.shape[:2])
    for _ in range(700):
        fleet.step()
        z = heights()
        highest = np.where(lowest < 0.01, np.maximum(highest, z), 0)
        lowest = np.minimum(lowest, z)
    assert (lowest < 0.01).all()
    assert lowest.min() > -10e-3
    # A point that hits the floor first turns the drone, and others go up; not higher than this.
    assert (highest[: n // 2] < 0.2 * drop[: n // 2]).all()
    assert (highest < 0.5 * drop).all()


def test_a_push_below_the_friction_limit_does_not_creep(fleet: Sim) -> None:
    heights = np.array([rest_height(model) for model in MODELS])
    weights = np.array([load_drone(model)["mass"] * G for model in MODELS])
    pos = np.zeros((fleet.n_worlds, len(MODELS), 3))
    pos[..., 2] = heights
    around = np.linspace(0, 2 * np.pi, fleet.n_worlds, endpoint=False)
    force = np.zeros_like(pos)
    force[..., 0], force[..., 1] = (
        0.5 * FRICTION * weights * np.array(f(around))[:, None] for f in (np.cos, np.sin)
    )
    put(fleet, pos=pos, force=force)
    fleet.step(100)
    before = np.array(fleet.data.states.pos)
    fleet.step(500)
    assert np.abs(np.array(fleet.data.states.pos) - before).max() < 2e-5
    # Nor does a torque turn them that their feet can hold.
    lever = np.array([load_drone(model)["L"] for model in MODELS])
    put(fleet, pos=pos, torque=np.array([0, 0, 1]) * (0.5 * FRICTION * weights * lever)[:, None]
        + np.zeros_like(pos))  # fmt: skip
    fleet.step(100)
    attitude = np.array(fleet.data.states.quat)
    fleet.step(500)
    assert np.abs(np.array(fleet.data.states.quat) - attitude).max() < 1e-5


ATTITUDES = {
    "upright": Rotation.from_euler("x", 10, degrees=True),
    "nose down": Rotation.from_euler("y", 80, degrees=True),
    "on its left": Rotation.from_euler("xyz", [-70, 8, 30], degrees=True),
    "edge": Rotation.from_euler("xyz", [90, 0, 45], degrees=True),
    "corner": Rotation.from_euler("xyz", [50, 35, 10], degrees=True),
    "upside down": Rotation.from_euler("x", 180, degrees=True),
    "nearly upside down": Rotation.from_euler("xyz", [150, -20, 70], degrees=True),
}


@pytest.mark.parametrize("freq", FREQS)
def test_tipped_drones_come_to_rest(freq: int) -> None:
    n = len(ATTITUDES)
    sim = drones(
        freq,
        pos=[[0, 0, 0.08 if "side" not in name else 0.03] for name in ATTITUDES],
        quat=[a.as_quat() for a in ATTITUDES.values()],
        ang_vel=[[0.1, 0.2, -2.0]] * n,
    )
    sim.step(4 * freq)
    pose = np.concatenate([of(sim, "pos", n), of(sim, "quat", n)], -1)
    sim.step(freq)
    after = np.concatenate([of(sim, "pos", n), of(sim, "quat", n)], -1)
    np.testing.assert_allclose(after, pose, atol=1e-5, err_msg="still moving")
    for name in ("vel", "ang_vel"):
        np.testing.assert_allclose(of(sim, name, n), 0, atol=1e-4)
    for name in ("acc", "ang_acc"):
        rate = np.asarray(getattr(sim.data.states_deriv, name))[:n]
        np.testing.assert_allclose(rate, 0, atol=2e-3)
    lowest = np.sort(corners(sim)[:n], axis=-1)
    np.testing.assert_allclose(lowest[:, :4], -SAG, rtol=0.01)  # all stand on four
    up = Rotation.from_quat(of(sim, "quat", n)).as_matrix()[:, 2, 2]
    np.testing.assert_allclose(np.abs(up), 1, atol=1e-6)
    assert up[0] > 0 and (up[5:] < 0).all()


def test_a_sliding_drone_is_braked_by_coulomb_friction() -> None:
    height, speed = rest_height(DRONE), 1.5
    start = [[speed, 0, 0], [0.6 * speed, -0.8 * speed, 0]]
    sim = drones(pos=[[0, 0, height]] * 2, vel=start)
    # v' = -mu g - v / settling, the latter by drag
    settling = -load_drone(DRONE)["mass"] / load_drone(DRONE)["drag_matrix"][0, 0]
    limit = FRICTION * G * settling
    for t in (0.1, 0.2):
        sim.step(50)
        expected = (speed + limit) * np.exp(-t / settling) - limit
        vel = of(sim, "vel", 2)
        np.testing.assert_allclose(np.linalg.norm(vel[:, :2], axis=-1), expected, rtol=0.05)
        np.testing.assert_allclose(vel[1, :2] / np.linalg.norm(vel[1]), [0.6, -0.8], atol=0.03)
    sim.step(500)
    np.testing.assert_allclose(of(sim, "vel", 2), 0, atol=1e-3)
    distance = np.linalg.norm(of(sim, "pos", 2)[:, :2], axis=-1)
    expected = settling * (speed - limit * np.log(1 + speed / limit))
    np.testing.assert_allclose(distance, expected, rtol=0.05)


def test_friction_holds_a_drone_up_to_its_limit() -> None:
    weight, height = load_drone(DRONE)["mass"] * G, rest_height(DRONE)
    sim = drones(pos=[[0, 0, height]] * 3, force=np.outer([0.3, 0.57, 0.7], [weight, 0, 0]))
    sim.step(500)
    speed = of(sim, "vel", 3)[:, 0]
    assert (abs(speed[:2]) < 1e-4).all()
    settling = -load_drone(DRONE)["mass"] / load_drone(DRONE)["drag_matrix"][0, 0]
    pulled = (0.7 - FRICTION) * G * settling * (1 - np.exp(-1 / settling))
    assert speed[2] == pytest.approx(pulled, rel=0.05)


@pytest.mark.parametrize("freq", FREQS)
def test_a_bounce_gains_no_energy(freq: int) -> None:
    rng = np.random.default_rng(0)
    sim = drones(
        freq,
        pos=[[0, 0, 0.1]] * N,
        quat=Rotation.random(N, rng=rng).as_quat(),
        vel=np.concatenate([rng.normal(0, 0.5, (N, 2)), rng.uniform(-2, 0, (N, 1))], -1),
        ang_vel=rng.normal(0, 3, (N, 3)),
    )
    start = lowest = energy(sim)
    for tick in range(freq):
        sim.step()
        now = energy(sim)
        # Explicit Euler gains a little in flight, and while a drone turns.
        assert (now < lowest + 3 / freq * start).all(), f"tick {tick}"
        lowest = np.minimum(lowest, now)
    assert (now < 0.5 * start).all()


def falling(state: BodyState) -> BodyDerivative:
    """How a drone moves on which nothing but its weight acts."""
    zero = jnp.zeros_like(state.pos[0])
    still = (zero, zero, zero)
    return BodyDerivative(state.vel, state.ang_vel, (zero, zero, zero - G), still, (*still, zero))


def wrench(
    pos: np.ndarray, quat: np.ndarray, vel: np.ndarray, ang_vel: np.ndarray, freq: float = 500
) -> tuple[np.ndarray, np.ndarray]:
    fields = (pos, quat, vel, ang_vel, np.zeros((len(pos), 4)))
    state = BodyState(*(split(jnp.asarray(f, float)) for f in fields))
    force, torque = floor_contact(DRONE, freq)(state, falling(state), Params.create(DRONE))
    return np.asarray(stack(force)), np.asarray(stack(torque))


def test_the_floor_only_pushes_and_only_brakes() -> None:
    rng, n = np.random.default_rng(1), 2000
    pos = np.concatenate([rng.normal(size=(n, 2)), rng.uniform(-0.01, 0.06, (n, 1))], -1)
    quat = Rotation.random(n, rng=rng).as_quat()
    vel, ang_vel = rng.normal(size=(n, 3)), rng.normal(0, 5, (n, 3))
    force, _ = wrench(pos, quat, vel, ang_vel)
    assert (force[:, 2] >= 0).all() and (force[:, 2] > 0).any() and (force[:, 2] == 0).any()
    sideways = np.linalg.norm(force[:, :2], axis=-1)
    assert (sideways <= FRICTION * force[:, 2] + 1e-12).all()
    # On its feet at rest it needs no friction; what slides is braked.
    pos[:, 2], quat = rest_height(DRONE), np.tile(LEVEL, (n, 1))
    still, _ = wrench(pos, quat, 0 * vel, 0 * ang_vel)
    np.testing.assert_allclose(still[:, :2], 0, atol=1e-6)
    sliding, _ = wrench(pos, quat, vel * [1, 1, 0], 0 * ang_vel)
    assert ((sliding * vel)[:, :2].sum(-1) < 0).all()


def test_no_force_in_the_air() -> None:
    rng, n = np.random.default_rng(2), 100
    pos = np.tile([0, 0, 0.075], (n, 1))
    force, torque = wrench(
        pos, Rotation.random(n, rng=rng).as_quat(), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    )
    np.testing.assert_array_equal(force, 0)
    np.testing.assert_array_equal(torque, 0)


def test_a_drone_takes_off_from_the_floor_and_others_do_not_matter() -> None:
    height = rest_height(DRONE)
    sim = drones(pos=[[0, 0, height], [0, 0, height]])
    command = np.zeros((N, 1, 4))
    command[0] = 1.08 * Quadrotor(DRONE).hover_speed()
    sim.rotor_vel_control(command)
    sim.step(1000)
    assert of(sim, "pos")[0, 2] > 0.5
    np.testing.assert_allclose(of(sim, "pos")[1], [0, 0, height], atol=1e-6)


def test_the_gradient_at_rest_is_finite() -> None:
    pos, zero = jnp.array([0, 0, rest_height(DRONE)]), jnp.zeros(3)

    def force(pos: jax.Array, vel: jax.Array, ang_vel: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = BodyState(*map(split, (pos, jnp.asarray(LEVEL), vel, ang_vel, jnp.zeros(4))))
        law = floor_contact(DRONE, 500)
        total, torque = law(state, falling(state), Params.create(DRONE))
        return stack(total), stack(torque)

    jacobian = jax.jit(jax.jacobian(force, argnums=(0, 1, 2)))
    by_pos, by_vel, by_rate = jacobian(pos, zero, zero)[0]
    assert np.isfinite(by_pos).all() and np.isfinite(by_rate).all()
    assert by_pos[2, 2] < 0
    assert (np.diag(by_vel) < 0).all()


def test_without_forces_the_floor_is_crazyflows() -> None:
    sim = Sim(control="rotor_vel", drone=DRONE)
    states = sim.data.states
    falling = states.replace(pos=states.pos + jnp.array([0, 0, 0.1]), vel=states.vel + 0.5)
    sim.data = sim.data.replace(states=falling)
    sim.step(500)
    states = sim.data.states
    np.testing.assert_allclose(states.pos[0, 0, 2], -0.001)
    np.testing.assert_allclose(states.vel[0, 0], 0, atol=1.01 * G / 500)  # stopped every other tick


def test_simulations_can_share_a_force() -> None:
    force = floor_contact(DRONE, 500)
    for _ in range(2):
        sim = Sim(drone=DRONE, control="rotor_vel", forces=(force,))  # with its feet in the floor
        sim.step(5)
        assert of(sim, "vel", 1)[0, 2] > 0.1


@pytest.mark.parametrize("kind", [floor_contact, obstacle_contact, drone_contact])
def test_a_contact_of_another_simulation_is_refused(kind: Callable[..., DroneContact]) -> None:
    name = kind.__name__
    with pytest.raises(ValueError, match=f"{name} was built for 500 Hz, the simulation has 100"):
        Sim(freq=100, drone=DRONE, control="rotor_vel", forces=(kind(DRONE, 500),))
    for freq in (np.nan, np.inf, 0, -5):
        with pytest.raises(ValueError, match=f"{name} needs a positive freq, got {freq}"):
            kind(DRONE, freq)


@pytest.mark.parametrize("kind", [ground_effect, downwash, lambda drone: floor_contact(drone, 500)])
def test_a_force_of_other_drones_is_refused(kind: Callable[..., DroneContact]) -> None:
    two, mixed = [DRONE] * 2, [DRONE, "cf21B_500"]
    for own, drone, message in [
        (DRONE, "hb_x500", "cf2x_L250, the simulation has 2 hb_x500"),
        (DRONE, mixed, "cf2x_L250, the simulation has cf2x_L250, cf21B_500"),
        (mixed, mixed[::-1], "cf2x_L250, cf21B_500, the simulation has cf21B_500, cf2x_L250"),
        ([DRONE] * 3, DRONE, "3 cf2x_L250, the simulation has 2 cf2x_L250"),
    ]:
        with pytest.raises(ValueError, match=f"{kind(own).name} was built for {message}$"):
            Sim(n_drones=2, drone=drone, control="rotor_vel", forces=(kind(own),))
    for own, drone in [(DRONE, DRONE), (DRONE, two), (two, DRONE), (mixed, mixed)]:
        Sim(n_drones=2, drone=drone, control="rotor_vel", forces=(kind(own),))
