"""Drones with six and eight rotors in a world whose bodies move."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
import pytest
from multirotors import HEXA, OCTO

from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import DroneState, PhysicsThread, SimulationConfig
from crazyflow_ros.scene.description import read_text

T = 300.0  # s, no wait is longer
G, LOAD = 9.81, 0.5
NAMES = ("cf0", "cf1")
WORLD = f"""<mujoco><worldbody>
  <geom type="plane" size="0 0 1"/>
  <body name="load" pos="0 0 0.1"><freejoint/>
    <geom type="box" size="0.1 0.1 0.1" mass="{LOAD}"/></body>
  <body name="stand" pos="5 0 0.2"><freejoint/>
    <geom type="box" size="0.5 0.5 0.2" mass="50"/></body>
  <body name="pendulum" pos="0 9 2"><joint name="swing" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 -0.4" size="0.02" mass="0.2"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module", params=[HEXA, OCTO])
def physics(request: pytest.FixtureRequest) -> Iterator[PhysicsThread]:
    """Both drones on the floor, far from the bodies."""
    config = SimulationConfig(
        drone_model=request.param,
        real_time_factor=0.0,
        start_paused=True,
        initial_poses=np.array([(*x, 0.1, 0.0, 0.0, 0.0, 1.0) for x in ((0, -5), (5, 5))], float),
    )
    physics = PhysicsThread(config, NAMES)
    physics.start()
    physics.world.set_scene(read_text(WORLD)).result(T)
    yield physics
    physics.stop()
    assert physics.failed is None, physics.failed


def put(physics: PhysicsThread, name: str, pos: tuple[float, float, float]) -> None:
    zero = (0.0, 0.0, 0.0)
    state = DroneState(pos=pos, quat=(0.0, 0.0, 0.0, 1.0), vel=zero, ang_vel=zero)
    physics.state.set_drone_states({name: state}).result(T)


def hovered(physics: PhysicsThread, name: str, pos: tuple[float, float, float]) -> np.ndarray:
    """Fly there; return the rotor speeds after 12 s [rad/s]. A load pulls a drone down a little."""
    physics.command(name, Pose(pos, 0.0))
    now = physics.step(12 * physics.freq).result(T)
    row = physics.snapshot.names.index(name)
    np.testing.assert_allclose(now.pos[row], pos, atol=0.1)
    return now.rotor_vel[row]


def hover_speeds(physics: PhysicsThread, load: float = 0.0) -> np.ndarray:
    model = physics.config.drone_model
    return rotors_of(model).hover_speeds((load_drone(model)["mass"] + load) * G) * RPM


def data(physics: PhysicsThread) -> mujoco.MjData:
    return physics.simulation.engine.bodies.data


def test_bodies_move_beside_it_as_in_plain_mujoco(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)
    model = mujoco.MjModel.from_xml_string(WORLD)
    alone = mujoco.MjData(model)
    physics.command("cf0", Pose((0.0, -5.0, 1.0), 0.0))
    for _ in range(20):
        mujoco.mj_step(model, alone, 50)
        physics.step(50).result(T)
        ours = data(physics)
        assert ours.joint("swing").qpos[0] == pytest.approx(alone.joint("swing").qpos[0], abs=1e-6)
        np.testing.assert_allclose(ours.body("load").xpos, alone.body("load").xpos, atol=1e-6)


def test_it_hovers_among_bodies_as_by_hand(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)
    speeds = hovered(physics, "cf0", (0.0, -5.0, 1.0))
    np.testing.assert_allclose(speeds, hover_speeds(physics), rtol=1e-3)
    shown = [data(physics).joint(f"rotor{i}:cf0").qvel[0] for i in range(len(speeds))]
    np.testing.assert_allclose(shown, speeds, rtol=1e-6)


def test_its_rotors_carry_the_load_that_it_holds(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)
    foot = load_drone(physics.config.drone_model)["geometry"]["foot_z"]
    put(physics, "cf0", (0.0, 0.0, 0.2 - foot))
    physics.world.attach("cf0", "load", cable=True, length=0.5, reach=1.0).result(T)
    speeds = hovered(physics, "cf0", (0.0, 0.0, 1.5))
    np.testing.assert_allclose(speeds, hover_speeds(physics, LOAD), rtol=0.01)
    now = data(physics)
    pull = now.efc_force[now.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON]
    assert pull == pytest.approx(LOAD * G, rel=0.02)
    kept, ends = physics.state.checkpoint().result(T), []
    for _ in range(2):
        physics.state.restore(kept).result(T)
        physics.step(200).result(T)
        ends.append((physics.snapshot.rotor_vel, data(physics).qpos.copy()))
    for one, other in zip(*ends):
        np.testing.assert_array_equal(one, other)
    physics.world.detach("cf0").result(T)
    physics.step(500).result(T)
    assert data(physics).body("load").xpos[2] == pytest.approx(0.1, abs=0.02)


def test_it_rests_on_a_box_and_takes_off(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)
    figures = load_drone(physics.config.drone_model)
    height = 0.4 - figures["geometry"]["foot_z"]
    put(physics, "cf1", (5.0, 0.0, height))
    now = physics.step(1000).result(T)
    weight = figures["mass"] * G
    np.testing.assert_allclose(now.contact[1, :3], (0, 0, weight), atol=1e-3 * weight)
    assert now.pos[1, 2] == pytest.approx(height, abs=2e-3)
    speeds = hovered(physics, "cf1", (5.0, 0.0, 1.5))
    np.testing.assert_allclose(speeds, hover_speeds(physics), rtol=1e-3)
