"""The ground below drones: the floor, or the top of an obstacle. For arrays of JAX or NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from crazyflow_ros.dynamics.components import (
    Matrix3,
    Vec3,
    rotation_matrix,
    split,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.obstacles import Obstacles, Shape
from crazyflow_ros.elementwise import absolute, maximum, sqrt, where, zeros_like
from crazyflow_ros.xla.kernels import apart

if TYPE_CHECKING:
    from jax import Array

    from crazyflow_ros.dynamics.rigid_body import RigidBody

_FAR = 1e9  # m
_FLAT = 1e-12  # of squares of directions, which are unit vectors

_Span = tuple["Array", "Array"]
"""Distances along a ray at which it enters and leaves a shape [m], in this order if it hits."""


def ground_below(pos: Vec3, params: RigidBody) -> Array | None:
    """Return the height of what is below drones [m]; None if that is the floor everywhere.

    Args:
        pos: Components of positions in the world [m], arrays (..., N, M).
        params: Parameters of the drones, with floor and obstacles.
    """
    obstacles = params.obstacles
    if obstacles is None or obstacles.n_slots == 0:
        return None
    floor = 0.0 if params.floor is None else params.floor[..., 0]

    def higher(so_far: Array, each: Obstacles) -> tuple[Array, None]:
        size, place = vector(each.size), vector(each.pos)
        x, y = pos[0] - place[0], pos[1] - place[1]
        reach = size[0] + size[1] + size[2]  # of any shape around its centre, at least
        over = (x * x + y * y < reach * reach) | (each.shape == Shape.plane)

        def found(so_far: Array, each: Obstacles) -> Array:
            axes = rotation_matrix(split(each.quat))  # type: ignore[arg-type]
            solid = each.shape, vector(each.size), vector(each.pos), axes
            return maximum(so_far, height_below(*solid, pos))

        is_over = jnp.any(over & (each.shape != Shape.none))
        return jax.lax.cond(is_over, found, lambda so_far, _: so_far, so_far, each), None

    highest, _ = jax.lax.scan(higher, zeros_like(pos[2]) + floor, obstacles.slots_first)
    return highest


def even_ground(params: RigidBody) -> Array | float | None:
    """Return the height of the floor [m] if it is all that may be below; None otherwise."""
    obstacles = params.obstacles
    if params.ground is not None or not (obstacles is None or obstacles.n_slots == 0):
        return None
    return 0.0 if params.floor is None else params.floor[..., 0]


def ground_of_rotors(points: Vec3, params: RigidBody) -> Array:
    """Return the heights of what is below rotors [m], (n, N, M), where `even_ground` is None.

    Args:
        points: Positions of the rotors in the world [m], arrays (n, N, M).
        params: Parameters of the drones, with floor and obstacles, or the ground.
    """
    if params.ground is not None:
        return jnp.moveaxis(params.ground, -1, 0)
    found = ground_below(points, params)
    assert found is not None
    return found


def height_below(shape: Array, size: Vec3, pos: Vec3, axes: Matrix3, point: Vec3) -> Array:
    """Return the height at which vertical rays from points downwards enter shapes [m].

    Args:
        shape: A `Shape`.
        size: See `Shape`.
        pos: Centre of the shape, m.
        axes: Rotation from the axes of the shape to the world.
        point: m.

    Returns:
        The height; that of the point if it is inside, and -1e9 if nothing is below it.
    """
    o, d = apart(_in_shape, pos, axes, point)
    half = where(shape == Shape.box, size[2], where(shape == Shape.sphere, 0.0, size[1]))
    spans = apart(_spans, o, d, size, half)
    return apart(_height, shape, point[2], spans)


def distance_along(
    shape: Array, size: Vec3, pos: Vec3, axes: Matrix3, origin: Vec3, direction: Vec3
) -> Array:
    """Return the distances along rays at which they enter shapes [m].

    Args:
        shape: A `Shape`.
        size: See `Shape`.
        pos: Centre of the shape, m.
        axes: Rotation from the axes of the shape to the world.
        origin: Where the rays start, m.
        direction: Unit vectors; they may have more leading axes than the origin.

    Returns:
        The distance; 0 where a ray starts inside, and 1e9 where it misses.
    """
    to_shape = transpose(axes)
    o, d = transform(to_shape, subtract(origin, pos)), transform(to_shape, direction)
    half = where(shape == Shape.box, size[2], where(shape == Shape.sphere, 0.0, size[1]))
    spans = apart(_spans, o, d, size, half)
    return -apart(_height, shape, zeros_like(d[0]), spans)


def _in_shape(pos: Vec3, axes: Matrix3, point: Vec3) -> tuple[Vec3, Vec3]:
    """Return origins and directions of rays in the axes of a shape."""
    origin = transform(transpose(axes), subtract(point, pos))
    still = zeros_like(origin[0])
    return origin, (still - axes[2][0], still - axes[2][1], still - axes[2][2])


def _spans(o: Vec3, d: Vec3, size: Vec3, half: Array) -> dict[str, _Span]:
    """Return where rays are in parts of shapes; see `_height`."""
    return {
        "along": _slab(o[2], d[2], half),
        "sides": _both(_slab(o[0], d[0], size[0]), _slab(o[1], d[1], size[1])),
        "tube": _round(o[:2], d[:2], size[0]),
        "top": _round((o[0], o[1], o[2] - half), d, size[0]),
        "bottom": _round((o[0], o[1], o[2] + half), d, size[0]),
        "under": _under(o[2], d[2]),
    }


def _height(shape: Array, height: Array, parts: Mapping[str, _Span]) -> Array:
    """Return the height at which rays from a height enter a shape, of the parts of all shapes."""
    tube, span = _both(parts["tube"], parts["along"]), _both(parts["sides"], parts["along"])
    for kind, other in (
        (Shape.sphere, parts["top"]),
        (Shape.capsule, _either(_either(parts["top"], parts["bottom"]), tube)),
        (Shape.cylinder, tube),
        (Shape.plane, parts["under"]),
    ):
        span = where(shape == kind, other[0], span[0]), where(shape == kind, other[1], span[1])
    enters, leaves = span
    is_hit = (enters <= leaves) & (leaves >= 0) & (shape != Shape.none)
    return where(is_hit, height - maximum(enters, 0.0), -_FAR)


def _slab(o: Array, d: Array, half: Array) -> _Span:
    """Return where a ray is within `half` of zero, along one axis."""
    runs = absolute(d) * absolute(d) > _FLAT
    per = 1 / where(runs, d, 1.0)
    middle, reach = -o * per, absolute(half * per)
    inside = absolute(o) <= half
    return (
        where(runs, middle - reach, where(inside, -_FAR, _FAR)),
        where(runs, middle + reach, where(inside, _FAR, -_FAR)),
    )


def _under(o: Array, d: Array) -> _Span:
    """Return where a ray is below zero, along one axis."""
    there = -o / where(absolute(d) * absolute(d) > _FLAT, d, -_FLAT)
    return where(d < 0, there, -_FAR), where(d < 0, _FAR, there)


def _round(o: tuple[Array, ...], d: tuple[Array, ...], radius: Array) -> _Span:
    """Return where a ray is within a radius of the origin, in two or three dimensions."""
    square = sum((x * x for x in d), start=zeros_like(o[0]))
    along = sum((x * y for x, y in zip(o, d)), start=zeros_like(o[0]))
    outside = sum((x * x for x in o), start=zeros_like(o[0])) - radius * radius
    runs = square > _FLAT
    safe = where(runs, square, 1.0)
    under = along * along - safe * outside
    root = sqrt(where(under > 0, under, 1.0)) / safe
    hits, middle, inside = runs & (under > 0), -along / safe, ~runs & (outside <= 0)
    return (
        where(hits, middle - root, where(inside, -_FAR, _FAR)),
        where(hits, middle + root, where(inside, _FAR, -_FAR)),
    )


def _both(one: _Span, other: _Span) -> _Span:
    """Return where a ray is inside two shapes."""
    return maximum(one[0], other[0]), -maximum(-one[1], -other[1])


def _either(one: _Span, other: _Span) -> _Span:
    """Return where a ray is inside the convex union of two shapes."""
    misses = other[0] > other[1]
    first, last = where(misses, _FAR, other[0]), where(misses, -_FAR, other[1])
    return -maximum(-one[0], -first), maximum(one[1], last)
