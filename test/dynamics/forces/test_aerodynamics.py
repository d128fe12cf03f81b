"""Ground effect and downwash against their closed forms."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import BodyState, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces.aerodynamics import AIR_DENSITY, downwash, ground_effect
from crazyflow_ros.dynamics.forces.external import Force

DRONE = "cf21B_500"
FIGURES = load_drone(DRONE)
RADIUS, ROTOR_Z = FIGURES["geometry"]["rotor_radius"], FIGURES["geometry"]["rotor_z"]
LEVEL = (0.0, 0.0, 0.0, 1.0)


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def state(pos: np.ndarray, speed: float = 16_000.0, quat: tuple[float, ...] = LEVEL) -> BodyState:
    lead = np.shape(pos)[:-1]
    zero = np.zeros((*lead, 3))
    fields = pos, np.broadcast_to(quat, (*lead, 4)), zero, zero, np.full((*lead, 4), speed)
    return BodyState(*(split(jnp.asarray(f, float)) for f in fields))


def wrench(force: Force, at: BodyState) -> tuple[np.ndarray, np.ndarray]:
    result = force(at, Params.create(DRONE))
    return np.asarray(stack(result.force)), np.asarray(stack(result.torque))


def thrust(speed: float = 16_000.0) -> float:
    return 4 * float(np.polynomial.polynomial.polyval(speed, FIGURES["rpm2thrust"]))


def test_ground_effect_of_a_level_drone() -> None:
    heights = np.array([0.5, 1, 2, 10]) * RADIUS
    pos = np.stack([0 * heights, 0 * heights, heights - ROTOR_Z], -1)
    force, torque = wrench(ground_effect(DRONE), state(pos))
    ratios = 1 + force[:, 2] / thrust()
    np.testing.assert_allclose(ratios, [4 / 3, 16 / 15, 64 / 63, 1600 / 1599], rtol=1e-12)
    np.testing.assert_allclose(force[:, :2], 0, atol=1e-15)
    np.testing.assert_allclose(torque, 0, atol=1e-15)
    below = wrench(ground_effect(DRONE), state(np.array([[0.0, 0, -1]])))[0]
    assert 1 + below[0, 2] / thrust() == pytest.approx(4 / 3)  # where the formula ends
    assert not wrench(ground_effect(DRONE), state(pos, speed=0.0))[0].any()


def test_near_the_floor_a_tilted_drone_is_righted() -> None:
    quat = Rotation.from_euler("x", 0.3)
    force, torque = wrench(ground_effect(DRONE), state(np.array([0, 0, 0.05]), quat=quat.as_quat()))
    assert torque[0] < -1e-6  # the low side, on the right, gets more thrust
    np.testing.assert_allclose(torque[1:], 0, atol=1e-15)
    np.testing.assert_allclose(np.cross(force, quat.apply([0, 0, 1])), 0, atol=1e-15)


def fall(points: np.ndarray, force: Force) -> np.ndarray:
    """Speed of the air downwards at points below a drone at the origin."""
    pos = np.stack([np.zeros_like(points), points], axis=-2)
    pushed, torque = wrench(force, state(pos))
    assert not torque.any() and not pushed[..., 0, :].any()  # none on the one above
    return np.asarray(pushed[..., 1, 2] / FIGURES["drag_matrix"][2, 2])


def test_a_jet_keeps_the_momentum_of_the_thrust() -> None:
    radii, force = np.linspace(0, 2, 4001), downwash(DRONE)
    for depth in (0.02, 0.5, 2.0):
        speed = fall(np.stack([radii, 0 * radii, 0 * radii - depth], -1), force)
        momentum = np.trapezoid(AIR_DENSITY * speed**2 * 2 * np.pi * radii, radii)
        assert momentum == pytest.approx(thrust(), rel=1e-4)
        if depth >= 0.5:  # half as fast where a round jet is (Pope, table 5.1)
            assert np.interp(-speed[0] / 2, -speed, radii) == pytest.approx(0.094 * depth, rel=1e-3)
    area = 4 * np.pi * RADIUS**2
    highest = np.sqrt(2 * thrust() / (AIR_DENSITY * area))  # momentum theory
    assert fall(np.array([[0, 0, -0.02]]), force)[0] == pytest.approx(highest, rel=1e-9)


def test_jets_add_up_and_stay_in_their_world() -> None:
    pos = np.array([[[0, 0, 2], [0.05, 0, 1], [0, 0.05, 0]], [[0, 0, 9], [5, 0, 9], [0, 0, 9]]])
    both = wrench(downwash(DRONE), state(pos))[0]
    force = downwash(DRONE)
    alone = [fall(np.array([pos[0, 2] - pos[0, i]]), force)[0] for i in (0, 1)]
    speed = both[0, 2, 2] / FIGURES["drag_matrix"][2, 2]
    assert speed == pytest.approx(sum(alone), rel=1e-9)
    np.testing.assert_allclose(both[1], 0, atol=1e-15)


@pytest.mark.parametrize("make", [ground_effect, downwash])
def test_forces_differentiate_and_take_a_drone_for_each(make) -> None:
    pos = np.array([[[0.0, 0, 0.2], [0.01, 0, 0.1]]])

    def lift(pos: jax.Array, speed: float) -> jax.Array:
        at = state(np.zeros((1, 2, 3)), speed)._replace(pos=split(pos))
        return stack(make(DRONE)(at, Params.create(DRONE)).force).sum()

    gradient = jax.grad(lift)(jnp.asarray(pos), 16_000.0)
    step = 1e-6 * np.eye(6).reshape(6, 1, 2, 3)
    differences = [(lift(pos + d, 16_000.0) - lift(pos - d, 16_000.0)) / 2e-6 for d in step]
    np.testing.assert_allclose(gradient.ravel(), differences, atol=1e-6)
    assert np.isfinite(jax.grad(lift)(jnp.asarray(pos), 0.0)).all()
    one = wrench(make(DRONE), state(pos))
    np.testing.assert_allclose(wrench(make([DRONE, DRONE]), state(pos)), one, rtol=1e-12)
