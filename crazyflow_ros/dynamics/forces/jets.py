"""The jets of air below drones, and the pressure of all jets on each drone, with its gradient.

Most of many drones are far from most jets. So neighbouring drones form groups, and only jets that
reach the box around a group are computed. Each drone adds up the jets in the order of the drones
that make them, so the result does not depend on the groups.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import Vec3, add, dot, scale, subtract, total

FEW = 128
"""Largest number of drones for which each pair is computed."""
# Radius of a round jet, per length, at which its speed is 1 / e; half its speed is at 0.094.
JET_SPREAD = 0.094 / sqrt(log(2))
REACH = 9.2  # squared distance from the axis, over b^2, beyond which a jet has 1e-8 of its force
TOGETHER = 16
"""Number of drones in a group."""
_GROUP = 16  # jets that are skipped together
_ROUNDING = 1e-4  # of a distance: a jet that reaches a drone must reach the box around it

Sums: TypeAlias = tuple[Array, Vec3]
"""See `pressures`."""


class Jets(NamedTuple):
    """The jets of drones, the last axis of all arrays."""

    pos: Vec3
    """Where they begin [m]."""
    up: Vec3
    """Unit vectors against the flow."""
    thrust: Array
    """N."""
    width: Array
    """Squared width of a drone in a jet [m^2]; one axis."""

    def on(self, there: Vec3, width: Array) -> tuple[Vec3, Array, Array, Array]:
        """Return how jets [..., i, :] meet drones [..., :, j].

        Args:
            there: Positions of the drones [m].
            width: Squared widths of the drones [m^2], one axis.

        Returns:
            The ways from the axes to the drones [m], which begin at 0 just below a drone, where its
            jets have not merged; squared distances and widths [m^2]; whether they meet: never with
            a lost drone, whose state may be NaN.
        """
        x, y, z = (p[..., :, None] - q[..., None, :] for p, q in zip(self.pos, there))
        up = self.up[0][..., None], self.up[1][..., None], self.up[2][..., None]
        depth = dot((x, y, z), up)
        aside = dot((x, y, z), (x, y, z)) - depth * depth
        wide = self.width[:, None] + width + (JET_SPREAD * depth) ** 2
        meets = (depth > 0) & (aside < REACH * wide) & (self.thrust[..., None] > 0)
        merged = depth * depth / (depth * depth + self.width[:, None])
        away = scale(subtract(scale(up, depth), (x, y, z)), merged)
        return away, aside, wide, meets

    def reach(self, centre: Vec3, half: Vec3, width: Array) -> Array:
        """Return which jets may meet a drone in a box.

        Args:
            centre: Centre of the box [m].
            half: Half the sides of the box [m].
            width: Largest squared width of a drone in the box [m^2].
        """
        away, up = subtract(self.pos, centre), self.up
        depth, squared = dot(away, up), dot(away, away)
        aside = jnp.sqrt(jnp.maximum(squared - depth * depth, 0))
        rounding = _ROUNDING * (jnp.sqrt(squared) + 1)
        x, y, z = half
        deepest = depth + jnp.abs(up[0]) * x + jnp.abs(up[1]) * y + jnp.abs(up[2]) * z + rounding
        least = jnp.maximum(aside - jnp.sqrt(dot(half, half)) - rounding, 0)
        wide = self.width + width + (JET_SPREAD * deepest) ** 2
        return (deepest > 0) & (least * least < REACH * wide) & (self.thrust > 0)


def pressures(thrust: Array, away: Vec3, aside: Array, width: Array, meets: Array) -> Sums:
    """Return the pressure of all jets on each drone, from the results of `Jets.on`.

    Returns:
        The pressure [N/m^2], and -1/4 of its gradient [N/m^3], where jets have merged.
    """
    pressure = jnp.where(meets, thrust[..., None] / width * jnp.exp(-2 * aside / width), 0.0)
    x, y, z = (total(jnp.where(meets, pressure / width * way, 0.0)) for way in away)
    return total(pressure), (x, y, z)


def pressures_of_many(jets: Jets, order: Array | None) -> Sums:
    """Return the pressure of the jets of many drones on each of them, as `pressures` does.

    Args:
        jets: The jets.
        order: See `aerodynamics.downwash_in_order`.
    """
    n_drones = jets.width.shape[0]
    missing = -n_drones % TOGETHER

    def padded(x: Array, mode: str) -> Array:
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], mode)

    jets = jax.tree.map(lambda x: padded(x, "edge"), jets)
    jets = jets._replace(thrust=padded(jets.thrust[..., :n_drones], "constant"))
    targets = jets.pos, jets.width
    if order is not None:
        who = padded(order[0], "edge")
        targets = jax.tree.map(lambda x: x[..., who], targets)

    def part(tree: Any, start: Array, size: int) -> Any:
        def cut(x: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(x, start, size, axis=-1)

        return jax.tree.map(cut, tree)

    def together(k: Array, sums: Sums) -> Sums:
        there, width = part(targets, k * TOGETHER, TOGETHER)
        reach = jets.reach(*box(there), jnp.max(width))

        def one(i: Array, so_far: Sums) -> Sums:
            def more() -> Sums:
                own = part(jets, i, 1)
                each = pressures(own.thrust, *own.on(there, width))
                added: Sums = jax.tree.map(jnp.add, so_far, each)
                return added

            return jax.lax.cond(jnp.any(part(reach, i, 1)), more, lambda: so_far)

        def group(k: Array, so_far: Sums) -> Sums:
            def each() -> Sums:
                start = k * _GROUP
                return jax.lax.fori_loop(start, start + _GROUP, one, so_far)

            reaches = jnp.any(part(reach, k * _GROUP, _GROUP))
            return jax.lax.cond(reaches, each, lambda: so_far)

        def all_groups() -> Sums:
            return jax.lax.fori_loop(0, (n_drones + missing) // _GROUP, group, _nothing(there[0]))

        found = jax.lax.cond(jnp.any(reach), all_groups, lambda: _nothing(there[0]))

        def placed(sums: Array, found: Array) -> Array:
            return jax.lax.dynamic_update_slice_in_dim(sums, found, k * TOGETHER, axis=-1)

        done: Sums = jax.tree.map(placed, sums, found)
        return done

    n_together = (n_drones + missing) // TOGETHER
    sums = jax.lax.fori_loop(0, n_together, together, _nothing(jets.thrust))
    chosen = slice(n_drones) if order is None else order[1]
    result: Sums = jax.tree.map(lambda x: x[..., chosen], sums)
    return result


def _nothing(like: Array) -> Sums:
    zero = jnp.zeros_like(like)
    return zero, (zero, zero, zero)


def box(points: Vec3) -> tuple[Vec3, Vec3]:
    """Return the centre and half the sides of the box around the finite points on the last axis."""
    big = jnp.asarray(1e9, points[0].dtype)

    def ends(x: Array) -> tuple[Array, Array]:
        finite = jnp.isfinite(x)
        low = jnp.min(jnp.where(finite, x, big), axis=-1, keepdims=True)
        return low, jnp.max(jnp.where(finite, x, -big), axis=-1, keepdims=True)

    (x, east), (y, north), (z, top) = map(ends, points)
    half = scale(subtract((east, north, top), (x, y, z)), 0.5)
    return add((x, y, z), half), half
