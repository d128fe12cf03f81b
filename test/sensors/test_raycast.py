"""Rays: closed forms and MuJoCo's own rays."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.frames import quat_from_rpy, rotation_matrix, wxyz_to_xyzw, xyzw_to_wxyz
from crazyflow_ros.sensors import (
    GridPatternCfg,
    LidarPatternCfg,
    MujocoBackend,
    ObjRef,
    PinholeCameraPatternCfg,
    RayCastSensor,
    RayCastSensorCfg,
    RingPatternCfg,
    SceneVisualizer,
    ShapeRecorder,
    TerrainHeightSensorCfg,
)

FORWARD = LidarPatternCfg(samples=1, azimuth_range=(0, 0))
DOWN = GridPatternCfg(size=(0, 0))
CARRIER = ObjRef("body", "carrier")

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 .1"/>
    <body name="carrier" pos="0 0 2"><freejoint/>
      <geom name="hull" type="sphere" size=".05" mass="1"/>
      <site name="mast" pos="0 0 .5" euler="0 90 0"/>
      <body name="rotor" pos="0 0 -.2"><joint/><geom type="box" size=".3 .3 .01" mass=".1"/></body>
    </body>
    {more}
  </worldbody>
</mujoco>"""

Posed = tuple[RayCastSensor, mujoco.MjModel, mujoco.MjData]


def sensor(
    frame: Any = CARRIER,
    pattern: Any = FORWARD,
    more: str = "",
    pos: tuple[float, float, float] = (0, 0, 2),
    rpy: tuple[float, float, float] = (0, 0, 0),
    cfg: Any = RayCastSensorCfg,
    **options: Any,
) -> Posed:
    """A sensor that has sensed, on a carrier at a pose."""
    built = cfg(name="rays", frame=frame, pattern=pattern, **options).build()
    model = mujoco.MjModel.from_xml_string(SCENE.format(more=more))
    data = mujoco.MjData(model)
    data.qpos[:3], data.qpos[3:7] = pos, xyzw_to_wxyz(quat_from_rpy(np.array(rpy, float)))
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    built.initialize(MujocoBackend(model, data))
    built.sense()
    return built, model, data


# Distances


@pytest.mark.parametrize("pattern", [DOWN, LidarPatternCfg(elevations=(-90.0,), samples=1)])
@pytest.mark.parametrize("rpy", [(0, 0, 0), (0.3, -0.5, 2.0)])
def test_to_a_plane(pattern: Any, rpy: tuple[float, float, float]) -> None:
    """By both ways to cast: each ray for itself, and all from one origin."""
    rays, _, _ = sensor(pattern=pattern, rpy=rpy)
    distance = 2.0 / (math.cos(rpy[0]) * math.cos(rpy[1]))
    assert rays.data.distances[0, 0] == pytest.approx(distance, abs=1e-9)
    down = rotation_matrix(quat_from_rpy(np.array(rpy, float))) @ [0, 0, -1]
    np.testing.assert_allclose(rays.data.hit_pos_w[0, 0], [0, 0, 2] + distance * down, atol=1e-9)
    np.testing.assert_allclose(rays.data.normals_w[0, 0], [0, 0, 1], atol=1e-12)


def test_to_a_sphere() -> None:
    """Parallel rays at distances b from the axis of a sphere of radius r at distance a."""
    a, r = 3.0, 0.5
    rays, _, _ = sensor(
        pattern=GridPatternCfg(size=(0.0, 0.8), resolution=0.1, direction=(2, 0, 0)),
        more=f'<geom type="sphere" size="{r}" pos="{a} 0 2"/>',
    )
    b = np.linspace(-0.4, 0.4, 9)
    np.testing.assert_allclose(rays.data.distances[0], a - np.sqrt(r**2 - b**2), atol=1e-9)
    normals = np.column_stack([-np.sqrt(r**2 - b**2), b, 0 * b]) / r
    np.testing.assert_allclose(rays.data.normals_w[0], normals, atol=1e-9)


