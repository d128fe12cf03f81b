"""Search for drones that may touch one another, without comparing each pair.

Neighbouring drones form groups, see `jets`: only groups whose boxes are within reach of each other
are compared drone by drone.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import Vec3, dot, subtract
from crazyflow_ros.dynamics.forces.jets import TOGETHER, box

_ROUNDING, _OF_PLACES = 1e-4, 1e-6  # of distances, and of coordinates


def encounters(pos: Vec3, radius: Array, order: Array | None) -> Array:
    """Return the differences of drone numbers at which some pair of drones may touch.

    Args:
        pos: Positions [m] of M drones, on the last axis.
        radius: Radii of the spheres around the drones that have to overlap [m].
        order: Drones in an order in which neighbours follow each other, and its inverse, (2, M)
            integers. The order affects the run time, never the pairs found.

    Returns:
        (M // 2 + 1,) whether spheres i and i + k, modulo M, may overlap for some i; False for
        k = 0. Pairs with a lost drone, whose state may be NaN, never overlap.
    """
    n_drones, missing = pos[0].shape[-1], -pos[0].shape[-1] % TOGETHER
    n_groups = (n_drones + missing) // TOGETHER
    who = jnp.arange(n_drones) if order is None else order[0]
    who = jnp.pad(who, (0, missing), "edge")

    def grouped(x: Array) -> Array:
        return x[..., who].reshape(*x.shape[:-1], n_groups, TOGETHER)

    radius = jnp.where(jnp.isfinite(radius), radius, 0)
    x, y, z = map(grouped, pos)
    there, radii, numbers = (x, y, z), grouped(radius), grouped(jnp.arange(n_drones))
    (centre, half), widest = box(there), jnp.max(radii, axis=-1, keepdims=True)
    boxes = tuple(x[..., 0] for x in centre), tuple((x + widest)[..., 0] for x in half)

    def part(tree: Any, k: Array, axis: int) -> Any:
        return jax.tree.map(lambda x: jax.lax.dynamic_index_in_dim(x, k, axis), tree)

    def neighbours(k: Array) -> Array:
        """Return which groups may touch group `k`; each pair of groups is found once."""
        own, sides = part(boxes, k, -1)
        near = jnp.arange(n_groups) >= k
        for x, y, a, b in zip(boxes[0], own, boxes[1], sides):
            rounding = _OF_PLACES * (jnp.abs(x) + jnp.abs(y))
            near &= jnp.abs(x - y) <= (1 + _ROUNDING) * (a + b) + rounding
        return near.reshape(-1, n_groups).any(axis=0)

    def compare(k: Array, other: Array, found: Array) -> Array:
        (here, reach, own), (place, far, its) = (
            part((there, radii, numbers), i, -2) for i in (k, other)
        )
        gap = subtract(jax.tree.map(_as_column, here), place)
        meets = dot(gap, gap) <= (1 + _ROUNDING) * (_as_column(reach) + far) ** 2
        meets = meets.reshape(-1, TOGETHER, TOGETHER).any(axis=0)
        away = (_as_column(own) - its) % n_drones
        away = jnp.minimum(away, n_drones - away)
        meets &= away > 0

        pairs = away.ravel(), meets.ravel()

        def note(i: Array, found: Array) -> Array:
            where, is_so = (x[i] for x in pairs)
            is_so |= found[where]
            return jax.lax.dynamic_update_slice_in_dim(found, is_so[None], where, axis=0)

        def note_all() -> Array:
            return jax.lax.fori_loop(0, TOGETHER**2, note, found)

        return jax.lax.cond(jnp.any(meets), note_all, lambda: found)

    def group(k: Array, found: Array) -> Array:
        near = neighbours(k)

        def one(other: Array, found: Array) -> Array:
            return jax.lax.cond(near[other], lambda: compare(k, other, found), lambda: found)

        return jax.lax.fori_loop(k, n_groups, one, found)

    return jax.lax.fori_loop(0, n_groups, group, jnp.zeros(n_drones // 2 + 1, bool))


def _as_column(row: Array) -> Array:
    return jnp.swapaxes(row, -1, -2)
