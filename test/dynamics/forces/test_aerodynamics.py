"""Ground effect and downwash against their closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import BodyState, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces.aerodynamics import downwash, ground_effect
from crazyflow_ros.dynamics.forces.external import Force
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.sim import Sim

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = "cf21B_500"
FIGURES = load_drone(DRONE)
RADIUS, ROTOR_Z = FIGURES["geometry"]["rotor_radius"], FIGURES["geometry"]["rotor_z"]
LEVEL = (0.0, 0.0, 0.0, 1.0)


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


def published(drone: str, z: np.ndarray) -> np.ndarray:
    """Thrust at heights of the rotors [m], over that far away: Sanchez-Cuevas et al. 2017.

    Of a quadrotor, as written there, with d and b for the distances to the next and the opposite
    rotor, and K_b = 2.
    """
    figures = load_drone(drone)
    R, d = figures["geometry"]["rotor_radius"], 2 * figures["L"]
    b = np.sqrt(2) * d
    images = (R / (4 * z)) ** 2 + R**2 * z / (d**2 + 4 * z**2) ** 1.5
    images += R**2 / 2 * z / (2 * d**2 + 4 * z**2) ** 1.5
    return 1 / (1 - images - 2 * R**2 * z / (b**2 + 4 * z**2) ** 1.5 * 2)


def test_ground_effect_of_a_level_drone_is_the_published_one() -> None:
    heights = np.array([0.5, 1, 2, 5]) * RADIUS
    pos = np.stack([0 * heights, 0 * heights, heights - ROTOR_Z], -1)
    force, torque = wrench(ground_effect(DRONE), state(pos))
    ratios = 1 + force[:, 2] / thrust()
    np.testing.assert_allclose(ratios, published(DRONE, heights), rtol=2e-4)
    np.testing.assert_allclose(force[:, :2], 0, atol=1e-15)
    np.testing.assert_allclose(torque, 0, atol=1e-15)
    below = wrench(ground_effect(DRONE), state(np.array([[0.0, 0, -1]])))[0]
    assert 1 + below[0, 2] / thrust() == pytest.approx(ratios[0])  # where the formula ends
    assert not wrench(ground_effect(DRONE), state(pos, speed=0.0))[0].any()
    last = state(np.array([[0, 0, (25 + x) * RADIUS - ROTOR_Z] for x in (-1e-3, 1e-3)]))
    assert wrench(ground_effect(DRONE), last)[0][:, 2].max() < 1e-6 * thrust()  # it ends smoothly


@pytest.mark.parametrize(("height", "more"), [(0.02, 0.129), (0.05, 0.068), (0.10, 0.028)])
def test_a_crazyflie_near_the_floor_has_the_published_thrust(height: float, more: float) -> None:
    """Of the brushed one, within 20 % of what Sanchez-Cuevas et al. 2017 have for its rotors."""
    at = state(np.array([[0, 0, height]]))
    params = Params.create("cf2x_L250")
    extra = ground_effect("cf2x_L250")(at, params).force[2] / sum(params.rotor_thrust(at))
    assert float(extra[0]) == pytest.approx(more, rel=0.2)
    rotors = height + load_drone("cf2x_L250")["geometry"]["rotor_z"]
    assert float(extra[0]) == pytest.approx(published("cf2x_L250", np.array(rotors)) - 1, rel=0.01)


@pytest.mark.parametrize("dynamics", ["first_principles", "so_rpy"])
def test_batched_worlds_have_their_own_ground(dynamics: str) -> None:
    """Two drones in each of two worlds, of which only the first has a table below them."""
    effect = ground_effect("cf2x_L250")
    sim = Sim(2, 2, drone="cf2x_L250", dynamics=dynamics, control="attitude", forces=(effect,))
    box = Obstacles.create(["box"], [[1, 1, 0.5]], [[0, 0, 0.5]])
    boxes = jax.tree.map(lambda x: jnp.stack((x, x))[:, None], box)
    low = boxes.pos.at[1, ..., 2].set(-2.0)
    at = sim.data.states.components._replace(
        pos=split(jnp.full((2, 2, 3), 0.0).at[..., 2].set(1.05))
    )
    at = at._replace(rotor_vel=tuple(r + 15_000 for r in at.rotor_vel))
    params = sim.data.params.replace(obstacles=boxes.replace(pos=low))
    share = effect(at, params).force[2] / sum(params.rotor_thrust(at))
    np.testing.assert_allclose(share, [[0.068] * 2, [0.0] * 2], atol=5e-4)
    sim.data = sim.data.replace(params=params)
    sim.step(5)
    assert np.isfinite(sim.data.states.pos).all()


def test_two_rotors_at_one_place_have_one_image() -> None:
    """The pairs of the octocopter blow as single rotors in the places of a quadrotor would."""
    figures = load_drone("octo_x8")
    position = figures["rotors"].position
    flat = position[:, 2].mean()
    for z in (0.5, 1.0):
        at = state(np.array([[0, 0, z - flat]]))._replace(rotor_vel=(jnp.full(1, 3000.0),) * 8)
        params = Params.create("octo_x8")
        extra = ground_effect("octo_x8")(at, params).force[2] / sum(params.rotor_thrust(at))
        d = 2 * np.abs(position[0, 0])
        R = figures["geometry"]["rotor_radius"]
        images = (R / (4 * z)) ** 2 + R**2 * z / (d**2 + 4 * z**2) ** 1.5
        images += R**2 / 2 * z / (2 * d**2 + 4 * z**2) ** 1.5 * 9
        assert float(extra[0]) == pytest.approx(images / (1 - images), rel=0.03)


def table(params: Params) -> Params:
    """A table of 1 m at x < 0, and the floor beside it."""
    box = Obstacles.create(["box"], [[0.5, 0.5, 0.5]], [[-0.5, 0, 0.5]])
    return params.replace(obstacles=box)


def test_half_over_the_edge_of_a_table_a_drone_is_turned_away_from_it() -> None:
    params, effect = table(Params.create(DRONE)), ground_effect(DRONE)
    pos = np.array([[[x, 0, 1 + RADIUS - ROTOR_Z]] for x in (-0.3, 0.0, 0.3)])
    force, torque = (np.asarray(stack(v)) for v in effect(state(pos), params))
    over, half, beside = force[:, 0, 2]
    floor = wrench(effect, state(pos[:1] - [0, 0, 1]))[0]
    assert over == pytest.approx(floor[0, 0, 2], rel=1e-9)
    assert beside == 0
    # Each rotor has its own share: two of four, and no fountain where jets do not meet.
    R, d = RADIUS, 2 * FIGURES["L"]
    own = (R / (4 * R)) ** 2 + R**2 / 2 * R / (d**2 + 4 * R**2) ** 1.5
    other = R**2 / 2 * (R / (d**2 + 4 * R**2) ** 1.5 + R / (2 * d**2 + 4 * R**2) ** 1.5)
    share = thrust() / 4
    two, rest = 2 * share * own / (1 - own), 2 * share * other / (1 - other)
    assert half == pytest.approx(two + rest, rel=1e-3)
    assert torque[1, 0, 1] == pytest.approx((two - rest) * FIGURES["L"], rel=1e-3)
    np.testing.assert_allclose(torque[[0, 2]], 0, atol=1e-12)
    np.testing.assert_allclose(torque[1, 0, [0, 2]], 0, atol=1e-12)


def test_the_ground_of_each_rotor_may_be_given() -> None:
    """As heights of what is below, where another program knows it."""
    params, effect = Params.create(DRONE), ground_effect(DRONE)
    pos = np.array([[[0.0, 0, 1 + RADIUS - ROTOR_Z]]])
    below = jnp.asarray(np.where(FIGURES["rotors"].position[:, 0] < 0, 1.0, 0.0))[None, None]
    given, found = (effect(state(pos), p) for p in (params.replace(ground=below), table(params)))
    np.testing.assert_allclose(stack(given.torque), stack(found.torque), atol=1e-15)
    np.testing.assert_allclose(stack(given.force), stack(found.force), rtol=1e-12)


def test_near_the_floor_a_tilted_drone_is_righted() -> None:
    quat = Rotation.from_euler("x", 0.3)
    force, torque = wrench(ground_effect(DRONE), state(np.array([0, 0, 0.05]), quat=quat.as_quat()))
    assert torque[0] < -1e-6  # the low side, on the right, gets more thrust
    np.testing.assert_allclose(torque[1:], 0, atol=1e-15)
    np.testing.assert_allclose(np.cross(force, quat.apply([0, 0, 1])), 0, atol=1e-15)


def loss(points: np.ndarray, quat: tuple[float, ...] = LEVEL) -> np.ndarray:
    """Thrust [N] that a level drone at points below a drone at the origin loses."""
    force, _ = blown(points, quat)
    assert not force[..., :2].any()
    return -force[..., 2]


def blown(
    points: np.ndarray, quat: tuple[float, ...] = LEVEL, own: tuple[float, ...] = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Force and torque on a drone at points below one at the origin, each with its attitude."""
    pos = np.stack([np.zeros_like(points), points], axis=-2)
    attitudes = np.broadcast_to([quat, own], (*pos.shape[:-1], 4))
    force, torque = wrench(downwash(DRONE), state(pos)._replace(quat=split(jnp.asarray(attitudes))))
    assert not torque[..., 0, :].any() and not force[..., 0, :].any()  # none on the one above
    return force[..., 1, :], torque[..., 1, :]