def test_beyond_the_maximum_is_a_miss() -> None:
    for maximum, expected in ((2.0 + 1e-9, 2.0), (2.0 - 1e-9, -1.0)):
        rays, _, _ = sensor(pattern=DOWN, max_distance=maximum)
        assert rays.data.distances[0, 0] == pytest.approx(expected)
    np.testing.assert_array_equal(rays.data.hit_pos_w[0, 0], [0, 0, 2])  # its origin
    np.testing.assert_array_equal(rays.data.normals_w[0, 0], [0, 0, 0])
    up, _, _ = sensor(rpy=(0, -math.pi / 2, 0))
    assert up.data.distances[0, 0] == -1.0


def test_rays_equal_those_of_mujoco() -> None:
    """All shapes, in all directions; MuJoCo's are cast in a scene without the carrier."""
    rng = np.random.default_rng(1)
    kinds = ("sphere", "capsule", "box", "cylinder", "ellipsoid")
    geoms = "".join(
        '<geom type="{}" size=".4 .6 .5" pos="{} {} {}" euler="{} {} {}"/>'.format(
            kinds[i % 5], *rng.uniform((-3, -3, 0), (3, 3, 6)), *rng.uniform(0, 360, 3)
        )
        for i in range(30)
    )
    pattern = LidarPatternCfg(samples=40, elevations=np.linspace(-80, 80, 9).tolist())
    rays, _, data = sensor(pattern=pattern, more=geoms, rpy=(0.3, 0.2, 1))
    floor = '<geom type="plane" size="0 0 .1"/>'
    bare = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{floor}{geoms}</worldbody></mujoco>")
    mujoco.mj_kinematics(bare, bare_data := mujoco.MjData(bare))
    rotation, normal = data.body("carrier").xmat.reshape(3, 3), np.empty(3)
    for ray, direction in enumerate(rays.directions @ rotation.T):
        direct = mujoco.mj_ray(
            bare, bare_data, data.body("carrier").xpos, direction, None, 1, -1, None, normal
        )
        missed = direct < 0 or direct > 10
        assert rays.data.distances[0, ray] == pytest.approx(-1 if missed else direct, abs=1e-8)
        expected = np.zeros(3) if missed else normal
        np.testing.assert_allclose(rays.data.normals_w[0, ray], expected, atol=1e-6)
    assert 200 < (rays.data.distances > 0).sum() < 360


# What is met


def test_the_own_body_and_those_below_it_are_passed_and_others_are_not() -> None:
    assert sensor(pattern=DOWN)[0].data.distances[0, 0] == pytest.approx(2.0, abs=1e-8)
    seen, _, _ = sensor(pattern=DOWN, exclude_parent_body=False)
    assert seen.data.distances[0, 0] == pytest.approx(0.05, abs=1e-9)  # the hull, from within
    from_rotor, _, _ = sensor(frame=ObjRef("body", "rotor"), pattern=DOWN)
    assert from_rotor.data.distances[0, 0] == pytest.approx(1.8, abs=1e-9)
    other = '<body name="other" pos="0 0 1"><geom type="box" size=".1 .1 .1"/></body>'
    over_other, _, _ = sensor(pattern=DOWN, more=other)
    assert over_other.data.distances[0, 0] == pytest.approx(0.9, abs=1e-8)


def test_a_sensor_in_the_world_itself_sees_the_floor() -> None:
    tower = '<site name="tower" pos="1 1 3"/>'
    rays, _, _ = sensor(frame=ObjRef("site", "tower"), pattern=DOWN, more=tower)
    assert rays.data.distances[0, 0] == pytest.approx(3.0, abs=1e-9)


