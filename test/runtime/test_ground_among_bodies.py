"""Ground effect over bodies that move, height fields and the floors of such worlds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from physics_helpers import load, started

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import BodyState, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces.aerodynamics import ground_effect
from crazyflow_ros.runtime import DroneState, PhysicsThread, SimulationConfig

T = 300.0  # s, no wait of a test is longer; compiling is among them
DRONE = SimulationConfig().drone_model
FIGURES = load_drone(DRONE)
HOVER = 2000.0  # rad/s, about
HIGH = 20.0  # m, over everything
TABLE = '<body pos="0 0 0.45"><freejoint/><geom type="box" size="0.5 0.5 0.05" mass="50"/></body>'
FLOOR = '<geom type="plane" size="0 0 1" pos="0 0 {}"/>'
HILLS = """<mujoco><asset><hfield name="h" nrow="9" ncol="9" size="2 2 0.3 0.1"
  elevation="{}"/></asset>
  <worldbody><geom type="hfield" hfield="h" pos="0 0 1"/></worldbody></mujoco>
"""


def world(content: str, floor: float = 0.0) -> str:
    return f"<mujoco><worldbody>{FLOOR.format(floor)}{content}</worldbody></mujoco>"


@pytest.fixture(scope="module")
def physics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhysicsThread]:
    """A drone in a world whose table moves."""
    path: Path = tmp_path_factory.mktemp("world") / "world.xml"
    path.write_text(world(TABLE))
    pose = np.array([[0, 0, HIGH, 0, 0, 0, 1.0]])
    config = SimulationConfig(
        real_time_factor=0.0,
        start_paused=True,
        scene=str(path),
        initial_poses=pose,
        ground_effect=True,
        control="rotor_vel",
    )
    with started(config, ("cf0",)) as physics:
        yield physics


def rate(physics: PhysicsThread, pos: tuple[float, float, float]) -> np.ndarray:
    """Return the accelerations (6,) of the drone with its rotors at the same speed at a place."""
    fields = {"vel": np.zeros(3), "ang_vel": np.zeros(3), "rotor_vel": np.full(4, HOVER)}
    physics.state.set_drone_states({"cf0": DroneState(pos=pos, **fields)}).result(T)
    physics.step(5).result(T)  # until rays are cast again; it has hardly moved
    physics.state.set_drone_states({"cf0": DroneState(pos=pos, **fields)}).result(T)
    now = physics.step(1).result(T)
    return np.concatenate((now.acc[0], now.ang_acc[0]))


def gain(physics: PhysicsThread, pos: tuple[float, float, float]) -> np.ndarray:
    """Return the accelerations (6,) by the ground at a place."""
    return rate(physics, pos) - rate(physics, (pos[0], pos[1], HIGH))


def by_hand(height: float, ground: np.ndarray | None = None) -> np.ndarray:
    """Return the same at a height over even ground, or over that of each rotor (4,) [m]."""
    fields = np.array([[[0, 0, height]]]), np.array([[[0, 0, 0, 1.0]]]), np.zeros((1, 1, 3))
    speed = np.full((1, 1, 4), HOVER * 30 / np.pi)
    arrays = *fields[:2], fields[2], fields[2], speed
    state = BodyState(*(split(jnp.asarray(each)) for each in arrays))
    params = Params.create(DRONE)
    if ground is not None:
        params = params.replace(ground=jnp.asarray(ground)[None, None])
    acts = ground_effect(DRONE)(state, params)
    force, torque = (np.asarray(stack(v))[0, 0] for v in (acts.force, acts.torque))
    return np.concatenate((force / FIGURES["mass"], np.linalg.solve(FIGURES["J"], torque)))


def check(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found[:3], expected[:3], atol=0.02)
    np.testing.assert_allclose(found[3:], expected[3:], atol=0.04 * max(1, abs(expected[3:]).max()))


def test_a_table_that_may_move_is_ground(physics: PhysicsThread) -> None:
    load(physics, world(TABLE))
    physics.step(500).result(T)  # it has fallen onto the floor
    assert by_hand(0.05)[2] > 0.4
    check(gain(physics, (0.0, 0.0, 0.1 + 0.05)), by_hand(0.05))
    check(gain(physics, (3.0, 0.0, 0.05)), by_hand(0.05))  # the floor beside it


def test_over_its_edge_a_drone_is_turned(physics: PhysicsThread) -> None:
    load(physics, world(TABLE.replace("0.05", "0.5").replace("0.45", "0.5")))
    physics.step(100).result(T)
    over = FIGURES["rotors"].position[:, 0] < 0
    expected = by_hand(1.04, np.where(over, 1.0, 0.0))
    assert abs(expected[4]) > 1
    check(gain(physics, (0.5, 0.0, 1.04)), expected)


def test_a_height_field_and_a_floor_elsewhere_are_ground(physics: PhysicsThread) -> None:
    slope = np.tile(np.linspace(0, 1, 9), (9, 1))
    load(physics, HILLS.format(" ".join(map(str, slope.ravel()))))
    ground = 1.15 + 0.3 / 4 * FIGURES["rotors"].position[:, 0]
    expected = by_hand(1.15 + 0.05, ground)
    assert abs(expected[4]) > 0.2  # the side over the higher ground is lifted
    check(gain(physics, (0.0, 0.0, 1.15 + 0.05)), expected)
    load(physics, world(TABLE, floor=-3.0))
    check(gain(physics, (3.0, 0.0, -3.0 + 0.05)), by_hand(0.05))


def test_a_flight_over_bodies_does_not_depend_on_the_calls(physics: PhysicsThread) -> None:
    ends = []
    for chunks in ([60], [1] * 60, [7, 30, 23]):
        load(physics, world(TABLE))
        fields = {"rotor_vel": np.full(4, HOVER), "vel": np.array([0.5, 0, 0])}
        physics.state.set_drone_states({"cf0": DroneState(pos=(0.45, 0, 0.52), **fields)}).result(T)
        for ticks in chunks:
            now = physics.step(ticks).result(T)
        ends.append(np.concatenate((now.pos[0], now.quat[0], now.ang_vel[0])))
    assert abs(ends[0][8]) > 0.05  # it was turned over the edge
    np.testing.assert_array_equal(ends[1:], ends[:1] * 2)