def mean_square_radius() -> float:
    """Return the mean squared distance of points of the rotor discs from the drone's centre."""
    radius, angle = np.meshgrid((np.arange(200) + 0.5) / 200, 2 * np.pi * np.arange(200) / 200)
    x, y = (FIGURES["L"] + RADIUS * radius * f(angle) for f in (np.cos, np.sin))
    return float(np.average(x**2 + y**2, weights=radius))


def test_the_momentum_of_the_air_is_the_thrust_at_every_depth() -> None:
    radii = np.linspace(0, 5, 20_001)
    for depth in (0.05, 0.5, 5.0):
        lost = loss(np.stack([radii, 0 * radii, 0 * radii - depth], -1))
        # Twice the dynamic pressure is the flux of momentum; 1.35 as in the documentation.
        momentum = 2 * lost / (1.35 * 4 * np.pi * RADIUS**2)
        assert np.trapezoid(momentum * 2 * np.pi * radii, radii) == pytest.approx(
            thrust(), rel=1e-5
        )
        # Above, spreading and below: mean squares of independent distances add up.
        mean = np.average(radii**2, weights=lost * radii)
        spreading = (0.094 * depth) ** 2 / (2 * np.log(2))
        assert mean == pytest.approx(2 * mean_square_radius() + spreading, rel=1e-4)