def test_only_the_given_groups_are_met() -> None:
    shelf = '<geom type="box" size=".1 .1 .1" pos="0 0 1" group="3"/>'
    for groups, expected in (((0, 1, 2), 2.0), ((3,), 0.9), ((1,), -1.0), (None, 0.9)):
        rays, _, _ = sensor(pattern=DOWN, more=shelf, include_geom_groups=groups)
        assert rays.data.distances[0, 0] == pytest.approx(expected, abs=1e-8)


def test_no_drone_sees_itself() -> None:
    """A drone alone in space, rays in all directions from its centre and from beside each rotor."""
    spec = build_spec("cf2x_L250", ["cf0"], poses=[[0, 0, 50, 0, 0, 0, 1]])
    sites = [spec.body("drone:cf0").add_site(name=f"s{i}", pos=[x, y, -0.01]) for i, (x, y) in
             enumerate([(0, 0), (0.033, -0.033), (-0.05, 0.02)])]  # fmt: skip
    frames = tuple(ObjRef("site", site.name) for site in sites)
    model = spec.compile()
    mujoco.mj_kinematics(model, data := mujoco.MjData(model))
    around = LidarPatternCfg(samples=72, elevations=np.linspace(-90, 90, 19).tolist())
    for groups in ((0, 1, 2), None):
        rays = RayCastSensorCfg(
            name="r", frame=frames, pattern=around, include_geom_groups=groups, max_distance=1
        ).build()
        rays.initialize(MujocoBackend(model, data))
        rays.sense()
        assert (rays.data.distances == -1).all()
    blind = RayCastSensorCfg(name="b", frame=frames, pattern=around, exclude_parent_body=False)
    sees = blind.build()
    sees.initialize(MujocoBackend(model, data))
    sees.sense()
    assert (sees.data.distances > 0).any()  # so that there was something to see


# Frames and alignment


def test_frames_are_those_of_bodies_sites_and_geoms() -> None:
    more = """<body name="pole" pos="3 1 1" euler="0 0 90">
        <geom name="post" type="box" size=".1 .1 .1"/></body>"""
    rays, _, data = sensor(
        frame=(CARRIER, ObjRef("site", "mast"), ObjRef("geom", "post")),
        pattern=GridPatternCfg(size=(0.2, 0.0), resolution=0.1),
        more=more, pos=(1, 2, 3), rpy=(0.1, 0.2, 0.3),
    )  # fmt: skip
    assert rays.num_rays == 9 and rays.rays_per_frame == 3
    places = [data.body("carrier").xpos, data.site("mast").xpos, data.geom("post").xpos]
    axes = [data.body("carrier").xmat, data.site("mast").xmat, data.geom("post").xmat]
    np.testing.assert_array_equal(rays.data.frame_pos_w[0], places)
    for frame, matrix in enumerate(axes):
        attitude = wxyz_to_xyzw(rays.data.frame_quat_w[0, frame])
        np.testing.assert_allclose(rotation_matrix(attitude), matrix.reshape(3, 3), atol=1e-12)
    np.testing.assert_array_equal(rays.data.pos_w, rays.data.frame_pos_w[:, 0])
    np.testing.assert_array_equal(rays.data.quat_w, rays.data.frame_quat_w[:, 0])
    # Frame by frame: the post's rays go down from its level.
    np.testing.assert_allclose(rays.data.distances[0, 6:], 1.0, atol=1e-9)
    np.testing.assert_allclose(rays.data.hit_pos_w[0, 6:, 1], [0.9, 1.0, 1.1], atol=1e-9)


