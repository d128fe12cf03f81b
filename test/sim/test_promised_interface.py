"""The examples of the documents that the product is specified by, with the import renamed."""

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from images import need_images
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.sim import sync_sim2mjx

OBSTACLE = """
<mujoco>
  <worldbody>
    <body name="obstacle">
      <geom type="box" size="0.1 0.1 0.1" rgba="0.8 0.2 0.2 1"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def obstacle_course() -> Sim:
    """One for all: its collision functions take a while to compile."""
    sim = Sim(n_worlds=2, n_drones=1)
    obstacle_spec = mujoco.MjSpec.from_string(OBSTACLE)
    frame = sim.spec.worldbody.add_frame()
    for i, pos in enumerate([[1.0, 0.0, 0.5], [2.0, 0.0, 0.5]]):
        body = obstacle_spec.body("obstacle")
        attached = frame.attach_body(body, "", f":{i}")
        attached.pos = pos
        attached.mocap = True
    sim.build_mjx()
    sim.reset()
    return sim


def place(sim: Sim, pos: list[float]) -> None:
    states = sim.data.states
    sim.data = sim.data.replace(
        states=states.replace(pos=jnp.broadcast_to(jnp.array(pos), states.pos.shape))
    )


def test_worlds_and_drones():
    sim = Sim(n_worlds=4, n_drones=2)
    sim.reset()
    assert sim.data.states.pos[2, 0].shape == (3,)
    shapes = {"pos": 3, "quat": 4, "vel": 3, "ang_vel": 3, "force": 3, "torque": 3, "rotor_vel": 4}
    for name, size in shapes.items():
        assert getattr(sim.data.states, name).shape == (4, 2, size)
    for name in ("states", "states_deriv", "controls", "params", "core"):
        assert hasattr(sim.data, name)
    with pytest.raises(AttributeError):
        sim.data.states.pos = sim.data.states.vel  # type: ignore[misc]


def test_simulation_frequency_and_the_control_stack():
    sim = Sim(freq=500, control=Control.state)
    sim.reset()
    cmd = np.zeros((1, 1, 13), dtype=np.float32)
    sim.state_control(cmd)
    sim.step(sim.freq // sim.control_freq)
    assert sim.freq // sim.control_freq == 5
    assert int(sim.data.core.steps[0, 0]) == 5


def test_removing_the_floor():
    sim = Sim(control=Control.rotor_vel)
    sim.step_pipeline = sim.step_pipeline[:-1]  # drop clip_floor_pos
    sim.build_step_fn()
    sim.step(500)
    assert -9.81 / 2 < float(sim.data.states.pos[0, 0, 2]) < -3.5  # a fall with drag


def test_objects_can_be_added_to_the_scene(obstacle_course: Sim):
    sim = obstacle_course
    sim.reset()
    np.testing.assert_allclose(sim.mj_model.body("obstacle:1").pos, (2.0, 0.0, 0.5))
    assert sim.mjx_data.qpos.shape[0] == sim.n_worlds
    assert not sim.contacts("obstacle:0").any()
    place(sim, [1.0, 0.0, 0.5])
    assert sim.contacts("obstacle:0").any() and sim.contacts("drone:0").any()
    assert not sim.contacts("obstacle:1").any()


def test_bodies_can_be_moved_at_run_time(obstacle_course: Sim):
    sim = obstacle_course
    home = sim.mjx_data.mocap_pos
    place(sim, [0.0, 0.0, 3.0])
    assert not sim.contacts().any()
    obstacle = sim.mj_model.body("obstacle:1").mocapid.item()
    pos = sim.mjx_data.mocap_pos.at[:, obstacle].set(jnp.array([0.0, 0.0, 3.0]))
    sim.mjx_data = sim.mjx_data.replace(mocap_pos=pos)
    assert sim.contacts("obstacle:1").any()
    assert not sim.contacts("obstacle:0").any()
    sim.mjx_data = sim.mjx_data.replace(mocap_pos=home)


def test_contacts_tell_where_which_geoms_touch(obstacle_course: Sim):
    sim = obstacle_course
    place(sim, [0.0, 0.0, 0.02])
    radius = sim.mj_model.geom("col_sphere:0").size[0]
    height = 0.02 + sim.mj_model.geom("col_sphere:0").pos[2]
    (contact,) = sim.contact_list(world=1)
    assert contact.geoms == ("floor", "col_sphere:0")
    assert contact.distance == pytest.approx(height - radius, abs=1e-6)
    np.testing.assert_allclose(contact.pos, (0, 0, (height - radius) / 2), atol=1e-6)
    np.testing.assert_allclose(contact.normal, (0, 0, 1), atol=1e-6)
    assert [c.geoms for c in sim.contact_list(body="drone:0")] == [contact.geoms]
    assert sim.contact_list(body="obstacle:0") == []
    with pytest.raises(ValueError, match="world must be one of 0 to 1, got 2"):
        sim.contact_list(world=2)
    slots, found = sim.contact_slots(), sim.mjx_data._impl.contact  # of the query, and of all
    np.testing.assert_allclose(slots.distance, found.dist, atol=1e-6)
    np.testing.assert_array_equal(slots.geoms, found.geom)


def test_synchronisation_is_lazy_and_never_stale(obstacle_course: Sim):
    sim = obstacle_course
    place(sim, [0.0, 0.0, 2.0])
    assert not sim.data.core.mjx_synced
    assert not sim.contacts().any()
    assert sim.data.core.mjx_synced
    synced = sim.mjx_data
    sim.contacts()
    assert sim.mjx_data is synced  # nothing was computed again
    sim.step(5)
    assert not sim.data.core.mjx_synced
    sim.contacts()
    drone = sim.data.core.drone_mocap_ids
    np.testing.assert_allclose(sim.mjx_data.mocap_pos[:, drone], sim.data.states.pos)
    place(sim, [0.0, 0.0, 0.01])  # by hand
    assert sim.contacts().any()
    sim.reset()
    assert not sim.data.core.mjx_synced


def test_pictures_and_contacts_share_a_synchronisation(obstacle_course: Sim, monkeypatch):
    need_images()
    sim = obstacle_course
    draw = partial(Sim.render, mode="rgb_array", width=16, height=12)  # human opens a window
    for i in range(10):
        sim.step(5)
        assert not sim.data.core.mjx_synced
        if i % 5 == 0:
            draw(sim)
            assert sim.data.core.mjx_synced
    syncs = []
    show = sim._view.show
    monkeypatch.setattr(sim._view, "show", lambda data: syncs.append(show(data)))
    sim.step(5)
    sim.contacts()
    draw(sim)
    assert len(syncs) == 1
    sim.step(5)
    draw(sim)
    assert len(syncs) == 2
    shown = sim.mjx_data.mocap_pos[:, sim.data.core.drone_mocap_ids]
    np.testing.assert_allclose(shown, sim.data.states.pos)


def test_mjx_data_in_the_closure_of_a_contact_check(obstacle_course: Sim):
    sim = obstacle_course
    mjx_data_const, mjx_model = sim.mjx_data, sim.mjx_model
    ids = [sim.mj_model.body(f"obstacle:{i}").mocapid.item() for i in range(2)]

    @jax.jit
    def check_contacts(sim_data: SimData, obstacle_pos: Array) -> Array:
        mocap_pos = mjx_data_const.mocap_pos.at[:, jnp.array(ids)].set(obstacle_pos)
        mjx_data = mjx_data_const.replace(mocap_pos=mocap_pos)
        _, mjx_data = sync_sim2mjx(sim_data, mjx_data, mjx_model)
        return mjx_data._impl.contact.dist < 0

    place(sim, [0.0, 0.0, 2.0])
    away = jnp.tile(jnp.array([[5.0, 5.0, 5.0], [7.0, 5.0, 5.0]]), (2, 1, 1))
    assert not check_contacts(sim.data, away).any()
    hit = away.at[1, 0].set(jnp.array([0.0, 0.0, 2.0]))
    np.testing.assert_array_equal(check_contacts(sim.data, hit).any(axis=-1), [False, True])


def test_render(obstacle_course: Sim):
    need_images()
    sim = obstacle_course
    place(sim, [0.0, 0.0, 0.5])
    picture = sim.render(mode="rgb_array", camera="fpv_cam:0", width=64, height=48)
    depth = sim.render(mode="depth_array", camera="fpv_cam:0", width=64, height=48)
    assert picture.shape == (48, 64, 3) and picture.dtype == np.uint8
    red = picture[24, 32].astype(int)
    assert red[0] > 2 * red[1]  # the obstacle is straight ahead
    assert depth[24, 32] == pytest.approx(0.9 - 0.03, abs=0.01)  # from the lens to its face
    with pytest.raises(ValueError, match="unknown render mode 'x'"):
        sim.render(mode="x")
    with pytest.raises(ValueError, match="world must be one of 0 to 1, got 3"):
        sim.render(mode="rgb_array", world=3)
    sim.close()
