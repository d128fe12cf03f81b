"""Colours, by the rules of OpenGL's fixed pipeline, with which MuJoCo draws.

A surface is lit at each pixel; MuJoCo lights the corners of its facets, and blends them. Everything
is computed by component, for the R pixels of one picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.look import Appearance, Lights
from crazyflow_ros.raytracing.pixels import Vector, if_any
from crazyflow_ros.raytracing.shadow_rays import ShadowRays
from crazyflow_ros.raytracing.surface import PixelRays, Surface
from crazyflow_ros.raytracing.textures import Textures, on_cube_of
from crazyflow_ros.raytracing.unit_shapes import UnitShape
from crazyflow_ros.xla.kernels import apart

FINISH_ROWS = 14
"""Numbers of a geom that `finish_of` needs."""


class Finish(NamedTuple):
    """What the geoms that are seen are made of, each (R,)."""

    color: tuple[Array, ...]
    """Red, green, blue, opacity."""
    emission: Array
    specular: Array
    shininess: Array
    texture: Array
    """Number of the texture, -1 for none."""
    is_cube: Array
    """Whether the texture is that of a cube."""
    pattern: tuple[Array, ...]
    """See `TexturedGeoms.pattern`."""


def finish_rows(look: Appearance, cubes: Array) -> Array:
    """Return what `finish_of` needs to know of all geoms, (ngeom, FINISH_ROWS).

    Args:
        look: Of one world, without its first axis.
        cubes: See `Textures.cubes`.
    """
    numbers = (part.astype(look.color.dtype) for part in (look.texture, cubes[look.texture]))
    single = look.emission, look.specular, look.shininess, *numbers
    parts = [look.color, *(part[:, None] for part in single), look.pattern]
    return jnp.concatenate(parts, axis=1)


def finish_of(rows: Array) -> Finish:
    """Return what geoms are made of.

    Args:
        rows: Those of `finish_rows` that are seen, (FINISH_ROWS, R).
    """
    numbers = tuple(rows)
    emission, specular, shininess, texture, cube = numbers[4:9]
    single = (emission, specular, shininess, texture.astype(jnp.int32), cube > 0.0)
    return Finish(numbers[:4], *single, numbers[9:])


def dimmed(finish: Finish, share: float) -> Finish:
    """Return what geoms are made of, seen in a mirror that shows a share of their colors."""
    *color, opacity = finish.color
    return finish._replace(color=(*(part * share for part in color), opacity))


def shade(
    surface: Surface, rays: PixelRays, camera: Array, look: Appearance, finish: Finish,
    textures: Textures | None, shadows: ShadowRays | None = None, casting: Sequence[int] = (),
    behind: Array | None = None,
) -> Vector:  # fmt: skip
    """Return red, green and blue from 0 to 1, each (R,).

    Args:
        surface: What is seen.
        rays: The rays.
        camera: Position and axes of the camera in the world, (12,).
        look: Of the world, without its first axis.
        finish: Of what is seen.
        textures: Of the scene, None to leave them out.
        shadows: Of the picture, None to leave them out.
        casting: Numbers of the lights that cast shadows.
        behind: The z axis of the camera that has the headlight, in the axes of this one, (3,); None
            if it is this one.
    """
    behind = jnp.array([0.0, 0.0, 1.0], camera.dtype) if behind is None else behind
    parts = _lit(surface.normal, rays, camera, look, finish, shadows, casting, behind)
    if textures is None or not textures.has_any:
        return _in_range(parts)

    def sampled(surface: Surface, rays: PixelRays, finish: Finish) -> Vector:
        place = apart(partial(_coordinates, textures), surface, finish)
        covered = apart(_covered, surface, rays, finish)
        return textures.sample(finish.texture, *place, covered)

    white: Vector = (jnp.ones_like(rays.depth),) * 3
    texel = if_any(finish.texture >= 0, sampled, white, surface, rays, finish)
    return _in_range([part * color for part, color in zip(parts, texel)])


def _in_range(parts: list[Array]) -> Vector:
    return tuple(jnp.clip(part, 0.0, 1.0) for part in parts)


def _lit(
    normal: Vector, rays: PixelRays, camera: Array, look: Appearance, finish: Finish,
    shadows: ShadowRays | None, casting: Sequence[int], behind: Array,
) -> list[Array]:  # fmt: skip
    """Return red, green and blue without textures.

    MuJoCo draws a surface once with all lights that cast no shadows, and once more for each other
    light, where it arrives; the greatest value of each of these drawings is 1.
    """
    color, none = finish.color[:3], jnp.zeros_like(finish.emission)
    headlight = none + behind[0], none + behind[1], none + behind[2]
    faces = apart(_reflected, normal, headlight, rays, finish.shininess)
    total = [finish.emission * part for part in color]
    total = _added(total, look.headlight, (none + 1.0, *faces), finish)
    more = [none] * 3
    for k in range(len(look.lights.pos)):
        one = Lights(*(part[k] for part in look.lights))
        power, distance, to_light = apart(_beam, one, camera, rays)
        faces = apart(_reflected, normal, to_light, rays, finish.shininess)
        light = jnp.stack([one.ambient, one.diffuse, one.specular])
        if shadows is None or k not in casting:
            total = _added(total, light, (power, *faces), finish)
            continue
        arrives = (power > 0.0) & (faces[0] > 0.0)
        arrives &= ~shadows.blocked(arrives, rays.ends(), to_light, distance)
        new = _added([none] * 3, light, (jnp.where(arrives, power, 0.0), *faces), finish)
        more = [part + jnp.minimum(add, 1.0) for part, add in zip(more, new)]
    return [jnp.minimum(part, 1.0) + add for part, add in zip(total, more)]


def _beam(light: Lights, camera: Array, rays: PixelRays) -> tuple[Array, Array, Vector]:
    """Return how much of a light reaches the ends of rays, its distance [m], and the way to it."""
    where, beam = (turned_into(part, camera) for part in (light.pos - camera[:3], light.dir))
    away = [a - b for a, b in zip(where, rays.ends())]
    distance = jnp.sqrt(sum(part * part for part in away))
    ahead = -sum(a * b for a, b in zip(away, beam))
    parallel = light.directional > 0.0
    to_light = [jnp.where(parallel, -b, part / distance) for part, b in zip(away, beam)]
    inside = jnp.where(parallel, 1.0, ahead / distance)
    near, linear, square = light.attenuation
    power = jnp.exp(light.exponent * jnp.log(jnp.maximum(inside, 1e-6)))
    power = power / (near + linear * distance + square * distance * distance)
    power = jnp.where(inside >= jnp.cos(light.cutoff), power, 0.0)
    return power, jnp.where(parallel, ahead, distance), tuple(to_light)


def _added(
    total: list[Array], light: Array, shares: tuple[Array, Array, Array], finish: Finish
) -> list[Array]:
    """Add a light.

    Args:
        total: Red, green and blue of others.
        light: Ambient, diffuse and specular, (3, 3).
        shares: How much of it arrives, and how much of this is diffuse and specular, each (R,).
        finish: Of the surface.
    """
    (ambient, diffuse, specular), (power, plain, gloss) = light, shares
    return [
        part
        + power * finish.color[i] * (ambient[i] + diffuse[i] * plain)
        + power * finish.specular * specular[i] * gloss
        for i, part in enumerate(total)
    ]


def _reflected(
    normal: Vector, to_light: Vector, rays: PixelRays, exponent: Array
) -> tuple[Array, Array]:
    """Return how much diffuse and specular light a surface reflects."""
    viewer = _unit(*(-part for part in rays.ends()))
    diffuse = jnp.maximum(sum(a * b for a, b in zip(normal, to_light)), 0.0)
    between = _unit(*(a + b for a, b in zip(to_light, viewer)))
    along = jnp.maximum(sum(a * b for a, b in zip(normal, between)), 1e-6)
    return diffuse, jnp.where(diffuse > 0.0, jnp.exp(exponent * jnp.log(along)), 0.0)


def _covered(surface: Surface, rays: PixelRays, finish: Finish) -> Array:
    """Return how much of the texture a pixel covers, in its longer direction."""
    return finish.pattern[4] * rays.depth * _pitch(rays) / _slant(surface, rays)


def _coordinates(textures: Textures, surface: Surface, finish: Finish) -> tuple[Array, Array]:
    """Return where in the texture a point is, to the right and downwards."""
    x, y, z = surface.local
    a, b, _ = surface.facing
    u, v = (x + 1) / 2, (1 - y) / 2  # of planes, and of boxes above and below
    box = surface.kind == UnitShape.box.value
    on_x = box & (a != 0.0)
    u = jnp.where(on_x, (y + 1) / 2, u)
    v = jnp.where(on_x | (box & (b != 0.0)), (1 - z) / 2, v)
    if textures.has_round:
        u, v = _around(surface, u, v)
        triangle = surface.kind == UnitShape.triangle.value
        u, v = (jnp.where(triangle, a, b) for a, b in zip(surface.place, (u, v)))
    right, down, start, top, _ = finish.pattern
    u, v = right * u + start, down * v + top
    if textures.has_cubes:
        on_cube = on_cube_of(*_direction(surface, finish))
        u, v = (jnp.where(finish.is_cube, a, b) for a, b in zip(on_cube, (u, v)))
    return u, v


def _direction(surface: Surface, finish: Finish) -> Vector:
    """Return in which direction the texture of a cube is seen from the middle of a geom."""
    x, y, z = surface.place
    # MuJoCo draws a capsule as a cylinder and two halves of a ball, each of unit size.
    beyond = surface.facing[2]
    on_capsule = jnp.where(beyond == 0.0, z / surface.length, jnp.sign(z) + beyond)
    z = jnp.where(surface.kind == UnitShape.capsule.value, on_capsule, z)
    return tuple(part * factor for part, factor in zip((x, y, z), finish.pattern))


def _around(surface: Surface, u: Array, v: Array) -> tuple[Array, Array]:
    """Return `u` and `v`, but of round shapes how far around and down a point is."""
    (x, y, z), (_, _, c) = surface.local, surface.facing
    ball = surface.kind == UnitShape.ball.value
    cylinder = surface.kind == UnitShape.cylinder.value
    capsule = surface.kind == UnitShape.capsule.value
    azimuth = jnp.arctan2(y, x) / (2 * np.pi)
    azimuth = azimuth - jnp.floor(azimuth)
    v = jnp.where(cylinder & (c != 0.0), (y + 1) / 2, v)
    u = jnp.where(ball | capsule | (cylinder & (c == 0.0)), azimuth, u)
    v = jnp.where(cylinder & (c == 0.0), (1 - z) / 2, v)
    v = jnp.where(ball, 0.5 - jnp.arcsin(jnp.clip(z, -1.0, 1.0)) / np.pi, v)
    return u, v


def _pitch(rays: PixelRays) -> Array:
    """Return the distance of pixels at a depth of 1 m [m]."""
    parts = [part for part in rays.of_lens if part is not None]
    if len(parts[0]) < 2:
        return jnp.zeros(())
    return jnp.sqrt(sum((part[1] - part[0]) ** 2 for part in parts))


def _slant(surface: Surface, rays: PixelRays) -> Array:
    """Return the cosine of the angle between ray and normal."""
    (a, b, c), (x, y, z) = _unit(*rays.steps()), surface.normal
    return jnp.maximum(abs(a * x + b * y + c * z), 0.02)


def turned_into(vector: Array, camera: Array) -> Array:
    """Return a vector of the world (3,) in the axes of a camera."""
    return (vector[:, None] * camera[3:].reshape(3, 3)).sum(0)


def _unit(x: Array, y: Array, z: Array) -> Vector:
    inverse = 1.0 / jnp.sqrt(x * x + y * y + z * z + 1e-20)
    return x * inverse, y * inverse, z * inverse