@pytest.mark.parametrize("rpy", [(0.4, -0.3, 2.0), (0, 0, -1.0), (3.0, 0.1, 0.5)])
def test_alignment(rpy: tuple[float, float, float]) -> None:
    """One ray ahead, from a point ahead and left of the frame."""
    pattern = GridPatternCfg(size=(0.2, 0.2), resolution=0.2, direction=(1, 0, -1))
    rotation = rotation_matrix(quat_from_rpy(np.array(rpy, float)))
    heading = math.atan2(rotation[1, 0], rotation[0, 0])
    yaw = rotation_matrix(quat_from_rpy(np.array([0, 0, heading])))
    for alignment, axes in (("base", rotation), ("yaw", yaw), ("world", np.eye(3))):
        rays, _, _ = sensor(pattern=pattern, rpy=rpy, ray_alignment=alignment)
        origin = [0, 0, 2] + axes @ [0.1, 0.1, 0]
        direction = axes @ [1, 0, -1] / math.sqrt(2)
        if direction[2] < -0.2:
            hit = origin + direction * (origin[2] / -direction[2])
            np.testing.assert_allclose(rays.data.hit_pos_w[0, 3], hit, atol=1e-9)
        else:
            assert rays.data.distances[0, 3] == -1


@pytest.mark.parametrize("pitch", [math.pi / 2, -math.pi / 2])
def test_the_heading_of_what_looks_straight_up_or_down_is_that_of_its_left(pitch: float) -> None:
    rays, _, data = sensor(
        pattern=GridPatternCfg(size=(0.2, 0.0), resolution=0.2),
        rpy=(0, pitch, 0.4), ray_alignment="yaw",
    )  # fmt: skip
    left = data.body("carrier").xmat.reshape(3, 3)[:, 1]
    ahead = rays.data.hit_pos_w[0, 1] - rays.data.hit_pos_w[0, 0]
    np.testing.assert_allclose(ahead / 0.2, np.cross(left, [0, 0, 1]), atol=1e-9)


# Patterns


def test_the_grid_has_both_edges_and_x_runs_fastest() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    rays = GridPatternCfg(size=(1.0, 0.3), resolution=0.1).generate_rays(model)
    assert len(rays.offsets) == 11 * 4
    np.testing.assert_allclose(rays.offsets[0], [-0.5, -0.15, 0])
    np.testing.assert_allclose(rays.offsets[10], [0.5, -0.15, 0])
    np.testing.assert_allclose(rays.offsets[11], [-0.5, -0.05, 0], atol=1e-12)
    np.testing.assert_allclose(rays.offsets[-1], [0.5, 0.15, 0])
    np.testing.assert_array_equal(rays.directions, np.tile([0, 0, -1], (44, 1)))


def test_rings() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    rays = RingPatternCfg(rings=((0.5, 4), (1.0, 8))).generate_rays(model)
    radii = np.linalg.norm(rays.offsets, axis=1)
    np.testing.assert_allclose(radii, [0] + [0.5] * 4 + [1.0] * 8)
    np.testing.assert_allclose(rays.offsets[2], [0, 0.5, 0], atol=1e-12)
    single = RingPatternCfg.single_ring(0.2, 3, include_center=False).generate_rays(model)
    np.testing.assert_allclose(np.linalg.norm(single.offsets, axis=1), [0.2] * 3)


def test_pinhole_rays_go_through_the_centres_of_pixels_and_the_first_row_is_up() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    pattern = PinholeCameraPatternCfg(width=4, height=2, fovy=90.0)
    x, y, z = (pattern.generate_rays(model).directions.reshape(2, 4, 3) / [1, 1, -1]).T
    np.testing.assert_allclose((x / z).T, [[-1.5, -0.5, 0.5, 1.5]] * 2)  # focal length 1 pixel
    np.testing.assert_allclose((y / z).T, [[0.5] * 4, [-0.5] * 4])
    matrix = [2.0, 0, 1.0, 0, 4.0, 0.5, 0, 0, 1]
    off_centre = PinholeCameraPatternCfg.from_intrinsic_matrix(matrix, 4, 2)
    x, y, z = (off_centre.generate_rays(model).directions.reshape(2, 4, 3) / [1, 1, -1]).T
    np.testing.assert_allclose((x / z).T, [[-0.5, 0, 0.5, 1.0]] * 2)
    np.testing.assert_allclose((y / z).T, [[0.125] * 4, [-0.125] * 4])


