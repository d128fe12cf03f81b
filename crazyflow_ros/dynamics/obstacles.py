"""Obstacles as data, so that they can move and appear without recompilation."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.drones.deck_optics import ORDINARY, DeckSurface
from crazyflow_ros.dynamics.components import Vec3, dot, rotate_quat, scale, split, stack, vector
from crazyflow_ros.elementwise import absolute, library, maximum, sqrt, where, zeros_like
from crazyflow_ros.xla.struct import Struct


class Shape(IntEnum):
    """Geometric primitives, with MuJoCo's numbers (`mjtGeom`) and sizes."""

    none = -1
    """A free slot, which has no contacts."""
    plane = 0
    """Everything below is solid, regardless of the rendered size; its z axis points out."""
    sphere = 2
    """Size: radius."""
    capsule = 3
    """Size: radius, half length of the cylinder; along z."""
    cylinder = 5
    """Size: radius, half length; along z."""
    box = 6
    """Size: half length of each side."""


class Obstacles(Struct):
    """K obstacles in the world.

    Each array may have leading axes (n_worlds, 1), for worlds with different obstacles.
    """

    shape: Array
    """(K,) int, a `Shape`."""
    size: Array
    """(K, 3) m, see `Shape`."""
    pos: Array
    """(K, 3) centre, world frame, m."""
    quat: Array
    """(K, 4) attitude, xyzw."""
    vel: Array | None = None
    """(K, 3) velocity of the centre, world frame, m/s; None if it is at rest. Contacts take it into
    account, but do not move the obstacle; call `moved` or assign `pos`."""
    ang_vel: Array | None = None
    """(K, 3) angular velocity, world frame, rad/s."""
    surface: Array | None = None
    """(K, 2) reflectance and texture, see `deck_optics.DeckSurface`; None for ordinary ones."""

    @classmethod
    def create(
        cls,
        shape: Sequence[Shape | str],
        size: ArrayLike,
        pos: ArrayLike,
        quat: ArrayLike | None = None,
        *,
        vel: ArrayLike | None = None,
        ang_vel: ArrayLike | None = None,
        surface: ArrayLike | DeckSurface = ORDINARY,
        slots: int = 0,
    ) -> Self:
        """Build obstacles of one or several shapes.

        Args:
            shape: A `Shape` or its name, for each obstacle.
            size: (K, 1 to 3) see `Shape`; numbers that a shape does not use are ignored.
            pos: (K, 3) m.
            quat: (K, 4) xyzw, of any norm except zero; None for upright.
            vel: (K, 3) velocity, m/s; None for obstacles that never move.
            ang_vel: (K, 3) angular velocity, rad/s, world frame; None as for `vel`.
            surface: (2,) or (K, 2) reflectance and texture, see `deck_optics.DeckSurface`.
            slots: Minimum number of slots; unused ones are `Shape.none`.

        Raises:
            ValueError: Unknown shape, wrong length, sizes that are not positive, numbers that are
                not finite, or a zero quaternion; the message names it.
        """
        kinds = np.array([_shape(s) for s in shape], np.int32)
        n, n_slots = len(kinds), max(len(kinds), slots)
        upright = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
        values = {"size": size, "pos": pos, "quat": upright if quat is None else quat}
        moving = vel is not None or ang_vel is not None
        still = np.zeros((n, 3))
        values["vel"] = still if vel is None else vel
        values["ang_vel"] = still if ang_vel is None else ang_vel
        values["surface"] = np.broadcast_to(surface, (n, 2))
        given = {k: np.asarray(v, float).reshape(n, -1 if n else 3) for k, v in values.items()}
        given["size"] = np.pad(given["size"], ((0, 0), (0, max(0, 3 - given["size"].shape[1]))))
        if not n:
            given["quat"], given["surface"] = upright, np.zeros((0, 2))
        lengths = {"size": 3, "pos": 3, "quat": 4, "vel": 3, "ang_vel": 3, "surface": 2}
        for name, k in lengths.items():
            if given[name].shape != (n, k):
                raise ValueError(
                    f"{name} of obstacles must have shape {n, k}, got {given[name].shape}"
                )
            if not np.isfinite(given[name]).all():
                raise ValueError(f"{name} of obstacles must be finite, got {given[name].tolist()}")
        for kind, sides in zip(kinds, given["size"]):
            if (sides[: _N_SIZES.get(kind, 0)] <= 0).any():
                raise ValueError(
                    f"sizes of a {Shape(kind).name} must be positive, got {sides.tolist()}"
                )
        norm = np.linalg.norm(given["quat"], axis=-1, keepdims=True)
        if not norm.all():
            raise ValueError("an obstacle has a zero quaternion")
        given["quat"] = given["quat"] / norm

        def padded(values: np.ndarray, filler: float | tuple[float, ...]) -> Array:
            rest = np.broadcast_to(filler, (n_slots - n, *values.shape[1:]))
            return jnp.asarray(np.concatenate((values, rest)).astype(values.dtype))

        return cls(
            padded(kinds, Shape.none),
            padded(given["size"], 1.0),
            padded(given["pos"], 0.0),
            padded(given["quat"], (0.0, 0.0, 0.0, 1.0)),
            padded(given["vel"], 0.0) if moving else None,
            padded(given["ang_vel"], 0.0) if moving else None,
            padded(given["surface"], ORDINARY),
        )

    @property
    def n_slots(self) -> int:
        """Number of slots, K."""
        return self.shape.shape[-1]

    @property
    def slots_first(self) -> Self:
        """The obstacles with the slots as the first axis of each array."""
        return jax.tree.map_with_path(
            lambda path, x: jnp.moveaxis(x, -FIGURE_NDIM[path[-1].name], 0), self
        )

    def moved(self, seconds: Array | float) -> Self:
        """Return the obstacles after some time at constant velocities."""
        if self.vel is None or self.ang_vel is None:
            return self
        # A rotation in world axes multiplies from the left, so its inverse multiplies the
        # conjugate from the right.
        x, y, z, w = split(self.quat)
        back = rotate_quat((-x, -y, -z, w), scale(vector(self.ang_vel), -seconds))
        turned = stack((-back[0], -back[1], -back[2], back[3]))
        return self.replace(pos=self.pos + self.vel * seconds, quat=turned)


