"""Pictures by rays, as a function of the poses of geoms and cameras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.optics import Lens
from crazyflow_ros.raytracing.pixels import Directions, Tiles, of_pixels, rows_of
from crazyflow_ros.raytracing.search import Found, search
from crazyflow_ros.raytracing.surface import PixelRays, Surface, surface_of, surface_rows
from crazyflow_ros.raytracing.unit_shapes import Opacity, UnitShapes, seen, shapes_of
from crazyflow_ros.raytracing.visibility import table_of
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.struct import pytree


class Frames(NamedTuple):
    """Frames in N worlds; K in each, or one."""

    pos: Array
    """Positions [m], (N, K, 3) or (N, 3)."""
    axes: Array
    """Axes as columns, (N, K, 3, 3) or (N, 3, 3)."""


class Hits(NamedTuple):
    """What the pixels of N pictures show, rows from the top."""

    depth: Array
    """Distance along the optical axis [m], or along the rays, see `Lens.z`; (N, height, width)
    float32; infinite where nothing is seen."""
    shape: Array
    """Number of the shape, (N, height, width) int32; -1 where nothing is seen."""


@pytree("opacity")
class Tracer:
    """Casts the rays of a camera, for any number of worlds at once.

    All functions are pure: use them in `jax.jit`, `jax.vmap`, `jax.lax.scan` and `jax.grad`. The
    tracer is a pytree, and can be an argument of compiled functions.

    Args:
        model: The scene.
        lens: The rays of the camera.
        groups: Geom groups (0-5) that are seen.
        opacity: Which of them are seen.
        without: Id of a geom that is not seen, -1 for none.

    Raises:
        ValueError: The scene has geoms that cannot be seen by rays.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        lens: Lens,
        groups: Sequence[int] = (0, 1, 2),
        opacity: Opacity = Opacity.any,
        without: int = -1,
    ) -> None:
        self.opacity = opacity
        shapes: UnitShapes = jax.tree.map(jnp.asarray, shapes_of(model, groups, opacity, without))
        self.shapes, self.tiles = shapes, Tiles.of(lens)

    def hits(self, geoms: Frames, cameras: Frames) -> Hits:
        """Return what is seen.

        The depths have derivatives by all poses; those at edges are of the side that is seen.

        Args:
            geoms: Of all geoms of the scene, (N, ngeom, ...).
            cameras: Of the cameras, which look along -z with +y up, (N, ...).
        """
        return Hits(*_hits(self, geoms, cameras))

    def hits_beyond(self, near: Array, geoms: Frames, cameras: Frames) -> Hits:
        """Return what is seen beyond some depths, (N, height, width) m, without derivatives.

        Call this in a compiled function.
        """
        near = self.tiles.whole_of(near)
        return self.cropped(search(self.shapes, self.tiles, *flat_frames(geoms, cameras), near))

    def segmentation(self, hits: Hits) -> Array:
        """Return ids of geoms, (N, height, width) int32, -1 where there is none."""
        geom = jnp.append(jnp.asarray(self.shapes.geom), jnp.int32(-1))
        return geom[hits.shape]

    def normals(self, hits: Hits, geoms: Frames, cameras: Frames) -> Array:
        """Return unit normals in the axes of the world, (N, height, width, 3).

        They are zero where nothing is seen.
        """
        return _normals(self, hits, geoms, cameras)

    def rows(self, frames: Array, camera: Array) -> Array:
        """Return the numbers of the shapes in one picture, see `surface_rows`."""
        own = self.shapes.rows
        frames = apart(lambda frames, geom: frames[geom].T, frames, self.shapes.geom)
        table, _ = apart(table_of, own, frames, camera)
        return apart(surface_rows, own, table)

    def surface(self, taken: Array, of_lens: Directions, hits: Hits) -> tuple[PixelRays, Surface]:
        """Return the rays and the surface of R pixels of a picture, anything without a hit.

        Args:
            taken: Of `rows`, the columns are those of what is hit, (K, R).
            of_lens: Rays of the lens, (R,).
            hits: What is seen, (R,).
        """
        depth = jnp.where(hits.shape >= 0, hits.depth, 1.0)
        rays = PixelRays(of_lens, depth, self.tiles.orthographic)
        return rays, surface_of(self.shapes, taken, rays)

    def cropped(self, found: Found) -> Hits:
        """Return what is found without what is beyond the edges of the picture."""
        return Hits(*(part[:, : self.tiles.height, : self.tiles.width] for part in found))


