"""Pictures in colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.haze import haze_of
from crazyflow_ros.raytracing.look import Appearance, drawn_lights, look_of
from crazyflow_ros.raytracing.optics import Lens
from crazyflow_ros.raytracing.pixels import Directions, Vector, if_any, of_pixels, rows_of
from crazyflow_ros.raytracing.reflection import mirror_of
from crazyflow_ros.raytracing.shading import (
    FINISH_ROWS,
    dimmed,
    finish_of,
    finish_rows,
    shade,
    turned_into,
)
from crazyflow_ros.raytracing.shadow_rays import ShadowRays
from crazyflow_ros.raytracing.surface import SURFACE_ROWS, smoothed
from crazyflow_ros.raytracing.textures import Textures, textures_of
from crazyflow_ros.raytracing.tracer import Frames, Hits, Tracer, flat_frames, layers_of
from crazyflow_ros.raytracing.unit_shapes import Opacity
from crazyflow_ros.sensors.camera_model import Chip
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.struct import pytree

_FINISH_END = SURFACE_ROWS + FINISH_ROWS


class _Scene(NamedTuple):
    """What the pixels of one picture have in common."""

    camera: Array
    """Position and axes, (12,)."""
    eye: Array
    """Likewise, of the camera behind the mirror."""
    hazy: Array | None
    """Likewise, of the plane on which there is haze."""
    look: Appearance
    rows: list[Array]
    """Numbers of the shapes of each layer, (P, K)."""
    mirrored: list[Array]
    """Likewise, of the layers that the mirror shows."""
    casters: Array | None
    """Numbers of the shapes that cast shadows."""


@pytree("_with_textures", "_mirror", "_haze", "_casting")
class Painter:
    """Takes the pictures of a camera in colour, for any number of worlds at once.

    The painter is a pytree, and can be an argument of compiled functions. Of surfaces that are not
    opaque, only the nearest one is seen before what is behind it.

    Args:
        model: The scene.
        lens: The rays of the camera.
        groups: Geom groups (0-5) that are seen.
        textures: Whether surfaces have their textures.
        shadows: Whether lights cast shadows.

    Raises:
        ValueError: The scene has geoms that cannot be seen by rays.
    """

    look: Appearance
    """The look of the scene, with one row; give others with a row for each world."""

    def __init__(
        self,
        model: mujoco.MjModel,
        lens: Lens,
        groups: Sequence[int] = (0, 1, 2),
        *,
        textures: bool = True,
        shadows: bool = False,
    ) -> None:
        self._textures, of_geoms = textures_of(model)
        self._with_textures = textures
        self.look = look_of(model, of_geoms)
        self._layers = layers_of(model, lens, groups)
        self._haze = haze_of(model, groups) if self._textures.sky >= 0 else None
        self._mirror = mirror_of(model, groups)
        self._mirrored = []
        if self._mirror is not None:
            self._mirrored = layers_of(model, lens, groups, self._mirror.geom)
        casting = np.flatnonzero(model.light_castshadow[drawn_lights(model)]).tolist()
        self._casting: tuple[int, ...] = tuple(casting)
        self._casters = Tracer(model, lens, groups) if shadows and self._casting else None

    def paint(self, geoms: Frames, cameras: Frames, look: Appearance | None = None) -> Array:
        """Return pictures, (N, height, width, 3), from 0 to 1.

        Args:
            geoms: See `Tracer.hits`.
            cameras: See `Tracer.hits`.
            look: Of N worlds, or one row for all; by default that of the scene.
        """
        return _paint(self, geoms, cameras, look or self.look)

    def _paint(self, geoms: Frames, cameras: Frames, look: Appearance) -> Array:
        n = len(cameras.pos)
        look = jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *x.shape[1:])), look)
        hits = [tracer.hits(geoms, cameras) for tracer in self._layers]
        eyes, mirrored = cameras, []
        if self._mirror is not None:
            eyes = self._mirror.cameras(geoms, cameras)
            near = self._mirror.depths(self._layers[0], hits[0], geoms, cameras)
            mirrored = [tracer.hits_beyond(near, geoms, eyes) for tracer in self._mirrored]
        scenes = *flat_frames(geoms, cameras), flat_frames(geoms, eyes)[1], look
        painted = of_pixels(
            self._layers[0].tiles, Painter._prepare, Painter._painted, self, scenes,
            (hits, mirrored),
        )  # fmt: skip
        return jnp.moveaxis(painted, 1, -1)

    def _prepare(self, scene: tuple[Array, Array, Array, Appearance]) -> _Scene:
        """Return what the pixels of one picture have in common."""
        frames, camera, eye, look = scene
        finish = apart(finish_rows, look, self._textures.cubes)

        def rows(tracer: Tracer, camera: Array) -> Array:
            shapes = tracer.shapes
            parts = [tracer.rows(frames, camera), finish[shapes.geom]]
            smooth = [] if shapes.corners is None else [shapes.corners]
            return jnp.concatenate([*parts, *smooth], axis=1)

        return _Scene(
            camera, eye, None if self._haze is None else frames[self._haze.plane], look,
            [rows(tracer, camera) for tracer in self._layers],
            [rows(tracer, eye) for tracer in self._mirrored],
            None if self._casters is None else self._casters.rows(frames, camera),
        )  # fmt: skip

    def _painted(
        self, scene: _Scene, rays: Directions, hits: tuple[list[Hits], list[Hits]], in_tile: bool
    ) -> Array:
        """Return red, green and blue of R pixels of a picture, (3, R)."""
        textures, shadows = self._textures, None
        if self._casters is not None and scene.casters is not None:
            shadows = ShadowRays(self._casters.shapes, scene.casters, in_tile)
        of_surface = textures if self._with_textures else None
        shaded = partial(self._shaded, rays, in_tile, scene.look, of_surface)
        picture: Vector = (jnp.zeros_like(rays.x),) * 3
        reflected = self._over(
            picture, self._mirrored, hits[1], scene.mirrored,
            partial(shaded, scene.eye, behind=turned_into(scene.camera[5::3], scene.eye)),
        )  # fmt: skip
        if self._textures.sky >= 0:
            free = hits[0][0].shape < 0
            picture = if_any(free, self._sky, picture, rays, scene.camera, scene.hazy)
        picture = self._over(
            picture, self._layers, hits[0], scene.rows, partial(shaded, scene.camera),
            shadows, reflected,
        )  # fmt: skip
        return jnp.stack([jnp.minimum(part, 1.0) for part in picture])

    def _over(
        self, picture: Vector, layers: list[Tracer], hits: list[Hits], rows: list[Array],
        shaded: Callable[..., tuple[Vector, Array]], shadows: ShadowRays | None = None,
        reflected: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """Return layers over a picture, what is opaque first, and with what the mirror shows."""
        nearest = jnp.full_like(picture[0], jnp.inf)
        for tracer, layer, own in zip(layers, hits, rows):
            is_opaque = tracer.opacity is Opacity.opaque
            seen = layer.depth < nearest

            def over(
                picture: Vector, own: Array, layer: Hits, shadows: ShadowRays | None,
                tracer: Tracer = tracer, seen: Array = seen, is_opaque: bool = is_opaque,
            ) -> Vector:  # fmt: skip
                colors, opacity = shaded(tracer, own, layer, shadows)
                share = jnp.where(seen, 1.0 if is_opaque else opacity, 0.0)
                return apart(_over, picture, colors, share)

            # Only what is opaque receives shadows.
            over = partial(over, shadows=shadows if is_opaque else None)
            picture = if_any(seen, over, picture, picture, own, layer)
            if is_opaque and self._mirrored and reflected is not None:
                picture = _sum(picture, reflected)
            nearest = layer.depth
        return picture

    def _shaded(
        self, of_lens: Directions, in_tile: bool, look: Appearance, textures: Textures | None,
        camera: Array, tracer: Tracer, own: Array, layer: Hits, shadows: ShadowRays | None,
        behind: Array | None = None,
    ) -> tuple[Vector, Array]:  # fmt: skip
        """Return colors and opacity of what a layer shows."""
        taken = rows_of(own, jnp.maximum(layer.shape, 0), in_tile)
        rays, surface = tracer.surface(taken, of_lens, layer)
        finish = finish_of(taken[SURFACE_ROWS:_FINISH_END])
        if tracer.shapes.corners is not None:
            surface = apart(smoothed, surface, taken, taken[_FINISH_END:])
        if behind is not None and self._mirror is not None:
            finish = dimmed(finish, self._mirror.reflectance)
        colors = shade(
            surface, rays, camera, look, finish, textures, shadows, self._casting, behind
        )
        # MuJoCo draws what is not opaque twice.
        return colors, finish.color[3] * (2.0 - finish.color[3])

    def _sky(self, rays: Directions, camera: Array, plane: Array | None) -> Vector:
        axes, none = camera[3:].reshape(3, 3), jnp.zeros_like(rays.x)
        across = _turned(axes, (rays.x, rays.y, none))
        ahead = _turned(axes, (none, none, none + rays.ahead))
        if self._layers[0].tiles.orthographic:
            start, step = across, ahead
        else:
            start, step = (none,) * 3, _sum(across, ahead)
        sky = self._textures.of_sky(*step)
        if self._haze is None or plane is None:
            return sky
        return self._haze.over(sky, plane, camera[:3], start, step)


# Compiled once for all painters of the same structure, also if they are called without `jax.jit`.
_paint = jax.jit(Painter._paint)


def develop(chip: Chip, colors: Array, keys: Array | None) -> Array:
    """Return colors as a chip reads them.

    Args:
        chip: That of the camera.
        colors: From 0 to 1, (N, height, width, 3).
        keys: Random keys of the pictures, (N,); only needed for noise.
    """
    if chip.is_noisy:
        normal = jax.vmap(lambda key: jax.random.normal(key, colors.shape[1:]))(keys)
        electrons = chip.full_well * colors
        electrons += jnp.sqrt(electrons + chip.read_noise**2) * normal
        colors = electrons / chip.full_well
    if chip.is_noisy or chip.gain != 1.0:
        colors = jnp.clip(chip.gain * colors, 0.0, 1.0)
    return colors if chip.gamma == 1.0 else colors ** (1.0 / chip.gamma)


def _over(below: Vector, above: Vector, share: Array) -> Vector:
    return tuple(a * share + b * (1 - share) for a, b in zip(above, below))


def _turned(axes: Array, vector: Vector) -> Vector:
    return tuple(sum(a * b for a, b in zip(row, vector)) for row in axes)


def _sum(a: Vector, b: Vector) -> Vector:
    return tuple(first + second for first, second in zip(a, b))