def test_far_below_a_jet_is_as_wide_as_a_round_jet() -> None:
    # Where the speed is half of that on the axis (Pope, table 5.1), its square is a quarter.
    on_axis, beside = loss(np.array([[0, 0, -100.0], [9.4, 0, -100.0]]))
    assert beside == pytest.approx(on_axis / 4, rel=1e-3)


def test_a_jet_is_round_and_tilts_with_its_drone() -> None:
    tilt = Rotation.from_euler("xyz", [0.4, 0.3, 1.0])
    around = [Rotation.from_euler("z", angle).apply([0.08, 0, -0.4]) for angle in range(6)]
    straight = loss(np.array(around))
    np.testing.assert_allclose(straight, straight[0], rtol=1e-12)
    tilted = loss(tilt.apply(around), tuple(tilt.as_quat()))
    np.testing.assert_allclose(tilted, straight, rtol=1e-12)


def test_beside_the_axis_a_drone_is_turned_towards_it() -> None:
    """By 1.63 times the moment of what its parts lose, those of a Gaussian as wide as its discs.

    Less just below the other, as z^2 / (z^2 + w).
    """
    point, own = np.array([[0.05, 0, -0.4]]), 2 * mean_square_radius()
    bare = own + (0.094 * 0.4) ** 2 / np.log(2)  # squared width of the jet where the drone is

    def lost(x: np.ndarray, wide: float) -> np.ndarray:
        return 1.35 * 4 * RADIUS**2 * thrust() / wide * np.exp(-2 * x**2 / wide)

    assert loss(point)[0] == pytest.approx(float(lost(0.05, bare + own)), rel=1e-4)
    x = np.linspace(-0.4, 0.4, 4001)
    share = np.exp(-2 * x**2 / own) * lost(x + 0.05, bare)
    moment = np.average(x, weights=share) * loss(point)[0]
    torque = blown(point)[1]
    assert torque[0, 1] < 0  # its top goes to the axis
    merged = 0.4**2 / (0.4**2 + own)
    np.testing.assert_allclose(torque[0], [0, 1.63 * merged * moment, 0], rtol=1e-3, atol=1e-12)
    assert np.abs(blown(np.array([[0.05, 0, -1e-3]]))[1]).max() < 1e-3 * abs(moment)


def test_the_torque_in_a_jet_turns_with_both_drones_and_is_none_on_the_axis() -> None:
    np.testing.assert_allclose(blown(np.array([[0, 0, -0.4]]))[1], 0, atol=1e-15)
    point, turn = np.array([[0.06, 0.02, -0.4]]), Rotation.from_euler("z", 1.0)
    straight, tilt = blown(point)[1], Rotation.from_euler("xy", [0.2, -0.1])
    np.testing.assert_allclose(blown(turn.apply(point))[1], turn.apply(straight.copy()), atol=1e-12)
    both = tuple((tilt.as_quat()).tolist())
    turned = blown(tilt.apply(point), both, both)[1]
    share = tilt.apply([0, 0, 1])[2]  # of the flow that passes through discs that are tilted
    np.testing.assert_allclose(turned, share * tilt.apply(straight.copy()), rtol=1e-9)


