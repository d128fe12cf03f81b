"""Depth images of all worlds at once, by the rays of MJX: no OpenGL, and on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.extras import extra
from crazyflow_ros.sim.sim import Sim

if TYPE_CHECKING:
    from mujoco import mjx

    from crazyflow_ros.scene.intrinsics import Intrinsics

WORLD_GROUPS = (1, 1, 0, 0, 1, 0)
"""Geom groups without shapes of drones: 2 is drawn, 3 and 5 are collision shapes."""
MOST_PIXELS = 4096 * 4096
"""Maximum number of pixels of an image."""


def render_depth(
    sim: Sim,
    camera: int | str = 0,
    resolution: tuple[int, int] = (100, 100),
    include_drone: bool = False,
    fovy: float | None = None,
) -> Array:
    """Return a depth image of each world.

    The function is compiled for each camera and resolution; `build_render_depth_fn` keeps the one
    that it returns.

    Args:
        sim: The simulation.
        camera: Name or id of a camera of the scene.
        resolution: Width and height [pixels].
        include_drone: Whether boxes and spheres of drones are seen. Their cylinders (rotors,
            motors, feet) are not, because the rays of MJX pass through cylinders.
        fovy: Vertical field of view [degrees]; by default the camera's own.

    Returns:
        (n_worlds, height, width) distance along the optical axis [m], infinite where there is
        nothing.

    Raises:
        ValueError: There is no such camera, the size or field of view is out of range, or the scene
            has shapes that rays of MJX pass through.
    """
    from crazyflow_ros.scene.view import camera_id

    number = camera_id(sim.mj_model, camera)
    if number < 0:
        raise ValueError("the free camera has no rays, name a camera of the scene")
    groups = (*WORLD_GROUPS[:2], int(include_drone), *WORLD_GROUPS[3:])
    intrinsics = _intrinsics(sim.mj_model, number, resolution, fovy)
    return _depth_fn(sim.mjx_model, number, intrinsics, groups)(sim)


def build_render_depth_fn(
    mjx_model: mjx.Model,
    camera: int = 0,
    resolution: tuple[int, int] = (100, 100),
    geomgroup: Sequence[int] = WORLD_GROUPS,
    fovy: float | None = None,
) -> Callable[[Sim], Array]:
    """Return a function that returns depth images of a simulation, see `render_depth`.

    Args:
        mjx_model: `mjx_model` of the simulation.
        camera: Id of a camera.
        resolution: Width and height [pixels].
        geomgroup: For each geom group, whether it is seen.
        fovy: Vertical field of view [degrees]; by default the camera's own.

    Raises:
        ValueError: See `render_depth`.
    """
    if not 0 <= camera < mjx_model.ncam:
        raise ValueError(f"camera must be 0 to {mjx_model.ncam - 1}, got {camera}")
    intrinsics = _intrinsics(mjx_model, camera, resolution, fovy)
    return _depth_fn(mjx_model, camera, intrinsics, geomgroup)


def _intrinsics(
    model: Any, camera: int, resolution: tuple[int, int], fovy: float | None
) -> Intrinsics:
    from crazyflow_ros.scene.intrinsics import Intrinsics

    width, height = resolution
    if not (min(width, height) >= 1 and width * height <= MOST_PIXELS):
        rule = f"from 1 to {MOST_PIXELS} pixels"
        raise ValueError(f"resolution must be {rule}, got {width} x {height}")
    if fovy is None:
        return Intrinsics.of_number(model, camera, width, height)
    return Intrinsics.from_fovy(fovy, width, height)


def _depth_fn(
    mjx_model: mjx.Model, camera: int, intrinsics: Intrinsics, geomgroup: Sequence[int]
) -> Callable[[Sim], Array]:
    from crazyflow_ros.scene.rays import check_rays_hit

    groups = tuple(bool(seen) for seen in geomgroup)
    geom_group = np.asarray(mjx_model.geom_group)
    in_groups = np.isin(geom_group, np.flatnonzero(groups))
    owner = np.asarray(mjx_model.body_rootid)[mjx_model.geom_bodyid]
    is_drawing = (geom_group == 2) & (np.asarray(mjx_model.body_mocapid)[owner] >= 0)
    check_rays_hit(mjx_model, in_groups & ~is_drawing)
    directions = intrinsics.directions()
    if mjx_model.nmat == 0:  # then mjx.ray fails for geoms without a material
        mjx_model = mjx_model.replace(mat_rgba=jnp.ones((1, 4)))
    cast = jax.jit(partial(_cast, mjx_model, camera, groups, directions))

    def depth(sim: Sim) -> Array:
        sim.sync()
        images: Array = cast(sim.mjx_data)
        return images

    return depth


def _cast(
    model: mjx.Model,
    camera: int,
    groups: tuple[bool, ...],
    directions: np.ndarray,
    worlds: mjx.Data,
) -> Array:
    """Cast a ray in each direction (height, width, 3) of a camera in all worlds."""
    with extra("mjx"):
        from mujoco import mjx

    along_axis = -directions[..., 2].ravel()  # a camera looks along -z

    def of_world(world: mjx.Data) -> Array:
        rays = directions.reshape(-1, 3) @ world.cam_xmat[camera].reshape(3, 3).T
        ray = partial(mjx.ray, model, world, world.cam_xpos[camera], geomgroup=groups)
        distance, _ = jax.vmap(ray)(rays)
        depth = jnp.where(distance < 0, jnp.inf, distance * along_axis)
        return depth.reshape(directions.shape[:2])

    return jax.vmap(of_world)(worlds)