FIGURE_NDIM = {"shape": 1, "size": 2, "pos": 2, "quat": 2, "vel": 2, "ang_vel": 2, "surface": 2}
"""Axes of each array, including that of the slots, without those of worlds."""

_FAR = 1e9  # m; infinity would have no gradient
_N_SIZES = {Shape.sphere: 1, Shape.capsule: 2, Shape.cylinder: 2, Shape.box: 3}


def _shape(shape: Shape | str | int) -> Shape:
    try:
        return Shape[shape] if isinstance(shape, str) else Shape(shape)
    except (KeyError, ValueError):
        raise ValueError(unknown("shape", shape, (each.name for each in Shape))) from None


def signed_distance(shape: Array, size: Vec3, point: Vec3) -> tuple[Array, Vec3]:
    """Return the distance of points from the surface of a shape, negative inside.

    For arrays of JAX or NumPy.

    Every shape is a box inflated by a radius, which is zero for boxes and cylinders; the box of a
    cylinder has the axes radius and height.

    Args:
        shape: A `Shape`.
        size: See `Shape`.
        point: In the axes of the shape, m.

    Returns:
        Distance [m], 1e9 from `Shape.none`, and the outward unit normal there.
    """
    x, y, z = point
    is_box, is_cylinder, is_plane = (shape == s for s in (Shape.box, Shape.cylinder, Shape.plane))
    is_round = (shape == Shape.sphere) | (shape == Shape.capsule)
    around, (ux, uy, _) = _length((x, y, zeros_like(x)))
    half_x = where(is_round, 0.0, size[0])
    half_y = where(is_box, size[1], 0.0)
    half_z = where(is_box, size[2], where(shape == Shape.sphere, 0.0, size[1]))
    far = library(x).full_like(x, -_FAR)
    excess = (
        where(is_plane, far, where(is_cylinder, around, absolute(x)) - half_x),
        where(is_plane | is_cylinder, far, absolute(y) - half_y),
        where(is_plane, z, absolute(z) - half_z),
    )
    deepest = maximum(maximum(*excess[:2]), excess[2])
    inside = deepest <= 0
    outer, (nx, ny, nz) = _length(tuple(maximum(e, 0.0) for e in excess))  # type: ignore[arg-type]
    # From inside, the nearest face.
    by_x = excess[0] == deepest
    by_y = ~by_x & (excess[1] == deepest)
    a = where(inside, by_x.astype(x.dtype), nx)
    b = where(inside, by_y.astype(x.dtype), ny)
    c = where(inside, (~by_x & ~by_y).astype(x.dtype), nz)
    normal = (
        a * where(is_cylinder, ux, _sign(x)),
        where(is_cylinder, a * uy, b * _sign(y)),
        where(is_plane, 1.0, c * _sign(z)),
    )
    distance = where(inside, deepest, outer) - where(is_round, size[0], 0.0)
    return where(shape == Shape.none, _FAR, distance), normal


def _sign(x: Array) -> Array:
    return where(x < 0, -1.0, 1.0).astype(x.dtype)


def _length(v: Vec3) -> tuple[Array, Vec3]:
    """Return length and direction; both, and their gradients, are zero for the zero vector."""
    square = dot(v, v)
    is_zero = square == 0
    length = where(is_zero, 0.0, sqrt(where(is_zero, 1.0, square)))
    inverse = where(is_zero, 0.0, 1 / where(is_zero, 1.0, length))
    return length, (v[0] * inverse, v[1] * inverse, v[2] * inverse)
