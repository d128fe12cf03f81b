"""Where moving bodies, joints and cables are, beside what MuJoCo says."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from moving_worlds import FRAMES, SHOWN

from crazyflow_ros.scene import Mirror, build_spec
from crazyflow_ros.scene.bodies import Bodies
from crazyflow_ros.scene.description import read_text
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.mirrored_model import MirroredModel
from crazyflow_ros.scene.moving_frames import MovingFrames
from crazyflow_ros.scene.shapes import moved, world_shapes


def model_of(scene: str, drones: tuple[str, ...] = ("cf0",)) -> mujoco.MjModel:
    return build_spec("cf2x_L250", drones, scene=read_text(scene), mocap=False).compile()


@pytest.fixture(scope="module")
def moved_world() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The world after half a second, with the motor at work."""
    model = model_of(SHOWN)
    data = mujoco.MjData(model)
    data.ctrl[model.actuator("m").id] = 0.7
    mujoco.mj_step(model, data, 200)
    data.mocap_pos[0] = -2.0, 0.3, 0.6
    mujoco.mj_forward(model, data)
    return model, data


def test_frames_are_those_of_bodies_that_move(
    moved_world: tuple[mujoco.MjModel, mujoco.MjData],
) -> None:
    model, data = moved_world
    frames, bodies = MovingFrames(model), Bodies.of(model, data)
    assert frames.names == FRAMES
    poses, twists = frames.poses(bodies), frames.twists(bodies)
    for row, body in enumerate(frames.of_bodies):
        np.testing.assert_array_equal(poses.pos[row], data.xpos[body])
        turn = rotation_matrix(poses.quat[row])
        np.testing.assert_allclose(turn, data.xmat[body].reshape(3, 3), atol=1e-12)
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 1)
        ours = np.append(twists.ang_vel[row], twists.vel[row])
        np.testing.assert_allclose(ours, velocity, atol=1e-9)


def test_joints_have_the_effort_of_their_motors(
    moved_world: tuple[mujoco.MjModel, mujoco.MjData],
) -> None:
    model, data = moved_world
    frames = MovingFrames(model)
    assert frames.joint_names == ("shoulder", "lift")
    joints = frames.joints(Bodies.of(model, data))
    for row, name in enumerate(frames.joint_names):
        joint = data.joint(name)
        expected = joint.qpos[0], joint.qvel[0], joint.qfrc_actuator[0]
        np.testing.assert_allclose([part[row] for part in joints], expected, atol=1e-9)
    assert joints.effort[0] != 0


def test_a_cable_goes_around_a_peg(moved_world: tuple[mujoco.MjModel, mujoco.MjData]) -> None:
    model, data = moved_world
    frames = MovingFrames(model)
    segments = frames.cables(Bodies.of(model, data))
    assert segments.shape == (5, 2, 3) and frames.cable_rgba[0].tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(segments[0, 0], data.site("hook").xpos)
    assert any(np.allclose(end, data.site("eye").xpos) for end in segments[:, 1])
    drawn = segments[np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1) > 1e-9]
    np.testing.assert_allclose(drawn[1:, 0], drawn[:-1, 1])
    # On the peg MuJoCo counts the arc, which is longer than its chord.
    length = np.linalg.norm(drawn[:, 1] - drawn[:, 0], axis=1).sum()
    assert len(drawn) == 1 or length < data.ten_length[0] < 1.1 * length


def test_shapes_of_moving_bodies_are_where_their_frames_are(
    moved_world: tuple[mujoco.MjModel, mujoco.MjData],
) -> None:
    model, data = moved_world
    frames = MovingFrames(model)
    poses = frames.poses(Bodies.of(model, data))
    there = {name: (pos, quat) for name, pos, quat in zip(*poses)}
    shapes = [shape for shape in world_shapes(model, frames.of_bodies) if shape.frame]
    assert {shape.frame for shape in shapes} == set(FRAMES)
    boxes = [model.geom(i).id for i in range(model.ngeom) if model.geom(i).type[0] == 6]
    places = data.geom_xpos[boxes]
    for shape in shapes:
        if shape.frame in ("a_box", "cf0_load", "pad"):
            (placed,) = moved([shape], *there[shape.frame])
            assert np.linalg.norm(places - placed.position, axis=1).min() < 1e-9


def test_range_sensors_measure_to_bodies_where_they_are(
    moved_world: tuple[mujoco.MjModel, mujoco.MjData],
) -> None:
    model, data = moved_world
    mirrored = MirroredModel(model, ("cf0",))
    mirror, state = Mirror(model, ("cf0",)), mirrored.initial
    above = data.body("a box").xpos + np.array([0.0, 0.0, 0.8])
    state = replace(state, pos=above[None], bodies=mirrored.bodies(data))
    mirror.use(mirrored)
    mirror.write(state)
    shown = mirror.copy_physics_data()
    site = shown.site("range:cf0")
    body, ray = model.body("drone:cf0").id, site.xmat.reshape(3, 3)[:, 0]
    groups = np.array([1, 1, 0, 1, 1, 0], np.uint8)
    expected = mujoco.mj_ray(model, shown, site.xpos, ray, groups, 1, body, None)
    (found,) = mirror.range()
    assert found == pytest.approx(expected) and 0.5 < found < 0.8
    np.testing.assert_allclose(shown.ten_length, data.ten_length, atol=1e-12)


def test_where_only_drones_move_there_are_no_frames() -> None:
    """Nor do shapes change, even of a body that another program could move."""
    model = model_of(
        '<mujoco><worldbody><body mocap="true"><geom size="1"/></body></worldbody></mujoco>'
    )
    frames = MovingFrames(model)
    assert not frames.of_bodies and not frames.joint_names and not len(frames.cable_rgba)
    (shape,) = world_shapes(model, frames.of_bodies)
    assert not shape.frame


def test_frames_differ_whatever_bodies_are_called() -> None:
    named = ("map", "cf1", "cf0/base_link", "cf0_base_link", "x y", "x_y", "/", "é")
    content = "".join(
        f'<body name="{name}"><freejoint/><geom size="0.1"/></body>' for name in (*named, "", "")
    ).replace(' name=""', "")
    model = model_of(f"<mujoco><worldbody>{content}</worldbody></mujoco>", ("cf0", "cf1"))
    names = MovingFrames(model).names
    assert len(set(names)) == len(names) == 10
    assert not {"map", "cf1", "cf0/base_link"} & set(names)
    assert names[-2:] == ("body8", "body9")
