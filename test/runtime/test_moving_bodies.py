"""Bodies of a world that move: beside plain MuJoCo, and with drones."""

import mujoco
import numpy as np
import pytest
from moving_worlds import WORLDS

from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene.description import read_text

T = 300.0  # s, no wait of a test is longer; compiling is among them
AWAY = (50.0, 50.0, 0.05, 0.0, 0.0, 0.0, 1.0)


@pytest.fixture(scope="module")
def physics(tmp_path_factory):
    """One drone far from everything."""
    world = tmp_path_factory.mktemp("world") / "world.xml"
    world.write_text(WORLDS["lands"])
    config = SimulationConfig(
        real_time_factor=0.0,
        start_paused=True,
        scene=str(world),
        initial_poses=np.array([AWAY]),
    )
    physics = PhysicsThread(config, ("cf0",))
    physics.start()
    yield physics
    physics.stop()
    assert physics.failed is None, physics.failed


def load(physics, world):
    physics.world.set_scene(read_text(world)).result(T)
    physics.state.reset().result(T)


@pytest.mark.parametrize("name", WORLDS)
def test_bodies_move_as_in_plain_mujoco(physics, name):
    model = mujoco.MjModel.from_xml_string(WORLDS[name])
    model.opt.timestep = min(model.opt.timestep, 1 / physics.freq)
    data = mujoco.MjData(model)
    load(physics, WORLDS[name])
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        physics.mirror.apply_keyframe(model.key(0).name)
    steps = round(1 / physics.freq / model.opt.timestep)
    for _ in range(50):
        mujoco.mj_step(model, data, 50 * steps)
        physics.step(50).result(T)
        ours = physics.mirror.copy_physics_data()
        np.testing.assert_allclose(ours.qpos[: model.nq], data.qpos, atol=1e-6)
