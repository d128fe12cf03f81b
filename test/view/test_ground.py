"""What is below drones, compared with MuJoCo's rays."""

from __future__ import annotations

import io

import mujoco
import numpy as np
import pytest
import trimesh
from paths import ROOT

from crazyflow_ros.scene.shapes import world_shapes
from crazyflow_ros.view.backdrop import scenery_of
from crazyflow_ros.view.ground import Ground

TILTED = """<mujoco><asset><hfield name="hills" nrow="12" ncol="12" size="2 2 0.6 0.1"/></asset>
<worldbody>
<geom type="plane" size="0 0 1"/>
<geom type="box" size="0.4 0.3 0.1" pos="0.5 0 0.8" euler="20 35 10"/>
<geom type="ellipsoid" size="0.5 0.2 0.3" pos="-0.6 0.4 0.5" euler="30 0 50"/>
<geom type="cylinder" size="0.25 0.5" pos="-0.5 -0.6 0.5"/>
<geom type="hfield" hfield="hills" pos="0 0 0"/>
</worldbody></mujoco>"""


def model_of(world: str) -> mujoco.MjModel:
    if world != "tilted":
        return mujoco.MjModel.from_xml_path(str(ROOT / "urdf_mjcf" / f"{world}.xml"))
    model = mujoco.MjModel.from_xml_string(TILTED)
    model.hfield_data[:] = np.random.default_rng(2).uniform(0, 1, model.hfield_data.shape)
    return model


@pytest.mark.parametrize("world", ["room", "tilted", "floor"])
def test_the_ground_is_where_a_ray_down_meets_something(world: str) -> None:
    model = model_of(world)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scenery = scenery_of(world_shapes(model))
    places = np.random.default_rng(1).uniform([-1.9, -1.9, 0.0], [1.9, 1.9, 2.8], (1500, 3))
    heights = Ground(scenery.shapes, scenery.floor).below(places)
    down, geom = np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)
    compared = 0
    for place, height in zip(places, heights):
        away = mujoco.mj_ray(model, data, place, down, None, 1, -1, geom)
        back = mujoco.mj_ray(model, data, place, -down, None, 1, -1, np.zeros(1, np.int32))
        if away < 0 or back >= 0:
            continue  # it may be in a shape, or under one, where rays start inside
        compared += 1
        assert height == pytest.approx(place[2] - away, abs=2e-3), (place, model.geom(geom[0]))
    assert compared > 500


def test_drones_on_a_shape_and_below_everything_have_ground() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="box" size="1 1 0.5" pos="0 0 1"/></worldbody></mujoco>'
    )
    scenery = scenery_of(world_shapes(model))
    assert -0.01 < scenery.floor < 0  # it has none: the stage has one
    ground = Ground(scenery.shapes, scenery.floor)
    above, on, under, away = ground.below(
        np.array([[0, 0, 3.0], [0, 0, 1.5], [0.5, 0.5, 0.2], [2.0, 0, 1.0]])
    )
    assert (above, on) == pytest.approx((1.5, 1.5))
    assert (under, away) == pytest.approx((scenery.floor, scenery.floor))
    below_the_floor = ground.below(np.array([[5.0, 0.0, -2.0]]))
    assert below_the_floor[0] == -2.0  # it has fallen out of the world, and is its own ground


def test_walls_are_seen_from_inside_only() -> None:
    """A camera outside the room, where it sees all drones, looks through the wall before it."""
    shapes = world_shapes(model_of("room"))
    scene = trimesh.load(
        file_obj=io.BytesIO(scenery_of(shapes).glb), file_type="glb", process=False
    )
    walls = 0
    for mesh in scene.geometry.values():
        middles, normals = mesh.triangles_center, mesh.face_normals
        # The room is around the origin; nothing else in it is beyond this.
        of_walls = (np.abs(middles[:, :2]) > [2.99, 2.49]).any(axis=1)
        of_walls &= np.linalg.norm(normals[:, :2], axis=1) > 0.5
        if of_walls.any():
            assert not mesh.visual.material.doubleSided
            inwards = -middles[of_walls, :2]
            assert (np.einsum("ij,ij->i", inwards, normals[of_walls, :2]) > 0).all()
            walls += int(of_walls.sum())
    assert walls >= 12
