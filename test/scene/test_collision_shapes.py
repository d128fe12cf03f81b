"""Obstacles of MuJoCo scenes."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from crazyflow_ros.dynamics.obstacles import Shape
from crazyflow_ros.resources import resource
from crazyflow_ros.scene import read_scene
from crazyflow_ros.scene.assembly import build_spec
from crazyflow_ros.scene.collision_shapes import obstacles_of

SCENE = """<mujoco>
  <asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="wall" type="plane" size="1 1 1" pos="2 0 0" zaxis="-1 0 0"/>
    <geom name="seen only" type="sphere" size="1" contype="0" conaffinity="0"/>
    <body name="tree" pos="1 2 0" euler="0 0 90">
      <geom name="trunk" type="cylinder" size="0.1 1" pos="0 0 1"/>
      <body name="crown" pos="0.5 0 2"><geom name="crown" type="sphere" size="0.6"/></body>
      <geom name="leaf" type="mesh" mesh="m"/>
    </body>
  </worldbody>
</mujoco>"""


def test_everything_that_collides_is_found_where_it_is(tmp_path) -> None:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE)
    model = build_spec("cf2x_L250", ["a", "b"], scene=path).compile()
    found, ignored, names = obstacles_of(model, slots=lambda shapes: shapes + 2)
    assert [Shape(int(s)).name for s in found.shape] == [
        "plane", "cylinder", "sphere", "none", "none",
    ]  # fmt: skip
    np.testing.assert_allclose(found.pos[:3], [[2, 0, 0], [1, 2, 1], [1, 2.5, 2]], atol=1e-6)
    np.testing.assert_allclose(found.size[1:3], [[0.1, 1, 1], [0.6, 1, 1]], atol=1e-6)
    assert names == ("wall", "tree", "tree")
    (leaf,) = ignored
    shapes = "plane, sphere, capsule, cylinder, box"
    assert leaf == f"drones fly through the mesh leaf, because only {shapes} are solid"


def test_moved_bodies_are_found_where_the_data_say() -> None:
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="ball", mocap=True)
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.1, 0, 0])
    model = spec.compile()
    data = mujoco.MjData(model)
    data.mocap_pos[0] = [1, 2, 3]
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(obstacles_of(model, data).obstacles.pos, [[1, 2, 3]])


@pytest.mark.parametrize(
    "path", sorted(resource("urdf_mjcf").rglob("*.xml")), ids=lambda path: path.stem
)
def test_everything_in_our_own_worlds_is_solid(path: Path) -> None:
    assert obstacles_of(read_scene(path).compiled()).ignored == ()
