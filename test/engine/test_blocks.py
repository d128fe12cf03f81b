"""Swarms that are computed block by block: each drone flies as it would in a small world."""

import numpy as np
import pytest

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.forces.jets import TOGETHER
from crazyflow_ros.engine.blocks import BLOCK, is_divided, neighbours_together, slots_for
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.sim.data import grid_2d

N = 130  # drones, of which the last two are alone in the last block
WATCHED = 3, 129  # the last one hovers above the other
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
        engine.set_commands([name], command[None])


def flown(engine: Engine, ticks: int) -> list:
    engine.wrench[engine.rows[WATCHED[0]] if len(engine.names) > 2 else 0] = [0, 0, 2e-3, 0, 0, 0]
    return [engine.advance(tick, [25], 0)[-1] for tick in range(0, ticks, 25)]


@pytest.fixture(scope="module")
def flights():
    places = poses(N)
    places[WATCHED[1], :3] = places[WATCHED[0], :3] + [0.02, 0, 0.5]
    found = []
    for rows in (range(N), WATCHED):
        own = places[list(rows)]
        config = SimulationConfig(
            initial_poses=own, ground_effect=True, downwash=True, true_mass=True
        )
        engine = Engine(config, [f"cf{i}" for i in rows])
        commanded(engine, own)
        found.append((engine, flown(engine, 250)))
    return found


def test_each_drone_flies_as_in_a_small_world(flights) -> None:
    (swarm, of_swarm), (_, of_two) = flights
    assert swarm.n_slots == slots_for(N) and swarm.n_slots % BLOCK == 0
    for snapshot, alone in zip(of_swarm, of_two):
        assert snapshot.tick == alone.tick
        for name in ("pos", "quat", "vel", "ang_vel", "acc", "rotor_vel", "specific_force"):
            watched = getattr(snapshot, name)[list(WATCHED)]
            scale = max(1.0, np.abs(getattr(alone, name)).max())
            np.testing.assert_allclose(watched, getattr(alone, name), atol=2e-5 * scale, rtol=0)


def test_the_drone_below_feels_the_jet(flights) -> None:
    (_, of_swarm), _ = flights
    below, others = WATCHED[0], [i for i in range(N) if i not in WATCHED]
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
    assert is_divided(SimulationConfig(downwash=True), many, by_door=0, gusts=False)
    for changes in ({"drone_collisions": True}, {"integrator": "rk4"}, {"estimator": "kalman"}):
        assert not is_divided(SimulationConfig(**changes), many, by_door=0, gusts=False)
    assert not is_divided(SimulationConfig(), many, by_door=0, gusts=True)
    assert not is_divided(SimulationConfig(), many, by_door=5, gusts=False)