def test_lidar_angles() -> None:
    full = LidarPatternCfg(samples=4)
    np.testing.assert_allclose(full.azimuths(), np.radians([-180, -90, 0, 90]))
    part = LidarPatternCfg(samples=3, azimuth_range=(-45, 45), elevations=(0, 30))
    np.testing.assert_allclose(part.azimuths(), np.radians([-45, 0, 45]))
    rays = part.generate_rays(mujoco.MjModel.from_xml_string("<mujoco/>"))
    np.testing.assert_allclose(rays.directions[4], [math.cos(math.pi / 6), 0, 0.5], atol=1e-12)


# Several worlds, life cycle, refusals


def test_worlds_are_independent() -> None:
    model = mujoco.MjModel.from_xml_string(SCENE.format(more=""))
    worlds = [mujoco.MjData(model) for _ in range(3)]
    for height, data in enumerate(worlds, 1):
        data.qpos[2] = height
        mujoco.mj_kinematics(model, data)
    rays = RayCastSensorCfg(name="r", frame=CARRIER, pattern=DOWN).build()
    rays.initialize(MujocoBackend(model, worlds))
    rays.sense()
    np.testing.assert_allclose(rays.data.distances, [[1], [2], [3]], atol=1e-8)
    np.testing.assert_array_equal(rays.data.pos_w[:, 2], [1, 2, 3])


def test_rays_are_as_they_were_sensed() -> None:
    rays, model, data = sensor(pattern=DOWN)
    first = rays.data
    data.qpos[2] = 3
    mujoco.mj_kinematics(model, data)
    rays.update(0.1)
    rays.reset([0])
    assert rays.data is first
    rays.sense()
    assert rays.data.distances == pytest.approx(3.0)
    fresh = RayCastSensorCfg(name="r", frame=CARRIER).build()
    fresh.initialize(MujocoBackend(model, data))
    with pytest.raises(RuntimeError, match=r"call sense\(\) first"):
        fresh.data  # noqa: B018


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include_geom_groups": (0, 6)}, r"include_geom_groups must be from 0 to 5, got \(0, 6\)"),
        ({"ray_alignment": "up"}, "no ray_alignment 'up', only base, yaw, world"),
        ({"max_distance": 0}, "max_distance must be positive, got 0"),
        ({"frame": ()}, "frames is empty"),
        ({"frame": ObjRef("joint", "x")}, "'x' must be a body or xbody .*, not a joint"),
        ({"frame": ObjRef("site", "imu", "cf7")}, "the model has no site 'imu:cf7'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sensor(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GridPatternCfg(resolution=0), "resolution must be positive, got 0"),
        (lambda: GridPatternCfg(direction=(0, 0, 0)), "direction .* not all zero"),
        (lambda: RingPatternCfg(rings=((0.0, 3),)), "rings must .* radius 0 with 3 rays"),
        (lambda: LidarPatternCfg(samples=0), "samples .*, got 0 at"),
        (lambda: LidarPatternCfg(azimuth_range=(0, 400)), "at most 360 degrees, got \\(0, 400\\)"),
        (lambda: PinholeCameraPatternCfg(fovy=180), "between 0 and 180 .*, got 180"),
        (lambda: PinholeCameraPatternCfg(width=0), "width and height .*, got 0 x 12"),
        (lambda: PinholeCameraPatternCfg.from_intrinsic_matrix([1, 2], 4, 4), "got 2"),
    ],
)
def test_patterns_that_cannot_be_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# Terrain height