@pytest.mark.parametrize("aside", [0.045, 0.075, 0.105])
def test_the_torque_in_a_jet_is_that_on_real_crazyflies(aside: float) -> None:
    # Means [mN m] over flights that it is not fitted to, 0.25 to 0.6 m below; `python -m
    # benchmark.downwash` says which flights these are.
    measured = dict(zip((0.045, 0.075, 0.105), (1.52, 1.62, 1.05)))[aside]
    drone = "cf2x_L250"
    speed = np.roots([*load_drone(drone)["rpm2thrust"][:0:-1], -0.034 * 9.81 / 4]).max()
    pos = np.zeros((8, 2, 3))
    pos[:, 1, 0], pos[:, 1, 2] = aside, -np.linspace(0.25, 0.6, 8)
    torque = downwash(drone)(state(pos, speed), Params.create(drone)).torque[1]
    assert -1e3 * float(torque[:, 1].mean()) == pytest.approx(measured, abs=0.4)


@pytest.mark.parametrize("drone", ["cf2x_L250", "cf2x_P250"])
def test_downwash_is_that_of_real_crazyflies(drone: str) -> None:
    # Medians [g] over flights of two and three Crazyflies of 34 g, as benchmark.downwash prints;
    # rows: 0.3, 0.4, 0.5 m below; columns: about 2, 4.7, 7.6, 10.6, 13.5, 17.6 cm from the axis.
    measured = [
        [9.2, 6.3, 3.6, 1.3, 0.2, -0.1],
        [7.7, 6.3, 4.0, 1.6, 0.2, -0.1],
        [6.7, 5.3, 3.5, 1.8, 0.4, -0.1],
    ]
    aside = np.array([0.02, 0.047, 0.076, 0.106, 0.135, 0.176])
    speed = np.roots([*load_drone(drone)["rpm2thrust"][:0:-1], -0.034 * 9.81 / 4]).max()
    for depth, row in zip((0.3, 0.4, 0.5), measured):
        pos = np.zeros((len(aside), 2, 3))
        pos[:, 1, 0], pos[:, 1, 2] = aside, -depth
        force = downwash(drone)(state(pos, speed), Params.create(drone)).force[2]
        np.testing.assert_allclose(-force[:, 1] / 9.81e-3, row, atol=1.5)


def test_jets_add_up_and_stay_in_their_world() -> None:
    pos = np.array([[[0, 0, 2], [0.05, 0, 1], [0, 0.05, 0]], [[0, 0, 9], [5, 0, 9], [0, 0, 9]]])
    both = wrench(downwash(DRONE), state(pos))[0]
    alone = loss(np.array([pos[0, 2] - pos[0, i] for i in (0, 1)]))
    assert -both[0, 2, 2] == pytest.approx(alone.sum(), rel=1e-9)
    np.testing.assert_allclose(both[1], 0, atol=1e-15)


def test_a_tilted_drone_loses_thrust_along_its_axis() -> None:
    tilt = Rotation.from_euler("y", 0.5)
    pos = np.array([[0, 0, 0.5], [0.0, 0, 0]])
    quat = np.array([LEVEL, tilt.as_quat()])
    both = wrench(downwash(DRONE), state(pos)._replace(quat=split(jnp.asarray(quat))))[0]
    level = loss(np.array([[0, 0, -0.5]]))[0]
    np.testing.assert_allclose(both[1], -level * np.cos(0.5) * tilt.apply([0, 0, 1]), atol=1e-12)


def test_a_lost_drone_does_not_blow() -> None:
    pos = np.array([[0, 0, 0.5], [0.0, 0, 0], [np.nan] * 3])
    force = wrench(downwash(DRONE), state(pos))[0]
    np.testing.assert_array_equal(force[:2], wrench(downwash(DRONE), state(pos[:2]))[0])


@pytest.mark.parametrize("make", [ground_effect, downwash])
def test_forces_differentiate_and_take_a_drone_for_each(make) -> None:
    pos = np.array([[[0.0, 0, 0.2], [0.01, 0, 0.1]]])

    def lift(pos: jax.Array, speed: float) -> jax.Array:
        at = state(np.zeros((1, 2, 3)), speed)._replace(pos=split(pos))
        acts = make(DRONE)(at, Params.create(DRONE))
        return stack(acts.force).sum() + stack(acts.torque).sum()

    gradient = jax.grad(lift)(jnp.asarray(pos), 16_000.0)
    step = 1e-6 * np.eye(6).reshape(6, 1, 2, 3)
    differences = [(lift(pos + d, 16_000.0) - lift(pos - d, 16_000.0)) / 2e-6 for d in step]
    np.testing.assert_allclose(gradient.ravel(), differences, atol=1e-6)
    assert np.isfinite(jax.grad(lift)(jnp.asarray(pos), 0.0)).all()
    one = wrench(make(DRONE), state(pos))
    np.testing.assert_allclose(wrench(make([DRONE, DRONE]), state(pos)), one, rtol=1e-12)
