"""What the decks on a drone's underside look at: the nearest point in a cone, and the middle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import cos, tan
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones.deck_optics import LEAST_LIGHT, TARGET_DEPTH, DeckSurface, cone, reach
from crazyflow_ros.drones.instruments import VL53L1X_FIELD_OF_VIEW, VL53L1X_MAX_RANGE
from crazyflow_ros.dynamics.components import (
    Matrix3,
    Vec3,
    Vec4,
    add,
    combined,
    dot,
    rotation_matrix,
    scale,
    split,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.ground import distance_along
from crazyflow_ros.dynamics.obstacles import Obstacles, Shape, signed_distance
from crazyflow_ros.estimation.kalman import above, range_of_height

FAR = 1e6
"""Distance where nothing is seen [m]."""
UPRIGHT = 0.1
"""Minimum cosine of the tilt at which the floor is in view."""

_HALF = VL53L1X_FIELD_OF_VIEW / 2
_RAYS = cone((0.0, 0.0, -1.0))  # in axes of the body


class Below(NamedTuple):
    """What the deck sees, one number for each drone."""

    nearest: Array
    """Distance to the nearest point that a range sensor sees [m]; `FAR` if there is none."""
    middle: Array
    """Distance along the axis [m]; `FAR` if there is nothing."""
    texture: Array
    """Texture at the end of the axis, see `DeckSurface`."""


def floor_below(pos: Vec3, rot: Matrix3, floor: float, surface: DeckSurface) -> Below:
    """Return what drones see over a floor alone.

    Args:
        pos: World frame, m.
        rot: Attitude.
        floor: Height of the floor, m.
        surface: Of the floor.
    """
    height, upright = above(pos[2], floor), jnp.maximum(rot[2][2], UPRIGHT)
    slope, faces = range_of_height(upright, _HALF), rot[2][2] > UPRIGHT
    nearest = height * slope
    is_seen = faces & (nearest < reach(surface.reflectance, 1 / slope, jnp))
    texture = jnp.full_like(height, surface.texture)
    return Below(jnp.where(is_seen, nearest, FAR), jnp.where(faces, height / upright, FAR), texture)


def seen_below(
    pos: Vec3,
    quat: Vec4,
    floor: float,
    surface: DeckSurface,
    obstacles: Obstacles | None,
    measures: Array | bool = True,
) -> Below:
    """Return what drones see over a floor and obstacles; see `floor_below`.

    Args:
        pos: World frame, m.
        quat: Attitude, xyzw.
        floor: Height of the floor, m.
        surface: Of the floor.
        obstacles: Obstacles, or None.
        measures: Where a range sensor measures; if nowhere, `nearest` is only that on the axis.
    """
    rot = rotation_matrix(quat)
    if obstacles is None or obstacles.n_slots == 0:
        return floor_below(pos, rot, floor, surface)
    around = obstacles.slots_first

    def cast(bundle: np.ndarray) -> Below:
        x, y, z = (ray.reshape(-1, *[1] * pos[0].ndim).astype(pos[0].dtype) for ray in bundle.T)
        return _nearest(pos, rot, transform(rot, (x, y, z)), floor, surface, around)

    return jax.lax.cond(jnp.any(measures), lambda: cast(_RAYS), lambda: cast(_RAYS[:1]))


def _nearest(
    pos: Vec3, rot: Matrix3, rays: Vec3, floor: float, surface: DeckSurface, around: Obstacles
) -> Below:
    """Return what rays (R, N, M) see, of which the first is the axis; slots come first."""
    drop = jnp.maximum(-rays[2], 1e-6)
    to_floor = jnp.where(rays[2] < 0, above(pos[2], floor) / drop, FAR)
    seen = (
        to_floor,
        reach(surface.reflectance, jnp.maximum(-rays[2], 0.0), jnp),
        jnp.full_like(pos[2], surface.texture),
    )
    axis = (-rot[0][2], -rot[1][2], -rot[2][2])

    def nearer(seen: _Seen, each: Obstacles) -> tuple[_Seen, None]:
        hit: Callable[[_Seen, Obstacles], _Seen] = partial(_with, pos=pos, rays=rays)
        in_view = jnp.any(_in_view(pos, axis, each))
        return jax.lax.cond(in_view, hit, lambda seen, _: seen, seen, each), None

    (distance, farthest, texture), _ = jax.lax.scan(nearer, seen, around)
    nearest = _nearest_target(jnp.where(distance <= farthest, distance, FAR))
    return Below(nearest, distance[0], texture)


def _nearest_target(distances: Array) -> Array:
    """Return `deck_optics.nearest_target`, and `FAR` where nothing is seen."""
    light = 1 / jnp.maximum(distances, 1e-3) ** 2
    least = LEAST_LIGHT * combined(jnp.add, light, 0)

    def is_noticed(near: Array) -> Array:
        is_with = (distances >= near) & (distances <= TARGET_DEPTH * near)
        returned = combined(jnp.add, jnp.where(is_with, light, 0.0), 0)
        return (returned >= least) | (near >= FAR)

    def farther(near: Array) -> Array:
        following = combined(jnp.minimum, jnp.where(distances > near, distances, FAR), 0)
        return jnp.where(is_noticed(near), near, following)

    first = combined(jnp.minimum, distances, 0)
    return jax.lax.while_loop(lambda near: ~jnp.all(is_noticed(near)), farther, first)


_Seen = tuple[Array, Array, Array]
"""Distance along each ray, how far it is seen there [m], and the texture at the end of the axis."""


def _with(seen: _Seen, each: Obstacles, *, pos: Vec3, rays: Vec3) -> _Seen:
    """Return what drones see if there is another obstacle."""
    axes = rotation_matrix(split(each.quat))  # type: ignore[arg-type]
    solid = each.shape, vector(each.size), vector(each.pos), axes
    entry = distance_along(*solid, pos, rays)
    distance, farthest, texture = seen
    hit = entry < distance
    reflectance, own = (1.0, 1.0) if each.surface is None else split(each.surface)
    return (
        jnp.where(hit, entry, distance),
        jnp.where(hit, reach(reflectance, _cosine(each, axes, pos, rays, entry), jnp), farthest),
        jnp.where(hit[0], own, texture),
    )


def _cosine(each: Obstacles, axes: Matrix3, pos: Vec3, rays: Vec3, entry: Array) -> Array:
    """Return the cosines of the incidence of rays where they enter an obstacle."""
    to_shape = transpose(axes)
    along = transform(to_shape, rays)
    origin = transform(to_shape, subtract(pos, vector(each.pos)))
    _, normal = signed_distance(each.shape, vector(each.size), add(origin, scale(along, entry)))
    return jnp.abs(dot(normal, along))


def _in_view(pos: Vec3, axis: Vec3, each: Obstacles) -> Array:
    """Return which drones may see an obstacle: its bounding sphere meets the cone."""
    x, y, z = vector(each.size)
    long = jnp.where(each.shape == Shape.sphere, 0.0, y)
    radius = jnp.where(each.shape == Shape.box, jnp.sqrt(x * x + y * y + z * z), x + long)
    way = subtract(vector(each.pos), pos)
    along = dot(way, axis)
    across = jnp.sqrt(jnp.maximum(dot(way, way) - along * along, 0.0))
    is_near = (along > -radius) & (along < VL53L1X_MAX_RANGE + radius)
    meets = is_near & (across <= jnp.maximum(along, 0.0) * tan(_HALF) + radius / cos(_HALF))
    return (meets | (each.shape == Shape.plane)) & (each.shape != Shape.none)