def test_heights() -> None:
    steps = '<geom type="box" size="1 1 .25" pos="1 0 .25"/>'  # 0.5 m high for x > 0
    pattern = GridPatternCfg(size=(0.4, 0.0), resolution=0.2)
    expected = {"min": 1.5, "max": 2.0, "mean": (2.0 + 1.5 + 1.5) / 3}
    for reduction, height in expected.items():
        heights, _, _ = sensor(
            cfg=TerrainHeightSensorCfg, more=steps, pattern=pattern, reduction=reduction
        )
        np.testing.assert_allclose(heights.data.heights, [[height]], atol=1e-8)
    each, _, _ = sensor(
        cfg=TerrainHeightSensorCfg, more=steps, pattern=pattern, reduction="none",
        rpy=(0, 0, math.pi),
    )  # fmt: skip
    np.testing.assert_allclose(each.data.heights, [[[1.5, 1.5, 2.0]]], atol=1e-8)


def test_heights_where_there_is_nothing_below() -> None:
    plank = '<geom type="box" size=".1 1 .1" pos="0 0 1" group="1"/>'
    options: dict[str, Any] = {
        "cfg": TerrainHeightSensorCfg, "more": plank, "include_geom_groups": (1,),
        "pattern": GridPatternCfg(size=(1.0, 0.0), resolution=0.5), "reduction": "none",
    }  # fmt: skip
    some, _, _ = sensor(max_distance=5.0, **options)
    np.testing.assert_allclose(some.data.heights, [[[5.0, 0.9, 5.0]]], atol=1e-8)
    for z, height in ((2.0, 2.0), (7.0, 5.0), (-1.0, 0.0)):
        none, _, _ = sensor(max_distance=5.0, pos=(3, 0, z), **options)
        np.testing.assert_allclose(none.data.heights, [[[height] * 3]])


def test_a_frame_within_the_ground_has_no_height() -> None:
    block = '<geom type="box" size="1 1 1" pos="0 0 -1" group="1"/>'
    inside, _, _ = sensor(
        cfg=TerrainHeightSensorCfg, more=block, pattern=DOWN, include_geom_groups=(1,),
        pos=(0, 0, -0.5),
    )  # fmt: skip
    assert inside.data.distances[0, 0] == pytest.approx(1.5)
    assert inside.data.heights[0, 0] == 0.0


# Drawing


def test_rays_are_drawn_where_they_hit() -> None:
    rays, model, _ = sensor(
        pattern=GridPatternCfg(size=(0.5, 0.0), resolution=0.5), debug_vis=True,
        viz=RayCastSensorCfg.VizCfg(show_rays=True, show_normals=True),
    )  # fmt: skip
    scene = mujoco.MjvScene(model, maxgeom=5)
    rays.debug_vis(SceneVisualizer(scene, model))
    assert scene.ngeom == 5  # of six: arrow, sphere, normal for each ray
    arrow, sphere = mujoco.mjtGeom.mjGEOM_ARROW, mujoco.mjtGeom.mjGEOM_SPHERE
    assert [geom.type for geom in scene.geoms[:3]] == [arrow, sphere, arrow]
    np.testing.assert_allclose(scene.geoms[1].pos, [-0.25, 0, 0], atol=1e-6)
    np.testing.assert_allclose(scene.geoms[0].pos, [-0.25, 0, 2], atol=1e-6)
    missing, model, _ = sensor(max_distance=2.0, debug_vis=True,
                               viz=RayCastSensorCfg.VizCfg(show_rays=True))  # fmt: skip
    missing.debug_vis(recorder := ShapeRecorder(model))
    (arrow_shape,) = recorder.arrows  # 5 % of the way
    np.testing.assert_allclose([arrow_shape.start, arrow_shape.end], [[0, 0, 2], [0.1, 0, 2]])
    assert arrow_shape.color == missing.cfg.viz.miss_color and not recorder.spheres
    quiet, _, _ = sensor(pattern=DOWN)
    empty = mujoco.MjvScene(model, maxgeom=5)
    quiet.debug_vis(SceneVisualizer(empty, model))
    assert empty.ngeom == 0