def layers_of(
    model: mujoco.MjModel, lens: Lens, groups: Sequence[int], without: int = -1
) -> list[Tracer]:
    """Return tracers of what is opaque and of what is not, if there is any; see `Tracer`."""
    return [
        Tracer(model, lens, groups, opacity, without)
        for opacity in (Opacity.opaque, Opacity.transparent)
        if seen(model, groups, opacity, without).any()
    ]


@jax.custom_jvp
def _found(tracer: Tracer, geoms: Frames, cameras: Frames) -> tuple[Array, Array]:
    found = search(tracer.shapes, tracer.tiles, *flat_frames(geoms, cameras), None)
    hits = tracer.cropped(found)
    return hits.depth, hits.shape


@_found.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (tracer, geoms, cameras), (_, d_geoms, d_cameras) = primals, tangents
    hits = Hits(*_found(*primals))
    flat = Hits(*(part.reshape(len(part), -1) for part in hits))
    of_lens = jax.tree.map(lambda part: tracer.tiles.pictures(part).ravel(), tracer.tiles.rays)

    def surface(frames: Array, camera: Array, hits: Hits) -> list[Array]:
        rows = tracer.rows(frames, camera)
        taken = rows_of(rows, jnp.maximum(hits.shape, 0), in_tile=False)
        rays, surface = tracer.surface(taken, of_lens, hits)
        parts = rays.ends(), rays.steps(), surface.normal
        return [jnp.stack(part, axis=-1) for part in parts]

    ends, steps, normal = jax.vmap(surface)(*flat_frames(geoms, cameras), flat)
    geom = tracer.shapes.geom[jnp.maximum(flat.shape, 0)]
    look, d_look = cameras.axes[:, None], d_cameras.axes[:, None]
    away = cameras.pos[:, None] + _turned(look, ends) - _taken(geoms.pos, geom)
    local = _turned(jnp.swapaxes(_taken(geoms.axes, geom), -1, -2), away)
    # A point of the surface moves with its geom, and the ray meets the surface elsewhere.
    moved = _taken(d_geoms.pos, geom) + _turned(_taken(d_geoms.axes, geom), local)
    swept = d_cameras.pos[:, None] + _turned(d_look, ends)
    normal = _turned(look, normal)
    change = (normal * (moved - swept)).sum(-1) / (normal * _turned(look, steps)).sum(-1)
    change = jnp.where(flat.shape >= 0, change, 0.0).reshape(hits.depth.shape)
    return tuple(hits), (change, np.zeros(hits.shape.shape, jax.dtypes.float0))


# Compiled once for all tracers of the same structure, also if they are called without `jax.jit`.
_hits = jax.jit(_found)


@jax.jit
def _normals(tracer: Tracer, hits: Hits, geoms: Frames, cameras: Frames) -> Array:
    def prepare(tracer: Tracer, scene: tuple[Array, Array]) -> tuple[Array, Array]:
        return tracer.rows(*scene), scene[1]

    def normals(
        tracer: Tracer, data: tuple[Array, Array], rays: Directions, hits: Hits, in_tile: bool
    ) -> Array:
        rows, camera = data
        taken = rows_of(rows, jnp.maximum(hits.shape, 0), in_tile)
        _, surface = tracer.surface(taken, rays, hits)
        axes = camera[3:].reshape(3, 3)
        turned = (sum(a * n for a, n in zip(row, surface.normal)) for row in axes)
        return jnp.stack([jnp.where(hits.shape >= 0, part, 0.0) for part in turned])

    scenes = flat_frames(geoms, cameras)
    made = of_pixels(tracer.tiles, prepare, normals, tracer, scenes, hits)
    return jnp.moveaxis(made, 1, -1)


def flat_frames(geoms: Frames, cameras: Frames) -> tuple[Array, Array]:
    """Return positions and axes in one, (N, ngeom, 12) and (N, 12)."""
    axes = geoms.axes.reshape(*geoms.pos.shape[:2], 9)
    camera = jnp.concatenate([cameras.pos, cameras.axes.reshape(-1, 9)], axis=-1)
    return jnp.concatenate([geoms.pos, axes], axis=-1), camera


def _taken(values: Array, number: Array) -> Array:
    """Return rows of `values` (N, K, ...) by their numbers (N, R)."""
    index = number.reshape(*number.shape, *[1] * (values.ndim - 2))
    return jnp.take_along_axis(values, index, axis=1)


def _turned(axes: Array, vector: Array) -> Array:
    """Return the products of matrices (..., 3, 3) and vectors (..., 3)."""
    return (axes * vector[..., None, :]).sum(-1)
