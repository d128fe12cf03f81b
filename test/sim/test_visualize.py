"""What is drawn on top of the pictures of a `Sim`, and from where they are taken."""

import itertools
import re
from collections.abc import Iterator

import jax
import mujoco
import numpy as np
import pytest
from images import need_images

from crazyflow_ros import Sim
from crazyflow_ros.sim.sim import use_box_collision
from crazyflow_ros.sim.visualize import change_material, draw_capsule, draw_line, draw_points

CAMERA = np.array([5.0, 5.0, 2.0])  # looks down, its top is north
WIDTH, HEIGHT, FOVY = 120, 80, 60.0
FOCAL = HEIGHT / 2 / np.tan(np.radians(FOVY / 2))  # pixels
BLUE = np.array([0.0, 0.0, 1.0, 1.0])


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    need_images()
    sim = Sim(n_drones=2)
    sim.spec.worldbody.add_camera(name="down", pos=CAMERA, fovy=FOVY)
    yield sim
    sim.close()


def pictured(sim: Sim, **options) -> np.ndarray:
    options = {"camera": "down", "width": WIDTH, "height": HEIGHT} | options
    return sim.render("rgb_array", **options)


def pixels_of(points) -> np.ndarray:
    """Rows of column and row (n, 2) of the pinhole camera's picture of points (n, 3)."""
    x, y, z = (np.asarray(points, float) - CAMERA).T
    centre = (np.array([WIDTH, HEIGHT]) - 1) / 2
    return centre + FOCAL * np.stack([x, -y], axis=-1) / -z[:, None]


def changed_by(sim: Sim, draw, *args, **options) -> np.ndarray:
    """Columns and rows (n, 2) of the pixels that a drawing makes blue; its reflection is paler."""
    before = pictured(sim)
    draw(sim, *args, **options)
    after = pictured(sim)
    np.testing.assert_array_equal(pictured(sim), before)  # it is gone in the next one
    is_blue = after[..., 2] > 2.0 * after[..., :2].max(axis=-1)
    rows, columns = np.nonzero(is_blue & (before != after).any(axis=-1))
    return np.stack([columns, rows], axis=-1)


