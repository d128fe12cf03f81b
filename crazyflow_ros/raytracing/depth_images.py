"""Depth images of all worlds at once, by rays: no OpenGL, and on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import jax
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.optics import Optics
from crazyflow_ros.raytracing.tracer import Frames, Tracer
from crazyflow_ros.scene.intrinsics import Intrinsics
from crazyflow_ros.scene.view import camera_id
from crazyflow_ros.sim import Sim

if TYPE_CHECKING:
    from mujoco import mjx

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
        include_drone: Whether drones are seen.
        fovy: Vertical field of view [degrees]; by default the camera's own.

    Returns:
        (n_worlds, height, width) distance along the optical axis [m], infinite where there is
        nothing.

    Raises:
        ValueError: There is no such camera, the size or field of view is out of range, or the scene
            has nothing to see or geoms that rays do not see.
    """
    number = camera_id(sim.mj_model, camera)
    if number < 0:
        raise ValueError("the free camera has no rays, name a camera of the scene")
    groups = (*WORLD_GROUPS[:2], int(include_drone), *WORLD_GROUPS[3:])
    return build_render_depth_fn(sim.mjx_model, number, resolution, groups, fovy)(sim)


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
        ValueError: See `render_depth`; the function raises what concerns geoms.
    """
    if not 0 <= camera < mjx_model.ncam:
        raise ValueError(f"camera must be 0 to {mjx_model.ncam - 1}, got {camera}")
    width, height = resolution
    if not (min(width, height) >= 1 and width * height <= MOST_PIXELS):
        rule = f"from 1 to {MOST_PIXELS} pixels"
        raise ValueError(f"resolution must be {rule}, got {width} x {height}")
    optics = None if fovy is None else Optics(Intrinsics.from_fovy(fovy, width, height))
    groups = tuple(np.flatnonzero(geomgroup).tolist())
    made: tuple[mujoco.MjModel, Callable[[Frames, Frames], Array]] | None = None

    def depth(sim: Sim) -> Array:
        nonlocal made
        sim.sync()
        model, worlds = sim.mj_model, sim.mjx_data
        if made is None or made[0] is not model:
            shown = optics or Optics.of_camera(model, camera, width, height)
            tracer = Tracer(model, shown.lens(), groups)
            made = model, jax.jit(lambda *frames: tracer.hits(*frames).depth)
        _, cast = made
        return cast(
            Frames(worlds.geom_xpos, worlds.geom_xmat),
            Frames(worlds.cam_xpos[:, camera], worlds.cam_xmat[:, camera]),
        )

    return depth
