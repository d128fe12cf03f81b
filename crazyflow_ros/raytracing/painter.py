"""Pictures in colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
from jax import Array, lax

from crazyflow_ros.raytracing.lens import Lens
from crazyflow_ros.raytracing.look import Appearance, look_of
from crazyflow_ros.raytracing.shading import finish_of, shade
from crazyflow_ros.raytracing.shapes import Opacity, has_shapes
from crazyflow_ros.raytracing.surface import Vector
from crazyflow_ros.raytracing.textures import Textures, textures_of
from crazyflow_ros.raytracing.tracer import Frames, Pixels, Tracer
from crazyflow_ros.xla.kernels import apart, one_kernel, separate_kernels, zero

_PART = 2048
"""Pixels that are painted together on a CPU; XLA hands many more to other threads, which a kernel
cannot."""


class Painter:
    """Takes the pictures of a camera in colour, for any number of worlds at once.

    Of surfaces that are not opaque, only the nearest one is seen before what is behind it.

    Args:
        model: The scene.
        lens: The rays of the camera.
        groups: Geom groups (0-5) that are seen.
        textures: Whether surfaces have their textures.

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
    ) -> None:
        self._textures = textures_of(model)
        self._with_textures = textures
        self.look = look_of(model, self._textures)
        self._layers = [
            Tracer(model, lens, groups, opacity)
            for opacity in (Opacity.opaque, Opacity.transparent)
            if has_shapes(model, groups, opacity)
        ]
        self._lens = lens

    def paint(self, geoms: Frames, cameras: Frames, look: Appearance | None = None) -> Array:
        """Return pictures, (N, height, width, 3), from 0 to 1.

        Args:
            geoms: See `Tracer.hits`.
            cameras: See `Tracer.hits`.
            look: Of N worlds, or one row for all; by default that of the scene.
        """
        n = len(cameras.pos)
        look = jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *x.shape[1:])), look or self.look)
        layers = [tracer.pixels(tracer.hits(geoms, cameras)) for tracer in self._layers]
        texels = jnp.asarray(self._textures.texels)
        args = (geoms, cameras, look), layers

        painted = lax.platform_dependent(*args, texels, cpu=self._in_parts, default=self._painted)
        return jnp.moveaxis(painted.reshape(n, 3, *self._lens.size), 1, -1)

    def _in_parts(
        self, scenes: tuple[Frames, Frames, Appearance], layers: list[Pixels], texels: Array
    ) -> Array:
        """Return what `_painted` returns, part by part, so that all arrays stay in the cache."""
        n, n_pixels = layers[0].depth.shape
        n_parts = -(-n_pixels // _PART)

        def cut(x: Array, value: float) -> Array:
            padding = [(0, 0)] * (x.ndim - 1) + [(0, n_parts * _PART - n_pixels)]
            return jnp.pad(x, padding, constant_values=value).reshape(*x.shape[:-1], n_parts, -1)

        parts = [
            Pixels(*(cut(x, value) for x, value in zip(layer, (0.0, 0.0, jnp.inf, -1))))
            for layer in layers
        ]
        painted = one_kernel(self._each_part)(scenes, parts, texels)
        return jnp.moveaxis(painted, 1, 2).reshape(n, 3, -1)[:, :, :n_pixels]

    def _each_part(
        self, scenes: tuple[Frames, Frames, Appearance], parts: list[Pixels], texels: Array
    ) -> Array:
        """Return pictures (N, parts, 3, pixels)."""
        none = zero((scenes, parts, texels))
        place = [(layer.x, layer.y) for layer in parts]
        found = [(layer.depth, layer.shape) for layer in parts]

        def picture(args: Any) -> Array:
            scene, found = jax.tree.map(lambda x: x[None], args[0]), args[1]

            def part(args: Any) -> Array:
                layers = [
                    Pixels(x, y, depth[None], shape[None])
                    for (x, y), (depth, shape) in zip(*args, strict=True)
                ]
                return self._painted(scene, layers, texels)[0]

            return lax.map(part, (place, found))

        with separate_kernels(none > -1):
            return lax.map(picture, (scenes, found))

    def _painted(
        self, scenes: tuple[Frames, Frames, Appearance], layers: list[Pixels], texels: Array
    ) -> Array:
        """Return R pixels of N pictures, (N, 3, R).

        Args:
            scenes: Geoms, cameras and looks.
            layers: What is seen, of what is opaque first.
            texels: Those of the textures.
        """
        geoms, cameras, look = scenes
        textures = self._textures.with_texels(texels)
        picture = self._sky(layers[0], cameras, textures)
        before = None
        for tracer, layer in zip(self._layers, layers):
            rays, surface = tracer.surface(layer, geoms, cameras)
            geom = jnp.asarray(tracer.shapes.geom)[jnp.maximum(layer.shape, 0)]
            finish = finish_of(look, geom)
            of_surface = textures if self._with_textures else None
            camera = cameras.pos, cameras.axes
            colors = shade(surface, rays, camera, look, finish, of_surface)
            seen = layer.shape >= 0 if before is None else layer.depth < before
            # MuJoCo draws what is not opaque twice.
            opacity = finish.color[3] * (2.0 - finish.color[3])
            share = jnp.where(seen, 1.0 if before is None else opacity, 0.0)
            picture = apart(_over, picture, colors, share)
            before = layer.depth
        return jnp.stack(picture, axis=1)

    def _sky(self, pixels: Pixels, cameras: Frames, textures: Textures) -> Vector:
        x, y = pixels.x, pixels.y
        if self._lens.orthographic:
            x, y = jnp.zeros_like(x), jnp.zeros_like(y)
        axes = cameras.axes[..., None]
        a, b, c = (axes[:, i, 0] * x + axes[:, i, 1] * y - axes[:, i, 2] for i in range(3))
        red, green, blue = textures.of_sky(a, b, c)
        return red, green, blue


def _over(below: Vector, above: Vector, share: Array) -> Vector:
    red, green, blue = (a * share + b * (1 - share) for a, b in zip(above, below))
    return red, green, blue
