"""Drones on the floor: resting, sliding, bouncing, tipping, at slow and fast ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import ArrayLike
from quadrotor_reference import Quadrotor
from scipy.spatial.transform import Rotation

from crazyflow_ros.dynamics import load_drone
from crazyflow_ros.dynamics.aerodynamics import downwash, ground_effect
from crazyflow_ros.dynamics.collision import drone_contact, obstacle_contact
from crazyflow_ros.dynamics.components import BodyState, split, stack
from crazyflow_ros.dynamics.contact import (
    FRICTION,
    DroneForce,
    contact_points,
    floor_contact,
    rest_height,
)
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.sim import Sim

G = 9.81
DRONE = "cf2x_L250"
FREQS = (100, 250, 500, 1000)
LEVEL = np.array([0.0, 0, 0, 1])


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


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
    """Kinetic and potential energy (n) [J] of body and springs."""
    quadrotor, freq = Quadrotor(DRONE), sim.freq
    sag = rest_sag(freq)
    stiffness = quadrotor.mass * G / 4 / sag
    springs = stiffness / 2 * np.minimum(corners(sim), 0) ** 2
    w, v = of(sim, "ang_vel"), of(sim, "vel")
    kinetic = quadrotor.mass / 2 * (v**2).sum(-1) + ((w @ quadrotor.J) * w).sum(-1) / 2
    return kinetic + quadrotor.mass * G * of(sim, "pos")[:, 2] + springs.sum(-1)


def rest_sag(freq: float) -> float:
    return -load_drone(DRONE)["geometry"]["foot_z"] - rest_height(DRONE, freq)


@pytest.mark.parametrize(
    ("freq", "drone"), [*((freq, DRONE) for freq in FREQS), (500, "cf21B_500")]
)
def test_a_dropped_drone_comes_to_rest_on_its_feet(freq: int, drone: str) -> None:
    sim = drones(freq, drone, pos=[[0, 0, 0.3], [0, 0, 1.0], [1, 2, 0.02]])
    sim.step(3 * freq)
    height = rest_height(drone, freq)
    expected = [[0, 0, height], [0, 0, height], [1, 2, height]]
    np.testing.assert_allclose(of(sim, "pos", 3), expected, atol=1e-6)
    np.testing.assert_allclose(of(sim, "quat", 3), [LEVEL] * 3, atol=1e-9)
    for name in ("vel", "ang_vel"):
        np.testing.assert_allclose(of(sim, name, 3), 0, atol=1e-5)
    for name in ("acc", "ang_acc"):  # what an accelerometer would jitter with
        rate = np.asarray(getattr(sim.data.states_deriv, name))[:3]
        np.testing.assert_allclose(rate, 0, atol=1e-3)


def test_feet_sink_in_by_less_than_a_millimetre() -> None:
    assert 0 < rest_sag(500) < 1e-3
    assert all(rest_sag(a) >= rest_sag(b) for a, b in pairwise(FREQS))
    assert rest_height(DRONE, 100) > 0


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
    np.testing.assert_allclose(lowest[:, :4], -rest_sag(freq), rtol=0.01)  # all stand on four
    up = Rotation.from_quat(of(sim, "quat", n)).as_matrix()[:, 2, 2]
    np.testing.assert_allclose(np.abs(up), 1, atol=1e-6)
    assert up[0] > 0 and (up[5:] < 0).all()


def test_a_sliding_drone_is_braked_by_coulomb_friction() -> None:
    height, speed = rest_height(DRONE, 500), 1.5
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


def test_friction_holds_a_drone_against_a_small_force_only() -> None:
    weight, height = load_drone(DRONE)["mass"] * G, rest_height(DRONE, 500)
    sim = drones(pos=[[0, 0, height]] * 3, force=np.outer([0.3, 0.55, 0.7], [weight, 0, 0]))
    sim.step(500)
    speed = of(sim, "vel", 3)[:, 0]
    assert (speed[:2] < 0.1).all()  # it creeps, as friction without a memory does
    settling = -load_drone(DRONE)["mass"] / load_drone(DRONE)["drag_matrix"][0, 0]
    pulled = (0.7 - FRICTION) * G * settling * (1 - np.exp(-1 / settling))
    assert speed[2] == pytest.approx(pulled, rel=0.1)


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
        # Explicit Euler overshoots a little while a spring is loaded.
        assert (now < 1.05 * start).all(), f"tick {tick}"
        in_the_air = (corners(sim) > 0).all(-1)
        assert (now < lowest + 6 / freq * start)[in_the_air].all(), f"tick {tick}"
        lowest = np.where(in_the_air, np.minimum(lowest, now), lowest)
    assert (now < 0.5 * start).all()


def wrench(
    pos: np.ndarray, quat: np.ndarray, vel: np.ndarray, ang_vel: np.ndarray, freq: float = 500
) -> tuple[np.ndarray, np.ndarray]:
    fields = (pos, quat, vel, ang_vel, np.zeros((len(pos), 4)))
    state = BodyState(*(split(jnp.asarray(f, float)) for f in fields))
    force, torque = floor_contact(DRONE, freq)(state, Params.create(DRONE))
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
    # At rest in the plane of the floor friction does nothing, in motion it takes energy away.
    still, _ = wrench(pos, quat, 0 * vel, 0 * ang_vel)
    np.testing.assert_array_equal(still[:, :2], 0)
    only_sliding, _ = wrench(pos, quat, vel * [1, 1, 0], 0 * ang_vel)
    assert ((only_sliding * vel)[:, :2].sum(-1) <= 0).all()


def test_no_force_in_the_air() -> None:
    rng, n = np.random.default_rng(2), 100
    pos = np.tile([0, 0, 0.075], (n, 1))
    force, torque = wrench(
        pos, Rotation.random(n, rng=rng).as_quat(), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    )
    np.testing.assert_array_equal(force, 0)
    np.testing.assert_array_equal(torque, 0)


def test_a_standing_drone_is_carried() -> None:
    pos = np.array([[3.0, -2, rest_height(DRONE, 500)]])
    force, torque = wrench(pos, LEVEL[None], np.zeros((1, 3)), np.zeros((1, 3)))
    np.testing.assert_allclose(force, [[0, 0, load_drone(DRONE)["mass"] * G]], rtol=1e-9)
    np.testing.assert_allclose(torque, 0, atol=1e-12)


def test_a_drone_takes_off_from_the_floor_and_others_do_not_matter() -> None:
    height = rest_height(DRONE, 500)
    sim = drones(pos=[[0, 0, height], [0, 0, height]])
    command = np.zeros((N, 1, 4))
    command[0] = 1.08 * Quadrotor(DRONE).hover_speed()
    sim.rotor_vel_control(command)
    sim.step(1000)
    assert of(sim, "pos")[0, 2] > 0.5
    np.testing.assert_allclose(of(sim, "pos")[1], [0, 0, height], atol=1e-9)


def test_the_gradient_at_rest_is_finite() -> None:
    pos, zero = jnp.array([0, 0, rest_height(DRONE, 500)]), jnp.zeros(3)

    def force(pos: jax.Array, vel: jax.Array, ang_vel: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = BodyState(*map(split, (pos, jnp.asarray(LEVEL), vel, ang_vel, jnp.zeros(4))))
        total, torque = floor_contact(DRONE, 500)(state, Params.create(DRONE))
        return stack(total), stack(torque)

    by_pos, by_vel, by_rate = jax.jacobian(force, argnums=(0, 1, 2))(pos, zero, zero)[0]
    mass, rate = load_drone(DRONE)["mass"], np.sqrt(G / rest_sag(500))
    np.testing.assert_allclose(by_pos, np.diag([0, 0, -mass * rate**2]), atol=1e-9)
    assert np.isfinite(by_rate).all()
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
def test_a_contact_of_another_simulation_is_refused(kind: Callable[..., DroneForce]) -> None:
    name = kind.__name__
    with pytest.raises(ValueError, match=f"{name} is made for a freq of 500, here it is 100"):
        Sim(freq=100, drone=DRONE, control="rotor_vel", forces=(kind(DRONE, 500),))
    for freq in (np.nan, np.inf, 0, -5):
        with pytest.raises(ValueError, match=f"{name} needs a positive freq, got {freq}"):
            kind(DRONE, freq)


@pytest.mark.parametrize("kind", [ground_effect, downwash, lambda drone: floor_contact(drone, 500)])
def test_a_force_of_other_drones_is_refused(kind: Callable[..., DroneForce]) -> None:
    two, mixed = [DRONE] * 2, [DRONE, "cf21B_500"]
    for own, drone, message in [
        (DRONE, "hb_x500", "cf2x_L250, the simulation has 2 hb_x500"),
        (DRONE, mixed, "cf2x_L250, the simulation has cf2x_L250, cf21B_500"),
        (mixed, mixed[::-1], "cf2x_L250, cf21B_500, the simulation has cf21B_500, cf2x_L250"),
        ([DRONE] * 3, DRONE, "3 cf2x_L250, the simulation has 2 cf2x_L250"),
    ]:
        with pytest.raises(ValueError, match=f"{kind(own).name} is made for {message}$"):
            Sim(n_drones=2, drone=drone, control="rotor_vel", forces=(kind(own),))
    for own, drone in [(DRONE, DRONE), (DRONE, two), (two, DRONE), (mixed, mixed)]:
        Sim(n_drones=2, drone=drone, control="rotor_vel", forces=(kind(own),))
