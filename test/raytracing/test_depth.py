"""Depth by rays, against the depth that MuJoCo draws."""

from collections.abc import Iterator

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from images import need_images

from crazyflow_ros import Sim
from crazyflow_ros.sim.sensors import build_render_depth_fn, render_depth

SIZE = (36, 24)


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    """Two worlds with a block and a ball, and cameras with a field of view and with intrinsics."""
    sim = Sim(n_worlds=2, drone="cf2x_L250")
    world = sim.spec.worldbody
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=[1.5, 0.3, 0.4], size=[0.2, 0.3, 0.4])
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, pos=[2.0, -0.6, 0.7], size=[0.4, 0, 0])
    pillar = world.add_geom(type=mujoco.mjtGeom.mjGEOM_CYLINDER, name="pillar", size=[0.1, 1, 0])
    pillar.pos, pillar.group = [1.2, -0.2, 1.0], 1
    looking = {"pos": [0.0, 0.0, 0.8], "xyaxes": [0, -1, 0, 0.2, 0, 1]}
    world.add_camera(name="wide", fovy=75, **looking)
    world.add_camera(
        name="lens", resolution=SIZE, sensor_size=[0.0036, 0.0024], focal_length=[0.002, 0.002],
        principal_length=[0.0003, -0.0002], **looking,
    )  # fmt: skip
    orthographic = mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC
    ahead = looking | {"pos": [0.5, 0.0, 0.8]}
    world.add_camera(name="flat", proj=orthographic, fovy=2, **ahead)
    sim.build_mjx()
    states = sim.data.states
    pos = states.pos.at[1].set(jnp.array([[0.5, 0.0, 0.85]]))
    sim.data = sim.data.replace(states=states.replace(pos=pos))
    yield sim
    sim.close()


def drawn(sim: Sim, camera: str, world: int) -> np.ndarray:
    return sim.render("depth_array", world, camera, width=SIZE[0], height=SIZE[1])


def check(rays: np.ndarray, drawing: np.ndarray) -> None:
    """Compare all pixels but those at edges, which a rasteriser gives to one side or the other."""
    seen = np.isfinite(drawing)
    # Round shapes are drawn as polygons, which are up to 1 cm farther away.
    near = np.isclose(rays, np.where(seen, drawing, 0.0), rtol=2e-3, atol=0.01)
    assert np.where(seen, near, np.isinf(rays) | (rays > 50)).mean() > 0.95
    assert seen.mean() > 0.5 and np.ptp(rays[np.isfinite(rays)]) > 1.0


@pytest.mark.parametrize("camera", ["lens", "flat"])
def test_rays_and_drawing_agree_in_each_camera(sim: Sim, camera: str) -> None:
    need_images()
    images = render_depth(sim, camera, SIZE)
    assert images.shape == (2, SIZE[1], SIZE[0])
    check(np.asarray(images[0]), drawn(sim, camera, 0))
    np.testing.assert_array_equal(images[0], images[1])  # the drone is not seen


def test_the_field_of_view_can_be_given(sim: Sim) -> None:
    """Against the distance of a plane along the axis, in closed form."""
    number = sim.mj_model.camera("lens").id
    depth = build_render_depth_fn(sim.mjx_model, number, (1, 101), fovy=60.0)(sim)[0, :, 0]
    tangent = np.tan(np.radians(30)) * (50 - np.arange(101)) / 50.5
    axis = np.cross([0, -1, 0], [0.2, 0, 1]) / np.linalg.norm([0.2, 0, 1])
    up = np.array([0.2, 0, 1]) / np.linalg.norm([0.2, 0, 1])
    down = -(-axis[2] + tangent * up[2])  # of the ray with 1 m along the axis
    floor = 0.8 / down[down > 0.7]
    np.testing.assert_allclose(np.asarray(depth)[down > 0.7], floor, rtol=1e-4)


def test_drones_are_seen_on_demand(sim: Sim) -> None:
    seen = render_depth(sim, "wide", (120, 120), include_drone=True)
    # The board is 15 mm long to each side, the arms 46 mm at 45 degrees.
    assert 0.4 < float(seen[1].min()) < 0.5 < float(seen[0].min())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"camera": "eye"}, "'eye'"), ({"camera": -1}, "free camera"),
        ({"camera": "wide", "resolution": (0, 5)}, "0 x 5"),
        ({"camera": "wide", "resolution": (9999, 9999)}, "9999 x 9999"),
        ({"camera": "wide", "fovy": 180.0}, "fovy .*180"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_refused(sim: Sim, options, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        render_depth(sim, **options)