def distance_to_segment(pixels: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    along = np.clip((pixels - start) @ (end - start) / np.sum((end - start) ** 2), 0, 1)
    return np.linalg.norm(pixels - start - along[:, None] * (end - start), axis=-1)


def test_points_are_where_projection_says(sim: Sim) -> None:
    points, radius = [[4.6, 5.2, 0.5], [5.3, 4.9, 1.0]], 0.06
    changed = changed_by(sim, draw_points, points, BLUE, size=radius)
    depth = CAMERA[2] - np.array(points)[:, 2]
    distance = np.linalg.norm(changed[:, None] - pixels_of(points), axis=-1)
    nearest = distance.argmin(axis=1)
    for i, expected in enumerate(FOCAL * radius / depth):  # pixels
        own = changed[nearest == i]
        assert distance[nearest == i, i].max() < expected + 1.5
        assert len(own) == pytest.approx(np.pi * expected**2, rel=0.35)
        np.testing.assert_allclose(own.mean(axis=0), pixels_of(points)[i], atol=0.6)


def test_a_line_is_where_projection_says(sim: Sim) -> None:
    points = np.array([[4.5, 4.8, 0.3], [5.1, 5.3, 0.3], [5.5, 5.3, 1.2]])
    changed = changed_by(sim, draw_line, points, BLUE, start_size=2.0, end_size=4.0)
    ends = pixels_of(points)
    to_pieces = [distance_to_segment(changed, a, b) for a, b in itertools.pairwise(ends)]
    assert np.min(to_pieces, axis=0).max() < 3.5  # half of the width, and the pixel's own half
    for a, b in itertools.pairwise(ends):  # without gaps
        for share in np.linspace(0, 1, 40):
            assert np.linalg.norm(changed - (a + share * (b - a)), axis=-1).min() < 1.5
    # Its width changes from one end to the other.
    first, last = (np.sum(piece < 4) for piece in to_pieces)
    lengths = np.linalg.norm(np.diff(ends, axis=0), axis=-1)
    assert last / lengths[1] > 1.3 * first / lengths[0]


@pytest.mark.parametrize("cylinder", [False, True])
def test_a_capsule_has_round_ends_and_a_cylinder_has_not(sim: Sim, cylinder: bool) -> None:
    ends, radius = np.array([[4.6, 5.0, 0.5], [5.2, 5.0, 0.5]]), 0.1
    changed = changed_by(sim, draw_capsule, *ends, radius, BLUE, cylinder)
    beyond = 0.0 if cylinder else radius
    extremes = ends + np.array([[-beyond, radius, 0], [beyond, -radius, 0]])
    low, high = pixels_of(extremes)
    tolerance = 2.0  # the near side of the body is seen, and it is larger
    np.testing.assert_allclose(changed.min(axis=0), low, atol=tolerance)
    np.testing.assert_allclose(changed.max(axis=0), high, atol=tolerance)


def test_depth_has_no_drawings(sim: Sim) -> None:
    size = {"camera": "down", "width": WIDTH, "height": HEIGHT}
    before = sim.render("depth_array", **size)
    draw_points(sim, [5.0, 5.0, 1.0], size=0.2)
    picture, depth = sim.render("rgbd_tuple", **size)
    np.testing.assert_array_equal(depth, before)
    assert (picture != pictured(sim)).any()


def test_the_last_drawings_are_kept_up_to_a_number(sim: Sim) -> None:
    sim.close()
    sim.max_visual_geom = 3
    try:
        for x in (4.6, 4.8, 5.0, 5.2, 5.4):
            draw_points(sim, [x, 5.0, 1.0], BLUE, size=0.03)
        with_all = pictured(sim).astype(int)
        places = np.rint(pixels_of([[x, 5.0, 1.0] for x in (4.6, 4.8, 5.0, 5.2, 5.4)])).astype(int)
        is_blue = [with_all[r, c, 2] > 2 * with_all[r, c, 0] for c, r in places]
        clean = pictured(sim)
        drawn = [(with_all != clean)[row, column].any() for column, row in places]
        assert drawn == is_blue == [False, False, True, True, True]
        with pytest.raises(ValueError, match="4 shapes, max_visual_geom is 3"):
            draw_points(sim, np.zeros((4, 3)))
    finally:
        del sim.max_visual_geom
        sim.close()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda s: draw_line(s, np.zeros((2, 2))), "points must have shape (n, 3), got (2, 2)"),
        (lambda s: draw_line(s, np.zeros((1, 3))), "at least two points, got 1"),
        (lambda s: draw_line(s, np.full((2, 3), np.nan)), "points must be finite"),
        (lambda s: draw_line(s, np.eye(3), start_size=0), "start_size must be a positive number"),
        (lambda s: draw_points(s, "here"), "points must be numbers, got "),
        (lambda s: draw_points(s, np.eye(3), [1, 0, 0]), "rgba must have shape (4,)"),
        (lambda s: draw_points(s, np.eye(3), [0, 0, 300, 1]), "rgba must be 0 to 1"),
        (lambda s: draw_points(s, np.eye(3), size=-1), "size must be a positive number, got -1"),
        (lambda s: draw_capsule(s, [0, 0], [1, 1, 1]), "p1 must have shape (n, 3), got (1, 2)"),
        (lambda s: change_material(s, "led_top", [2]), "drone_ids must be 0 to 1, got [2]"),
        (lambda s: change_material(s, "led_top", 0), "drone_ids must be a list of indices, got 0"),
        (lambda s: change_material(s, "lamp", [0]), "there is no material 'lamp', only led_bot"),
        (lambda s: change_material(s, "led_bot", [0], np.ones((2, 4))), "rgba must have shape"),
        (lambda s: change_material(s, "led_bot", [0], emission=[1, 2]), "emission must have shape"),
        (lambda s: s.render("rgb_array", camera="eye"), "there is no camera 'eye', only fpv_cam:0"),
        (lambda s: s.render("rgb_array", camera=9), "camera must be -1 to"),
        (
            lambda s: s.render("rgb_array", cam_config={"zoom": 2}),
            "cam_config: there is no field 'zoom'",
        ),
        (lambda s: s.render("rgb_array", cam_config={"distance": np.inf}), "a finite number"),
        (lambda s: s.render("rgb_array", cam_config={"lookat": 1.0}), "three finite numbers"),
        (lambda s: s.render("rgb_array", cam_config={"trackbodyid": 999}), "trackbodyid must be"),
    ],
)
def test_wrong_arguments_name_themselves(draw, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        draw(_PLAIN)


_PLAIN = Sim(n_drones=2)


@pytest.mark.parametrize("drone", ["cf2x_L250", "cf21B_500"])
def test_each_drone_has_leds_of_its_own(drone: str) -> None:
    need_images()
    sim = Sim(n_drones=2, drone=drone)
    for i, x in enumerate((-0.5, 0.5)):  # where two drones start
        sim.spec.worldbody.add_camera(name=f"above:{i}", pos=[x, -0.5, 0.3], fovy=10)
    options = {"width": 40, "height": 40}
    cameras = ["above:0", "above:1"]
    before = [pictured(sim, camera=name, **options) for name in cameras]
    change_material(sim, "led_top", [1], rgba=[1, 0, 0, 1], emission=1.0)
    change_material(sim, "led_bot", [0], rgba=[0, 1, 0, 1])
    after = [pictured(sim, camera=name, **options) for name in cameras]
    lit = [(a != b).any(axis=-1) for a, b in zip(after, before)]
    assert lit[1].mean() > 0.05 and lit[1][20, 20]
    red, green, blue = after[1][lit[1]].mean(axis=0)
    assert red > 150 and red > 2 * green and red > 2 * blue
    assert not lit[0].any()  # the LED below is hidden by its drone
    materials = {sim.mj_model.material(i).name: i for i in range(sim.mj_model.nmat)}
    np.testing.assert_allclose(sim.mj_model.mat_rgba[materials["led_bot:0"]], [0, 1, 0, 1])
    np.testing.assert_allclose(sim.mj_model.mat_emission[materials["led_top:1"]], 1.0)
    assert sim.mj_model.mat_rgba[materials["led_bot:1"], 3] == 0  # unlit, and so invisible
    sim.close()


def test_the_free_camera_is_where_its_configuration_says(sim: Sim) -> None:
    fovy = float(sim.mj_model.vis.global_.fovy)
    sim.spec.worldbody.add_camera(name="same", pos=[0.3, 0.1, 1.5], fovy=fovy)
    sim.build_mjx()
    config = {"distance": 1.0, "azimuth": 90.0, "elevation": -90.0, "lookat": [0.3, 0.1, 0.5]}
    free = pictured(sim, camera=-1, cam_config=config).astype(int)
    fixed = pictured(sim, camera="same").astype(int)
    assert np.abs(free - fixed).mean() < 0.5  # the near plane differs
    assert np.abs(free - pictured(sim, camera=-1)).mean() > 5
    np.testing.assert_array_equal(pictured(sim, camera="same", cam_config=config), fixed)


def test_the_free_camera_follows_a_body(sim: Sim) -> None:
    body = sim.mj_model.body("drone:1").id
    config = {"distance": 0.5, "azimuth": 90.0, "elevation": -45.0}
    following = pictured(sim, camera=-1, cam_config=config | {"trackbodyid": body})
    place = np.asarray(sim.data.states.pos[0, 1])
    beside = pictured(sim, camera=-1, cam_config=config | {"lookat": place})
    assert np.abs(following.astype(int) - beside).mean() < 1.0


def test_the_window_gets_camera_and_drawings(monkeypatch) -> None:
    sim = Sim()
    shown: list[tuple] = []

    class Window:
        def __init__(self, model, data):
            del data
            self.cam, self.user_scn = mujoco.MjvCamera(), mujoco.MjvScene(model, 100)

        def lock(self):
            return memoryview(b"")  # some context manager

        def sync(self):
            kinds = [int(geom.type) for geom in self.user_scn.geoms[: self.user_scn.ngeom]]
            shown.append((int(self.cam.type), self.cam.fixedcamid, self.cam.distance, kinds))

        def close(self):
            pass

    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setattr("mujoco.viewer.launch_passive", Window)
    assert sim.viewer is None
    sim.render(cam_config={"distance": 3.0})
    draw_line(sim, [[0, 0, 0], [0, 0, 1], [0, 1, 1]])
    sim.viewer.cam.distance = 7.0  # by the mouse
    sim.render(cam_config={"distance": 3.0})
    sim.render(camera="fpv_cam:0")
    kinds = mujoco.mjtCamera
    line = int(mujoco.mjtGeom.mjGEOM_LINE)
    camera = sim.mj_model.camera("fpv_cam:0").id
    assert [s[0] for s in shown] == [kinds.mjCAMERA_FREE] * 2 + [kinds.mjCAMERA_FIXED]
    assert [s[3] for s in shown] == [[], [line, line], []]
    assert [s[2] for s in shown[:2]] == [3.0, 7.0] and shown[2][1] == camera
    sim.close()
    assert sim.viewer is None


def test_boxes_as_collision_shapes_do_not_touch_where_spheres_do() -> None:
    sim = Sim(n_drones=2)
    states = sim.data.states
    pos = states.pos.at[:, 0].set(np.array([0.0, 0, 1.0])).at[:, 1].set(np.array([0.0, 0, 1.1]))
    sim.data = sim.data.replace(states=states.replace(pos=pos))
    spheres = sim.mj_model.geom_contype
    use_box_collision(sim, True)  # 0.1 m apart: boxes are 0.014 m high
    assert not sim.contacts("drone:0").any()
    use_box_collision(sim, False)  # those of the next test
    np.testing.assert_array_equal(sim.mj_model.geom_contype, spheres)
    (box,) = {tuple(g.size) for g in sim.spec.geoms if g.name.startswith("col_box")}
    arm, rotor = 0.0354, 0.0275  # of a Crazyflie Brushless, m
    assert min(box[:2]) > arm + rotor and len(sim.spec.geoms) == sim.mj_model.ngeom


def test_fused_drones_touch_alike_and_need_less_memory() -> None:
    sims = [Sim(n_drones=2, fused_mjx_model=fused) for fused in (False, True)]
    touching = []
    for sim in sims:
        states = sim.data.states
        pos = states.pos.at[:, 0].set(np.array([0, 0, 1.0])).at[:, 1].set(np.array([0, 0, 1.1]))
        sim.data = sim.data.replace(states=states.replace(pos=pos))
        touching.append(np.asarray(sim.contacts("drone:0")))
    np.testing.assert_array_equal(*touching)
    assert touching[0].any()
    whole, fused = (sum(x.nbytes for x in jax.tree.leaves(sim.mjx_data)) for sim in sims)
    assert fused < 0.4 * whole
    assert sims[1].mj_model.camera("fpv_cam:1").id >= 0
    visible = sims[1].mj_model.geom_group == 2
    assert visible.sum() == 2  # one box for each
