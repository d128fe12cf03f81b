"""What instruments read means what the filter expects: where it is right, errors are noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones.deck_optics import DeckSurface, cone
from crazyflow_ros.dynamics.components import rotation_matrix
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.estimation import instrument_readings as readings
from crazyflow_ros.estimation import kalman
from crazyflow_ros.estimation.below import FAR, Below, floor_below, seen_below
from crazyflow_ros.estimation.instrument_readings import MeanMotion, PoseReading, Random
from crazyflow_ros.estimation.kalman import Belief
from crazyflow_ros.scene import obstacles_of

WHITE = DeckSurface(1.0, 1.0)
N, DT = 20_000, 0.01


def randomness(seed: int) -> Random:
    return Random(*jnp.asarray(Random.seeds(seed, 1, N)[0]).T)


def components(rows: np.ndarray) -> tuple[jax.Array, ...]:
    return tuple(jnp.asarray(rows.T, jnp.float32))


def flights(
    seed: int, low: float, high: float, dt: float = DT, tilt: float = 35.0
) -> tuple[PoseReading, PoseReading, np.ndarray]:
    """Poses at the start and the end of a time step, and the body rates in it.

    Drones between two heights, at up to 1.5 m/s and 4 m/s^2, tilted by up to 35 degrees.
    """
    rng = np.random.default_rng(seed)
    lean, side = rng.uniform(0, np.radians(tilt), N), rng.uniform(-np.pi, np.pi, N)
    lean = np.stack([lean * np.cos(side), lean * np.sin(side), 0 * lean], axis=1)
    rot = Rotation.from_euler("z", rng.uniform(-np.pi, np.pi, (N, 1))) * Rotation.from_rotvec(lean)
    pos = rng.uniform([-2, -2, low], [2, 2, high], (N, 3))
    vel, rates = rng.uniform(-0.85, 0.85, (N, 3)), rng.uniform(-2, 2, (N, 3))
    acc = rng.uniform(-2.3, 2.3, (N, 3))
    later = pos + vel * dt + acc * dt**2 / 2, rot * Rotation.from_rotvec(rates * dt), vel + acc * dt
    poses = [
        PoseReading(components(p), components(r.as_quat()), components(v))  # type: ignore[arg-type]
        for p, r, v in ((pos, rot, vel), later)
    ]
    return poses[0], poses[1], rates


def over_floor(
    pos: Any, attitude: Any, surface: DeckSurface = WHITE, obstacles: Any = None
) -> Below:
    """What drones over a floor see; white, unless it is said."""
    if len(attitude) == 3:
        return floor_below(pos, attitude, 0.0, surface)
    return seen_below(pos, attitude, 0.0, surface, obstacles)


def right(pose: PoseReading) -> Belief:
    """The belief of a drone that knows its pose and velocity."""
    to_body = Rotation.from_quat(np.array(pose.quat).T).inv()
    vel = components(to_body.apply(np.array(pose.vel).T))
    return kalman.certain(pose.pos, pose.quat, vel)  # type: ignore[arg-type]


def is_noise(measurement: kalman.Measurement, *, least: float = 0.9, mean: float = 0.03) -> None:
    """The error is white, and at most as large as the filter expects."""
    errors = np.array(measurement.error / measurement.std)
    assert np.all(measurement.valid)
    assert abs(errors.mean()) < mean
    assert least < errors.std() < 1.1


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.3), (0.8, 1.2), (2.2, 2.8)])
def test_the_range_is_what_the_filter_expects(low: float, high: float) -> None:
    """Up to a tilt of 7.5 degrees, half the cone of the filter: there they agree."""
    _, now, _ = flights(0, low, high, tilt=7.5)
    rot = rotation_matrix(now.quat)
    value, is_seen = readings.height(over_floor(now.pos, rot), jnp.zeros(N), randomness(0))
    is_noise(kalman.height(right(now), rot, value, is_seen))


@pytest.mark.parametrize("tilt", [0.0, 5.0, 11.0, 24.0, 50.0])
def test_the_range_is_that_of_the_nearest_ray_of_a_cone_of_27_degrees(tilt: float) -> None:
    to_world = Rotation.from_euler("xy", [tilt, 0.0], degrees=True)
    angles, sides = np.radians(np.linspace(0, 13.5, 40)), np.linspace(-np.pi, np.pi, 721)
    open_, side = (grid.ravel() for grid in np.meshgrid(angles, sides))
    rays = np.stack([np.sin(open_) * np.cos(side), np.sin(open_) * np.sin(side), -np.cos(open_)])
    nearest = (1.3 / -to_world.apply(rays.T)[:, 2]).min()
    pos = (jnp.zeros(N), jnp.zeros(N), jnp.full(N, 1.3))
    rot = tuple(tuple(jnp.full(N, x) for x in row) for row in to_world.as_matrix())
    value, _ = readings.height(over_floor(pos, rot), jnp.zeros(N), randomness(1))
    assert np.mean(value) == pytest.approx(nearest, abs=2e-4)


def test_ranges_are_as_rough_as_the_firmware_says_and_end_at_4_m() -> None:
    level = tuple(tuple(jnp.full(N, x) for x in row) for row in np.eye(3))
    spread = {}
    for z in (1.0, 2.5, 3.5, 4.2):
        pos = (jnp.zeros(N), jnp.zeros(N), jnp.full(N, z))
        value, is_seen = readings.height(over_floor(pos, level), jnp.zeros(N), randomness(2))
        spread[z] = np.std(value)
        assert bool(is_seen.all()) == (z < 4)
        assert is_seen.all() or float(value[0]) == pytest.approx(8.19)
    # zranger2.c: 2.5 mm up to 2 m, twice that at 2.5 m, 20 cm at 4 m.
    assert spread[1.0] == pytest.approx(0.0025, rel=0.05)
    assert spread[2.5] == pytest.approx(0.005, rel=0.05)
    growth = np.log(0.2 / 0.0025) / 1.5
    assert spread[3.5] == pytest.approx(0.0025 * (1 + np.exp(growth)), rel=0.05)


@pytest.mark.parametrize(("low", "high", "dt"), [(0.3, 0.6, DT), (0.9, 1.5, DT), (0.9, 1.5, 0.02)])
def test_the_flow_is_what_the_filter_expects(low: float, high: float, dt: float) -> None:
    before, now, rates = flights(3, low, high, dt)
    motion, below = MeanMotion.between(before, now, dt), over_floor(now.pos, now.quat)
    found = readings.flow(motion, below, randomness(3), dt)
    assert found.valid.all()
    # As in the filter: its attitude is the one before the prediction, its velocity the one after.
    rot = rotation_matrix(before.quat)
    for measurement in kalman.flow(right(now), rot, components(rates), found.pixels, dt):  # type: ignore[arg-type]
        is_noise(measurement)


def test_over_obstacles_the_deck_sees_what_rays_of_mujoco_hit() -> None:
    """A table, a ball, a post and a ramp of other reflectances over a floor, from any attitude."""
    text = """<mujoco><worldbody>
      <geom type="plane" size="9 9 .1" rgba=".9 .9 .9 1"/>
      <geom type="box" size=".6 .4 .02" pos="0 0 .7" rgba=".05 .05 .05 1"/>
      <geom type="sphere" size=".2" pos=".8 .6 .3" rgba=".6 .6 .6 1"/>
      <geom type="cylinder" size=".05 .4" pos="-.7 .5 .4" rgba=".2 .2 .2 1"/>
      <geom type="box" size=".5 .3 .1" pos="-.4 -.8 .3" euler="20 10 0" rgba=".8 .8 .8 1"/>
    </worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    rng = np.random.default_rng(8)
    n = 200
    pos = rng.uniform([-1.2, -1.2, 0.9], [1.2, 1.2, 2.4], (n, 3))
    rot = Rotation.from_euler("xyz", rng.uniform(-0.5, 0.5, (n, 3)))
    geom, normal = np.zeros(1, np.int32), np.zeros(3)
    nearest, middle = np.full(n, np.inf), np.full(n, np.inf)
    known = np.sqrt([0, 0.17, 0.54, 0.88, 1])
    for i in range(n):
        ways: list[float] = []
        for k, ray in enumerate(rot[i].apply(cone((0, 0, -1)))):
            way = mujoco.mj_ray(model, data, pos[i], ray, None, 1, -1, geom, normal)
            middle[i] = way if k == 0 else middle[i]
            light = max(model.geom_rgba[geom[0], 0], 0.04) * abs(normal @ ray)
            if way <= np.interp(np.sqrt(light), known, [0, 1.7, 3.4, 3.6, 4.0]):
                ways.append(way)
        for way in sorted(ways):  # 15 % of the light, within 15 % of the distance
            near = [other for other in ways if way <= other <= 1.15 * way]
            if sum(1 / np.square(near)) >= 0.15 * sum(1 / np.square(ways)):
                nearest[i] = way
                break
    scanned = obstacles_of(model, slots=lambda shapes: shapes + 2).obstacles
    place, turn = components(pos), components(rot.as_quat())
    found = over_floor(place, turn, DeckSurface(0.9, 1.0), scanned)
    assert (middle < pos[:, 2] - 0.1).sum() > 40  # many are over something
    np.testing.assert_allclose(found.middle, middle, atol=2e-5)
    near = np.isfinite(nearest)
    np.testing.assert_allclose(np.array(found.nearest)[near], nearest[near], atol=2e-5)
    assert np.all(np.array(found.nearest)[~near] == FAR)


