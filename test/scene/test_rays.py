"""Range sensors: rays of known length in the mirror."""

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest

from crazyflow_ros.drones.deck_optics import cone, reach
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.frames import quat_from_rpy
from crazyflow_ros.scene.rays import Rangefinder
from crazyflow_ros.scene.surfaces import surfaces

BELOW = 0.003  # m, from the centre of mass to the sensor
NAMES = ["a", "b"]
FAR = (9.0, 9.0, 1.0)  # where b is out of the way


def ranges(
    a: tuple[float, float, float], rpy: tuple[float, float, float] = (0, 0, 0), b: tuple = FAR
) -> np.ndarray:
    attitude = quat_from_rpy(np.array(rpy, float))
    poses = [[*a, *attitude], [*b, 0, 0, 0, 1]]
    model = build_spec("cf2x_L250", NAMES, poses=poses).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return Rangefinder(model, NAMES).read(data)


def test_a_level_drone_measures_its_height() -> None:
    np.testing.assert_allclose(ranges((0, 0, 1.5)), [1.5 - BELOW, FAR[2] - BELOW], atol=1e-12)


@pytest.mark.parametrize("rpy", [(0.1, 0.2, 0), (0.5, 0, 0), (0, -0.5, 0), (0.3, 0.4, 2.0)])
def test_a_tilted_drone_measures_to_the_nearest_point_of_its_cone(
    rpy: tuple[float, float, float],
) -> None:
    upright = math.cos(rpy[0]) * math.cos(rpy[1])
    leans = max(0.0, math.acos(upright) - math.radians(27) / 2)
    nearest = (1.5 - BELOW * upright) / math.cos(leans)
    assert nearest * (1 - 1e-4) <= ranges((0, 0, 1.5), rpy)[0] < nearest * 1.005


def test_nothing_within_reach_is_infinite() -> None:
    # The floor reflects 39 %: between the targets of 17 and 54 %, in the root of the reflectance.
    roots = np.sqrt([0.17, 0.54, 0.39])
    reach = 1.7 + 1.7 * (roots[2] - roots[0]) / (roots[1] - roots[0])
    assert ranges((0, 0, reach + BELOW - 1e-6))[0] == pytest.approx(reach, abs=1e-5)
    assert ranges((0, 0, reach + BELOW + 1e-6))[0] == np.inf
    assert ranges((0, 0, 1.5), (math.pi, 0, 0))[0] == np.inf


def test_ranges_to_the_sides_see_the_floor_only_from_near() -> None:
    """By Lambert: 13.5 degrees below the horizon, the floor returns a quarter of its light."""
    spec = build_spec("cf2x_L250", NAMES, poses=[[0, 0, z, 0, 0, 0, 1] for z in (0.2, 0.4)])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    low, high = Rangefinder(model, NAMES).read_around(data)[:, :4]
    np.testing.assert_allclose(low, 0.2 / math.sin(math.radians(13.5)), rtol=0.03)
    assert np.isposinf(high).all()


@pytest.mark.parametrize("beside", [0.0, 7.0, 10.0, 13.0, 17.0])
def test_a_post_is_seen_where_it_is_in_the_cone(beside: float) -> None:
    """Against the geometry of a cylinder: its nearest point at the height of the drone."""
    spec = build_spec("cf2x_L250", ["a"], poses=[[0, 0, 1, 0, 0, 0, 1]])
    x, y = math.cos(math.radians(beside)), math.sin(math.radians(beside))
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[0.025, 1, 0], pos=[x, y, 1], rgba=[1, 1, 1, 1]
    )
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    front = Rangefinder(model, ["a"]).read_around(data)[0, 0]
    half = math.degrees(math.asin(0.025))
    if beside > 13.5 + half:
        assert front == np.inf
    else:
        assert 1 - 0.025 - 1e-9 <= front < 1.03


def test_another_drone_below_is_seen_and_the_own_is_not() -> None:
    box = build_spec("cf2x_L250", NAMES).compile().geom("col_box:b")
    top = box.pos[2] + box.size[2]
    over, under = ranges((9.0, 9.0, 2.0))
    assert over == pytest.approx(2.0 - BELOW - FAR[2] - top, abs=1e-12)
    assert under == pytest.approx(FAR[2] - BELOW, abs=1e-12)


def noticed(ways: list[float]) -> float:
    """The nearest distance with 15 % of the light within 15 % of it."""
    total = sum(1 / way**2 for way in ways)
    for way in sorted(ways):
        if sum(1 / other**2 for other in ways if way <= other <= 1.15 * way) >= 0.15 * total:
            return way
    return math.inf


