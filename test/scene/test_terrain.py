"""Heights and distances of shapes that only MuJoCo collides with, against closed forms."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.description import read_text
from crazyflow_ros.scene.terrain import Terrain

HILL = """
<mujoco>
  <asset>
    <hfield name="ramp" nrow="2" ncol="3" size="2 1 0.8 0.1" elevation="0 0.5 1 0 0.5 1"/>
  </asset>
  <worldbody>
    <geom name="ramp" type="hfield" hfield="ramp" pos="1 0 0.3"/>
    <geom name="air" type="ellipsoid" size="1 1 1" contype="0" conaffinity="0"/>
  </worldbody>
</mujoco>"""
CUBE = "-1 -1 -1  1 -1 -1  -1 1 -1  1 1 -1  -1 -1 1  1 -1 1  -1 1 1  1 1 1"
# A cube of a cubic metre whose top is drawn down to its middle.
CUP = "0 0 0  1 0 0  1 1 0  0 1 0  0 0 1  1 0 1  1 1 1  0 1 1  .5 .5 .1"
CUP_FACES = "0 2 1 0 3 2 0 1 5 0 5 4 1 2 6 1 6 5 2 3 7 2 7 6 3 0 4 3 4 7 4 5 8 5 6 8 6 7 8 7 4 8"


def terrain(text: str) -> Terrain:
    found = Terrain.of(mujoco.MjModel.from_xml_string(text))
    assert found is not None
    return found


def mesh(vertices: str, faces: str = "", place: str = "") -> str:
    face = f'face="{faces}"' if faces else ""
    asset = f'<mesh name="stone" vertex="{vertices}" {face}/>'
    geom = f'<geom name="stone" type="mesh" mesh="stone" {place}/>'
    return f"<mujoco><asset>{asset}</asset><worldbody>{geom}</worldbody></mujoco>"


def test_a_ramp_has_the_height_of_its_plane() -> None:
    ramp = terrain(HILL)
    places = np.random.default_rng(0).uniform((-1, -1), (3, 1), (50, 2))
    expected = 0.3 + 0.8 * (places[:, 0] + 1) / 4
    assert ramp.names == ["ramp"]
    np.testing.assert_allclose(ramp.ground(places), expected, atol=1e-6)
    np.testing.assert_allclose(ramp.ground(np.array([[3.1, 0], [0, 1.1]])), -1e9)
    points = np.column_stack((places, expected + 0.05))
    np.testing.assert_allclose(ramp.distances(points, np.array([0]))[:, 0], 0.05, atol=1e-6)
    points[:, 2] -= 0.1
    assert (ramp.distances(points, np.array([0])) < 0).all()
    np.testing.assert_allclose([*ramp.low[0], *ramp.high[0]], [-1, -1, 0.2, 3, 1, 1.1])


@pytest.mark.parametrize("turn", [0.0, 30.0])
def test_a_turned_cube_has_the_heights_and_distances_of_its_planes(turn: float) -> None:
    stone = terrain(mesh(CUBE, place=f'pos="0 0 2" euler="0 {turn} 0"'))
    x, c, s = np.linspace(-0.2, 0.2, 9), np.cos(np.radians(turn)), np.sin(np.radians(turn))
    top = 2 + (1 - s * x) / c  # of the plane x sin + (z - 2) cos = 1
    places = np.column_stack((x, np.zeros_like(x)))
    np.testing.assert_allclose(stone.ground(places), top, atol=1e-6)
    points = np.column_stack((places, np.full_like(x, 2.9)))
    expected = np.abs((points - [0, 0, 2]) @ [[c, 0, s], [0, 1, 0], [-s, 0, c]]).max(axis=1) - 1
    np.testing.assert_allclose(stone.distances(points, np.array([0]))[:, 0], expected, atol=1e-6)
    assert not list(stone.doubts())


def test_an_ellipsoid_has_its_heights_and_is_solid() -> None:
    egg = terrain('<mujoco><worldbody><geom type="ellipsoid" size="1 2 3"/></worldbody></mujoco>')
    places = np.array([[0.0, 0.0], [0.5, 1.0], [2.0, 0.0]])
    expected = [3.0, 3 * np.sqrt(1 - 0.25 - 0.25), -1e9]
    np.testing.assert_allclose(egg.ground(places), expected, atol=1e-6)
    points = np.array([[0, 0, 2.9], [0, 0, 3.1]])
    assert (np.sign(egg.distances(points, np.array([0]))[:, 0]) == [-1, 1]).all()


def test_a_mesh_with_a_hollow_is_named_and_its_hull_is_solid() -> None:
    cup = terrain(mesh(CUP, CUP_FACES))
    (text,) = cup.doubts()
    assert "convex hull of the mesh stone" in text
    middle = (cup.low[0, :2] + cup.high[0, :2]) / 2
    np.testing.assert_allclose(cup.ground(middle[None]), cup.high[0, 2], atol=1e-6)


@pytest.mark.parametrize(("columns", "is_coarse"), [(61, False), (21, True)])
def test_a_height_field_is_named_if_its_grid_is_wider_than_a_drone(
    columns: int, is_coarse: bool
) -> None:
    numbers = f'nrow="41" ncol="{columns}" size="2 1 0.8 0.1"'
    text = re.sub(r'nrow="2".*"', numbers, HILL)
    spec = build_spec("cf2x_L250", ["cf0"], scene=read_text(text))
    found = Terrain.of(spec.compile())
    assert found is not None
    said = list(found.doubts())
    assert bool(said) == is_coarse and all("the height field ramp is coarse" in x for x in said)


def test_without_such_shapes_there_is_no_terrain() -> None:
    world = '<mujoco><worldbody><geom type="box" size="1 1 1"/></worldbody></mujoco>'
    assert Terrain.of(mujoco.MjModel.from_xml_string(world)) is None
