"""Pictures in colour."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.lens import Lens
from crazyflow_ros.raytracing.look import Appearance, drawn_lights, look_of
from crazyflow_ros.raytracing.pixels import if_any, of_pixels, rows_of
from crazyflow_ros.raytracing.shading import FINISH_ROWS, finish_of, finish_rows, shade
from crazyflow_ros.raytracing.shadows import Shadows
from crazyflow_ros.raytracing.shapes import Opacity, has_shapes
from crazyflow_ros.raytracing.surface import SURFACE_ROWS, Vector, smoothed
from crazyflow_ros.raytracing.textures import Textures, textures_of
from crazyflow_ros.raytracing.tracer import Frames, Hits, Tracer, flat_frames
from crazyflow_ros.xla.kernels import apart

_Constants: TypeAlias = tuple[Array, list[Any], Any]
"""Texels; of each layer, `Tracer.constants` and `UnitShapes.corners`; of what casts shadows,
`Tracer.constants`."""
_FINISH_END = SURFACE_ROWS + FINISH_ROWS
_Prepared: TypeAlias = tuple[Array, Appearance, list[Array], Any]
"""Camera, look, and the numbers of the shapes of each layer and of what casts shadows."""


class Painter:
    """Takes the pictures of a camera in colour, for any number of worlds at once.

    Of surfaces that are not opaque, only the nearest one is seen before what is behind it.

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
        self._textures = textures_of(model)
        self._with_textures = textures
        self.look = look_of(model, self._textures)
        self._layers = [
            Tracer(model, lens, groups, opacity)
            for opacity in (Opacity.opaque, Opacity.transparent)
            if has_shapes(model, groups, opacity)
        ]
        self._casting = np.flatnonzero(model.light_castshadow[drawn_lights(model)]).tolist()
        self._casters = Tracer(model, lens, groups) if shadows and self._casting else None

    def paint(self, geoms: Frames, cameras: Frames, look: Appearance | None = None) -> Array:
        """Return pictures, (N, height, width, 3), from 0 to 1.

        Args:
            geoms: See `Tracer.hits`.
            cameras: See `Tracer.hits`.
            look: Of N worlds, or one row for all; by default that of the scene.
        """
        n = len(cameras.pos)
        look = jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *x.shape[1:])), look or self.look)
        hits = [tracer.hits(geoms, cameras) for tracer in self._layers]
        scenes = *flat_frames(geoms, cameras), look
        constants = (
            jnp.asarray(self._textures.texels),
            [(tracer.constants(), tracer.shapes.corners) for tracer in self._layers],
            self._casters and self._casters.constants(),
        )
        painted = of_pixels(
            self._layers[0].tiles, self._prepare, self._painted, constants, scenes, hits
        )
        return jnp.moveaxis(painted, 1, -1)

    def _prepare(self, constants: _Constants, scene: tuple[Array, Array, Appearance]) -> _Prepared:
        """Return what the pixels of one picture have in common."""
        (frames, camera, look), (_, of_layers, of_casters) = scene, constants
        finish = apart(finish_rows, look, jnp.asarray(self._textures.cubes))
        rows = []
        for tracer, (own, corners) in zip(self._layers, of_layers):
            parts = [tracer.rows(own, frames, camera), finish[own[1]], corners]
            rows.append(jnp.concatenate([x for x in parts if x is not None], axis=1))
        return camera, look, rows, self._casters and self._casters.rows(of_casters, frames, camera)

    def _painted(
        self, constants: _Constants, data: _Prepared, x: Array, y: Array, layers: list[Hits],
        in_tile: bool,
    ) -> Array:  # fmt: skip
        """Return red, green and blue of R pixels of a picture, (3, R)."""
        camera, look, rows, of_casters = data
        textures = self._textures.with_texels(constants[0])
        picture: Vector = (jnp.zeros_like(x),) * 3
        if self._textures.sky >= 0:
            free = layers[0].shape < 0
            picture = if_any(free, partial(self._sky, textures), picture, x, y, camera)
        shadows = None
        if self._casters is not None:
            shadows = Shadows(self._casters.shapes, constants[2][0], of_casters, in_tile)
        nearest = jnp.full_like(x, jnp.inf)
        for tracer, layer, own in zip(self._layers, layers, rows):
            is_opaque = tracer.opacity is Opacity.opaque
            seen = layer.depth < nearest

            def over(picture: Vector, own: Array, layer: Hits, tracer: Tracer = tracer) -> Vector:
                taken = rows_of(own, jnp.maximum(layer.shape, 0), in_tile)
                rays, surface = tracer.surface(taken, x, y, layer)
                finish = finish_of(taken[SURFACE_ROWS:_FINISH_END])
                if tracer.shapes.corners is not None:
                    surface = apart(smoothed, surface, taken, taken[_FINISH_END:])
                colors = shade(
                    surface, rays, camera, look, finish,
                    textures if self._with_textures else None,
                    shadows if is_opaque else None, self._casting,
                )  # fmt: skip
                # MuJoCo draws what is not opaque twice.
                opacity = finish.color[3] * (2.0 - finish.color[3])
                return apart(_over, picture, colors, jnp.where(seen, 1.0 if is_opaque else opacity, 0.0))

            picture = if_any(seen, over, picture, picture, own, layer)
            nearest = layer.depth
        return jnp.stack(picture)

    def _sky(self, textures: Textures, x: Array, y: Array, camera: Array) -> Vector:
        if self._layers[0].lens.orthographic:
            x, y = jnp.zeros_like(x), jnp.zeros_like(y)
        axes = camera[3:].reshape(3, 3)
        a, b, c = (row[0] * x + row[1] * y - row[2] for row in axes)
        red, green, blue = textures.of_sky(a, b, c)
        return red, green, blue


def _over(below: Vector, above: Vector, share: Array) -> Vector:
    red, green, blue = (a * share + b * (1 - share) for a, b in zip(above, below))
    return red, green, blue
