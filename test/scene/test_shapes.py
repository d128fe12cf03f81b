"""Shapes for viewers, hit by the same rays as MuJoCo's geoms."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene import build_spec, frames
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape, body_shapes, moved, world_shapes

EVERY_KIND = """
<mujoco>
  <asset>
    <texture name="two" type="2d" builtin="flat" rgb1="1 0.5 0" rgb2="1 0.5 0" width="8"
             height="8"/>
    <material name="textured" texture="two" rgba="0.5 1 1 0.25"/>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1  0.9 0.9 0.2"/>
    <hfield name="hill" nrow="3" ncol="4" size="1 0.8 0.5 0.1"
            elevation="0 1 2 0  0 3 1 0  0 0 0 2"/>
  </asset>
  <worldbody>
    <geom type="box" pos="2 0 0.5" size="0.2 0.3 0.4" euler="10 20 30" rgba="1 0 0 1"/>
    <geom type="cylinder" pos="0 2 0.5" size="0.2 0.5" euler="40 0 0" rgba="0 1 0 1"/>
    <geom type="capsule" pos="-2 0 0.7" size="0.2 0.4" euler="0 50 0"/>
    <geom type="sphere" pos="0 -2 0.6" size="0.4" material="textured"/>
    <geom type="ellipsoid" pos="2 2 0.6" size="0.2 0.4 0.5" euler="15 0 80"/>
    <geom type="mesh" mesh="wedge" pos="-2 2 0.3" euler="0 0 70"/>
    <geom type="hfield" hfield="hill" pos="-2 -2 0.1"/>
    <geom type="plane" size="0 0 1"/>
    <body pos="2 -2 0.5" euler="0 0 30">
      <body pos="0.3 0 0"><geom type="box" size="0.1 0.2 0.3"/></body>
    </body>
    <geom type="box" size="5 5 5" group="4"/>
    <geom type="box" size="5 5 5" rgba="1 1 1 0"/>
  </worldbody>
</mujoco>
"""
SEEN = [0, 1, 2, 3, 4, 5, 6, 7, 10]
"""Its geoms but for two that viewers hide; that of the inner body is the last."""


def hit(shapes: list[VisibleShape], start: np.ndarray, direction: np.ndarray) -> float:
    """Distance to the nearest shape along a ray of unit length, computed from their formulas."""
    found = [np.inf]
    for shape in shapes:
        turn = frames.rotation_matrix(shape.attitude)
        o, d = turn.T @ (start - shape.position), turn.T @ direction
        match shape.form:
            case ShapeForm.BOX:
                with np.errstate(divide="ignore"):
                    ends = np.sort([(side * shape.size / 2 - o) / d for side in (-1, 1)], axis=0)
                near, far = ends[0].max(), ends[1].min()
                found += [near] if 0 < near <= far else []
            case ShapeForm.SPHERE:
                o, d = o / (shape.size / 2), d / (shape.size / 2)
                roots = np.roots([d @ d, 2 * o @ d, o @ o - 1])
                found += [roots.real.min()] if np.isreal(roots).all() else []
            case ShapeForm.CYLINDER:
                radius, half = shape.size[0] / 2, shape.size[2] / 2
                roots = np.roots([d[:2] @ d[:2], 2 * o[:2] @ d[:2], o[:2] @ o[:2] - radius**2])
                sides = [
                    t for t in roots.real if np.isreal(roots).all() and abs(o[2] + t * d[2]) <= half
                ]
                lids = [(end - o[2]) / d[2] for end in (-half, half)]
                lids = [t for t in lids if np.hypot(*(o + t * d)[:2]) <= radius]
                found += [t for t in sides + lids if t > 0]
            case ShapeForm.MESH:
                assert shape.triangles is not None
                for a, b, c in shape.triangles:
                    matrix = np.stack([b - a, c - a, -d], axis=1)
                    if abs(np.linalg.det(matrix)) > 1e-12:
                        u, v, t = np.linalg.solve(matrix, o - a)
                        found += [t] if u >= 0 and v >= 0 and u + v <= 1 and t > 0 else []
    return min(found)


def test_rays_hit_shapes_where_they_hit_geoms() -> None:
    model = mujoco.MjModel.from_xml_string(EVERY_KIND)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    shapes = world_shapes(model)
    random = np.random.default_rng(1)
    visible, counts = np.array([1, 1, 1, 0, 0, 0], np.uint8), np.zeros(model.ngeom)
    for _ in range(400):
        target = data.geom_xpos[random.choice(SEEN)] + random.uniform(-0.3, 0.3, 3)
        start = np.array([*random.uniform(-4, 4, 2), 3.0])
        if target[0] < -1.5 and target[1] < -1.5:  # from above: MuJoCo's height fields have walls
            start[:2] = target[:2] + random.uniform(-0.3, 0.3, 2)
        direction = target - start
        direction /= np.linalg.norm(direction)
        geom = np.zeros(1, np.int32)
        expected = mujoco.mj_ray(model, data, start, direction, visible, True, -1, geom)
        counts[geom[0]] += 1
        assert hit(shapes, start, direction) == pytest.approx(expected, abs=1e-5)
    assert (counts[SEEN] > 5).all() and counts.sum() == counts[SEEN].sum(), counts


def test_colours_are_those_of_materials_and_the_mean_of_textures() -> None:
    shapes = world_shapes(mujoco.MjModel.from_xml_string(EVERY_KIND))
    colours = {tuple(np.round(shape.rgba, 2)) for shape in shapes}
    assert {(1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0.5, 0, 0.25)} <= colours


def test_a_height_field_is_its_surface() -> None:
    (hill,) = [
        shape
        for shape in world_shapes(mujoco.MjModel.from_xml_string(EVERY_KIND))
        if shape.triangles is not None and len(shape.triangles) == 2 * 2 * 3
    ]
    assert hill.triangles is not None
    corners = hill.triangles.reshape(-1, 3)
    assert corners[:, 2].max() == pytest.approx(0.5)
    assert np.ptp(corners, axis=0) == pytest.approx([2.0, 1.6, 0.5])


def test_drones_are_not_part_of_the_world() -> None:
    with_drones = build_spec("cf2x_L250", ["cf0", "cf1"], scene="room").compile()
    alone = mujoco.MjModel.from_xml_path("urdf_mjcf/room.xml")
    assert len(world_shapes(with_drones)) == len(world_shapes(alone)) > 10


def test_parts_of_a_drone_are_where_mujoco_has_them() -> None:
    model = build_spec("cf2x_L250", ["cf0"]).compile()
    data = mujoco.MjData(model)
    data.qpos[:7] = [1.0, 2.0, 3.0, 0.5, 0.5, 0.5, 0.5]
    mujoco.mj_kinematics(model, data)
    body = model.body("drone:cf0").id
    pose = data.xpos[body], frames.wxyz_to_xyzw(data.xquat[body])
    places = np.array([shape.position for shape in moved(body_shapes(model, "drone:cf0"), *pose)])
    first = model.body_geomadr[body]
    own = [g for g in range(first, first + model.body_geomnum[body]) if model.geom_group[g] == 2]
    np.testing.assert_allclose(places, data.geom_xpos[own], atol=1e-9)