def test_a_wall_that_only_the_edge_of_the_cone_touches_goes_unnoticed() -> None:
    """At 14 cm from a drone at 0.8 m, it would be nearer than the floor. At 6 cm it is noticed."""
    read = []
    for gap in (0.14, 0.06):
        spec = build_spec("cf2x_L250", ["a"], poses=[[0, 0, 0.8, 0, 0, 0, 1]])
        wall = mujoco.mjtGeom.mjGEOM_BOX
        spec.worldbody.add_geom(type=wall, size=[0.1, 3, 3], pos=[gap + 0.1, 0, 0])
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        read.append(Rangefinder(model, ["a"]).read(data)[0])
    assert read[0] == pytest.approx(0.8 - BELOW, rel=1e-3)
    assert read[1] < 0.4


def scene_of_many_shapes(rng: np.random.Generator) -> str:
    """Return MJCF with shapes of all kinds and sizes, some of which rays pass through."""
    kinds = ("box", "sphere", "cylinder", "capsule", "ellipsoid", "mesh")
    geoms = [
        '<geom type="plane" size="0 0 1" group="2"/>',
        '<geom type="plane" size="1 1 1" pos="0 0 -2" euler="20 10 0" rgba="1 1 1 0"/>',
        '<geom type="hfield" hfield="hills" pos="3 3 0"/>',
    ]
    for i in range(200):
        kind = kinds[i % len(kinds)]
        shape = 'mesh="wedge"' if kind == "mesh" else f'size="{_text(rng.uniform(0.02, 0.6, 3))}"'
        colour = '"1 1 1 0"' if i % 11 == 0 else '"1 1 1 1"'
        pose = f'pos="{_text(rng.uniform(-4, 4, 3))}" euler="{_text(rng.uniform(0, 180, 3))}"'
        geoms.append(f'<geom type="{kind}" {shape} {pose} group="{i % 6}" rgba={colour}/>')
    return f"""<mujoco><asset>
<mesh name="wedge" vertex="0 0 0 0.4 0 0 0 0.3 0 0 0 0.5"/>
<hfield name="hills" nrow="3" ncol="3" size="2 2 0.5 0.1" elevation="0 1 0 1 0 1 0 1 0"/>
</asset><worldbody>{"".join(geoms)}</worldbody></mujoco>"""


def _text(numbers: np.ndarray) -> str:
    return " ".join(map(str, numbers))


@pytest.mark.parametrize("seed", range(3))
def test_among_many_shapes_rays_hit_what_mujoco_finds(seed: int, tmp_path: Path) -> None:
    rng, names = np.random.default_rng(seed), [f"cf{i}" for i in range(40)]
    scene = tmp_path / "shapes.xml"
    scene.write_text(scene_of_many_shapes(rng))
    turns = rng.normal(size=(40, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    poses = np.hstack((rng.uniform(-4, 4, (40, 3)), turns))
    poses[1, :3] = poses[0, :3] + [0.0, 0.0, 0.02]
    model = build_spec("cf2x_L250", names, scene=str(scene), poses=poses).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    finder, groups = Rangefinder(model, names), np.array([1, 1, 0, 1, 1, 0], np.uint8)
    bright = surfaces(model)[:, 0]

    def nearest(origin: np.ndarray, turn: np.ndarray, cone: np.ndarray, body: int) -> float:
        geom, normal, found = np.zeros(1, np.int32), np.zeros(3), []
        for axis in cone @ turn.T:
            way = mujoco.mj_ray(model, data, origin, axis, groups, 1, body, geom, normal)
            if 0 <= way <= reach(bright[geom[0]], abs(normal @ axis)):
                found.append(way)
        return noticed(found)

    expected = []
    for name in names:
        site, body = data.site(f"range:{name}"), model.body(f"drone:{name}").id
        expected.append(nearest(site.xpos, site.xmat.reshape(3, 3), cone((1, 0, 0)), body))
    assert 5 < np.isfinite(expected).sum() < 40
    np.testing.assert_allclose(finder.read(data), expected, rtol=1e-9)
    around = finder.read_around(data, [0, 1, 7])
    for row, i in zip(around, (0, 1, 7)):
        body = data.body(f"drone:{names[i]}")
        for distance, axis in ((row[0], (1, 0, 0)), (row[4], (0, 0, 1))):
            found = nearest(body.xpos, body.xmat.reshape(3, 3), cone(axis), body.id)
            assert distance == pytest.approx(found, rel=1e-9)
