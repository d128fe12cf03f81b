"""Pictures by rays, as a function of the poses of geoms and cameras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.lens import Lens, Tiles
from crazyflow_ros.raytracing.search import search
from crazyflow_ros.raytracing.shapes import shapes_of
from crazyflow_ros.raytracing.surface import PixelRays, normals, taken


class Frames(NamedTuple):
    """Frames in N worlds; K in each, or one."""

    pos: Array
    """Positions [m], (N, K, 3) or (N, 3)."""
    axes: Array
    """Axes as columns, (N, K, 3, 3) or (N, 3, 3)."""


class Hits(NamedTuple):
    """What the pixels of N pictures show, rows from the top."""

    depth: Array
    """Distance along the optical axis [m], (N, height, width) float32; infinite where nothing is
    seen."""
    shape: Array
    """Number of the shape, (N, height, width) int32; -1 where nothing is seen."""


class Tracer:
    """Casts the rays of a camera, for any number of worlds at once.

    All functions are pure: use them in `jax.jit`, `jax.vmap`, `jax.lax.scan` and `jax.grad`.

    Args:
        model: The scene.
        lens: The rays of the camera.
        groups: Geom groups (0-5) that are seen.

    Raises:
        ValueError: The scene has geoms that cannot be seen by rays.
    """

    def __init__(
        self, model: mujoco.MjModel, lens: Lens, groups: Sequence[int] = (0, 1, 2)
    ) -> None:
        self.lens, self.shapes = lens, shapes_of(model, groups)
        self._tiles = tiles = Tiles(lens)
        self._search = search(self.shapes, tiles, orthographic=lens.orthographic)
        self._cast = jax.custom_jvp(self._found)
        self._cast.defjvp(self._derived)

    def hits(self, geoms: Frames, cameras: Frames) -> Hits:
        """Return what is seen.

        The depths have derivatives by all poses; those at edges are of the side that is seen.

        Args:
            geoms: Of all geoms of the scene, (N, ngeom, ...).
            cameras: Of the cameras, which look along -z with +y up, (N, ...).
        """
        return Hits(*self._cast(geoms, cameras))

    def segmentation(self, hits: Hits) -> Array:
        """Return ids of geoms, (N, height, width) int32, -1 where there is none."""
        geom = jnp.append(jnp.asarray(self.shapes.geom), jnp.int32(-1))
        return geom[hits.shape]

    def normals(self, hits: Hits, geoms: Frames, cameras: Frames) -> Array:
        """Return unit normals in the axes of the world, (N, height, width, 3).

        They are zero where nothing is seen.
        """
        flat = self._flat(hits)
        _, _, normal = self._surface(flat, geoms, cameras)
        seen = (hits.shape >= 0)[..., None]
        return jnp.where(seen, normal.reshape(*hits.shape.shape, 3), 0.0)

    def _found(self, geoms: Frames, cameras: Frames) -> tuple[Array, Array]:
        frames = jnp.concatenate([geoms.pos, geoms.axes.reshape(*geoms.pos.shape[:2], 9)], -1)
        camera = jnp.concatenate([cameras.pos, cameras.axes.reshape(-1, 9)], -1)
        height, width = self.lens.size
        depth, shape = self._search(frames, camera)
        return depth[:, :height, :width], shape[:, :height, :width]

    def _derived(self, primals: Any, tangents: Any) -> Any:
        (geoms, cameras), (d_geoms, d_cameras) = primals, tangents
        hits = Hits(*self._cast(geoms, cameras))
        flat = self._flat(hits)
        number = jnp.maximum(flat.shape, 0)
        geom = jnp.asarray(self.shapes.geom)[number]
        rays, local, normal = self._surface(flat, geoms, cameras)
        # A point of the surface moves with its geom, and the ray meets the surface elsewhere.
        moved = taken(d_geoms.pos, geom) + _turned(taken(d_geoms.axes, geom), local)
        orthographic = self.lens.orthographic
        swept = d_cameras.pos[:, None] + _turned(d_cameras.axes[:, None], rays.points(orthographic))
        step = _turned(cameras.axes[:, None], rays.steps(orthographic)[None])
        change = (normal * (moved - swept)).sum(-1) / (normal * step).sum(-1)
        change = jnp.where(flat.shape >= 0, change, 0.0).reshape(hits.depth.shape)
        return tuple(hits), (change, np.zeros(hits.shape.shape, jax.dtypes.float0))

    def _flat(self, hits: Hits) -> Hits:
        return Hits(*(part.reshape(len(part), -1) for part in hits))

    def _surface(
        self, flat: Hits, geoms: Frames, cameras: Frames
    ) -> tuple[PixelRays, Array, Array]:
        """Return the rays, where they hit in the frames of the geoms [m], and normals in the world.

        Args:
            flat: Hits, (N, R).
            geoms: See `hits`.
            cameras: See `hits`.
        """
        x, y = (jnp.asarray(part.ravel(), flat.depth.dtype) for part in self.lens[:2])
        rays = PixelRays(x, y, jnp.where(flat.shape >= 0, flat.depth, 1.0))
        number = jnp.maximum(flat.shape, 0)
        geom = jnp.asarray(self.shapes.geom)[number]
        axes = taken(geoms.axes, geom)
        points = cameras.pos[:, None] + _turned(
            cameras.axes[:, None], rays.points(self.lens.orthographic)
        )
        local = _turned(jnp.swapaxes(axes, -1, -2), points - taken(geoms.pos, geom))
        return rays, local, _turned(axes, normals(self.shapes, number, local))


def _turned(axes: Array, vector: Array) -> Array:
    """Return the products of matrices (..., 3, 3) and vectors (..., 3)."""
    return (axes * vector[..., None, :]).sum(-1)