def test_a_table_ends_the_flow_at_its_edge_and_a_mirror_gives_none() -> None:
    """1 m/s at 1.5 m over a floor, with a table of 1 m on one side of the yz plane."""
    x = np.where(np.arange(N) < N // 2, -0.01, 0.01)
    pos, quat = np.stack([x, 0 * x, 1.5 + 0 * x], 1), np.tile([0.0, 0, 0, 1], (N, 1))
    vel = np.tile([1.0, 0, 0], (N, 1))
    before = PoseReading(*map(components, (pos - vel * DT, quat, vel)))  # type: ignore[arg-type]
    now = PoseReading(*map(components, (pos, quat, vel)))  # type: ignore[arg-type]
    motion = MeanMotion.between(before, now, DT)
    pixels_per_metre = 35 / 0.71674 * DT  # at 1 m/s and a distance of 1 m

    def read(texture: float) -> readings.FlowReading:
        table = Obstacles.create(
            ["box"], [[1, 1, 0.5]], [[1, 0, 0.5]], surface=DeckSurface(0.9, texture)
        )
        below = over_floor(now.pos, now.quat, obstacles=table)
        return readings.flow(motion, below, randomness(9), DT)

    over = np.split(np.array(read(1.0).pixels[0]), 2)
    for pixels, distance in zip(over, (1.5, 0.5)):
        assert pixels.mean() == pytest.approx(pixels_per_metre / distance, abs=0.01)
        assert pixels.std() == pytest.approx(0.2, rel=0.05)  # flowdeck_v1v2.c
    plain, shiny = read(0.3), read(0.1)
    # Bitcraze's fit: 4.406 - 0.01257 SQUAL counts of 0.1 pixel.
    squal = float(plain.squal[-1])
    assert squal < 0.5 * float(plain.squal[0])
    rough = np.split(np.array(plain.pixels[0]), 2)[1].std()
    assert rough == pytest.approx(0.1 * (4.406 - 0.01257 * squal), rel=0.05)
    assert shiny.valid[: N // 2].all() and not shiny.valid[N // 2 :].any()


def test_the_imu_reads_turns_and_forces_within_the_noise_that_the_filter_expects() -> None:
    before, now, rates = flights(4, 1, 2)
    motion = MeanMotion.between(before, now, DT)
    zero = (jnp.zeros(N),) * 3
    none = readings.Errors(zero, zero, zero, jnp.zeros(N))
    gyro, acc = readings.imu(motion, none, randomness(4), DT)
    change = (np.array(now.vel) - np.array(before.vel)).T / DT + [0, 0, 9.81]
    middle = Rotation.from_quat(np.array(before.quat).T) * Rotation.from_rotvec(rates * DT / 2)
    # The filter adds noise a thousand times a second.
    for found, true, std in (
        (gyro, rates, 0.1),
        (acc, middle.inv().apply(change), 0.5),
    ):
        error = (np.array(found).T - true) / (std / np.sqrt(1000 * DT))
        assert np.abs(error.mean(axis=0)).max() < 0.03
        assert error.std(axis=0).max() < 1.0


def test_poses_are_what_the_filter_expects() -> None:
    _, now, _ = flights(6, 0.5, 2)
    pos_std, quat_std = 0.01, 4.5e-3
    rng = np.random.default_rng(6)
    pos = np.array(now.pos) + rng.normal(0, pos_std, (3, N))
    turned = Rotation.from_quat(np.array(now.quat).T) * Rotation.from_rotvec(
        rng.normal(0, quat_std, (N, 3))
    )
    place = partial(kalman.coordinate, right(now))
    for axis in range(3):
        is_noise(place(axis, jnp.asarray(pos[axis]), pos_std)._replace(valid=True))
    quat = components(turned.as_quat())
    for measurement in kalman.attitude(right(now), quat, quat_std):  # type: ignore[arg-type]
        is_noise(measurement)
