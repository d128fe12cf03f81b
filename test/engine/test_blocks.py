"""Swarms that are computed block by block: each drone flies as it would in a small world."""

import jax
import numpy as np
import pytest

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.forces.encounters import encounters
from crazyflow_ros.dynamics.forces.jets import TOGETHER
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.engine.slots import BLOCK, is_divided, neighbours_together, slots_for
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.scene.frames import grid_2d

N = 130  # drones, of which the last two are alone in the last block
WATCHED = 3, 129  # the last one hovers above the other
COLLIDING = 10, 77  # the second one falls on the first
WEIGHT = load_drone("cf2x_L250")["mass"] * 9.81


def poses(n_drones: int) -> np.ndarray:
    places = np.zeros((n_drones, 7))
    places[:, :2], places[:, 2], places[:, 6] = 2 * grid_2d(n_drones), 0.5, 1.0
    return places


def commanded(engine: Engine, places: np.ndarray) -> None:
    """Command each drone to a place beside where it is; another rolls until it is lost."""
    for i, name in enumerate(engine.names):
        command = np.zeros(engine.command.shape[1] + 1)
        command[:3], command[-1] = places[i, :3] + [0.1, 0.05, 0.02], Level.state
        if name == f"cf{COLLIDING[1]}":
            command[2] -= 0.5
        engine.set_commands([name], command[None])


def flown(engine: Engine, ticks: int) -> list:
    engine.wrench[engine.names.index(f"cf{WATCHED[0]}")] = [0, 0, 2e-3, 0, 0, 0]
    return [engine.advance(tick, [25], 0)[-1] for tick in range(0, ticks, 25)]


@pytest.fixture(scope="module")
def flights():
    places = poses(N)
    places[WATCHED[1], :3] = places[WATCHED[0], :3] + [0, 0, 0.5]
    places[COLLIDING[1], :3] = places[COLLIDING[0], :3] + [0.02, 0.01, 0.07]
    found = []
    for rows in (range(N), (*WATCHED, *COLLIDING)):
        own = places[list(rows)]
        options = dict.fromkeys(
            ("ground_effect", "downwash", "true_mass", "drone_collisions"), True
        )
        config = SimulationConfig(initial_poses=own, **options)
        engine = Engine(config, [f"cf{i}" for i in rows])
        commanded(engine, own)
        found.append((engine, flown(engine, 250)))
    return found


@pytest.mark.soak
def test_each_drone_flies_as_in_a_small_world(flights) -> None:
    (swarm, of_swarm), (_, of_two) = flights
    assert swarm.n_slots == slots_for(N) and swarm.n_slots % BLOCK == 0
    for snapshot, alone in zip(of_swarm, of_two):
        assert snapshot.tick == alone.tick
        for name in ("pos", "quat", "vel", "ang_vel", "acc", "rotor_vel", "specific_force"):
            watched, own = getattr(snapshot, name)[list(WATCHED)], getattr(alone, name)[:2]
            scale = max(1.0, np.abs(own).max())
            np.testing.assert_allclose(watched, own, atol=2e-5 * scale, rtol=0)


@pytest.mark.soak
def test_drones_of_different_blocks_collide_as_in_a_small_world(flights) -> None:
    (_, of_swarm), (_, of_few) = flights
    for snapshot, alone in zip(of_swarm, of_few):
        for name in ("pos", "vel", "impact"):
            own, alone_own = getattr(snapshot, name)[list(COLLIDING)], getattr(alone, name)[2:]
            np.testing.assert_allclose(own, alone_own, atol=1e-4, rtol=1e-3)
    pushed = np.max([snapshot.impact for snapshot in of_swarm], axis=0)
    assert pushed[list(COLLIDING)].min() > WEIGHT / 2
    assert np.delete(pushed, (*COLLIDING, *WATCHED)).max() == 0


def test_drones_that_may_touch_are_found_among_many() -> None:
    """Compared with all pairs, in float64, with drones in any order, far away and lost."""
    rng, n = np.random.default_rng(0), 150
    found = jax.jit(lambda pos, radius, order: encounters(tuple(pos.T), radius, order))
    for side, offset in ((2.0, 0.0), (5.0, 5000.0), (20.0, 0.0), (300.0, 0.0)):
        pos = (rng.uniform(-side, side, (n, 3)) * [1, 1, 0.2] + offset).astype(np.float32)
        radius = rng.uniform(0.05, 0.2, n).astype(np.float32)
        pos[7] = radius[9] = np.nan
        gaps = np.linalg.norm(pos[:, None] - pos.astype(float), axis=-1)
        near = gaps < np.add.outer(*[np.nan_to_num(radius).astype(float)] * 2)
        i, k = np.nonzero(near & ~np.eye(n, dtype=bool))
        expected = np.zeros(n // 2 + 1, bool)
        expected[np.minimum((k - i) % n, (i - k) % n)] = True
        order = neighbours_together(np.nan_to_num(pos)).astype(np.int32)
        np.testing.assert_array_equal(found(pos, radius, order), expected)
        shuffled = rng.permutation(n).astype(np.int32)
        order = np.stack((shuffled, np.argsort(shuffled).astype(np.int32)))
        np.testing.assert_array_equal(found(pos, radius, order), expected)


@pytest.mark.soak
def test_the_drone_below_feels_the_jet(flights) -> None:
    (_, of_swarm), _ = flights
    below, others = WATCHED[0], [i for i in range(N) if i not in (*WATCHED, *COLLIDING)]
    height = of_swarm[3].pos[:, 2] - of_swarm[3].pos[others, 2].mean()
    assert height[below] < -1e-3
    assert np.abs(height[others]).max() < 1e-3


def test_neighbours_follow_each_other() -> None:
    rng = np.random.default_rng(0)
    pos = np.column_stack([rng.permutation(grid_2d(1024)), rng.uniform(0, 2, 1024)])
    order, inverse = neighbours_together(pos)
    assert np.array_equal(order[inverse], np.arange(1024))
    groups = pos[order].reshape(-1, TOGETHER, 3)
    extent = np.ptp(groups, axis=1).max(axis=1)
    assert np.median(extent) < 7  # some 30 for drones in any order


def test_what_needs_all_drones_at_once_is_not_divided() -> None:
    many = slots_for(1000)
    config = SimulationConfig(downwash=True, drone_collisions=True)
    assert is_divided(config, many, by_door=0, gusts=False)
    for changes in ({"integrator": "rk4"}, {"estimator": "kalman"}):
        assert not is_divided(SimulationConfig(**changes), many, by_door=0, gusts=False)
    assert not is_divided(SimulationConfig(), many, by_door=0, gusts=True)
    assert not is_divided(SimulationConfig(), many, by_door=5, gusts=False)
