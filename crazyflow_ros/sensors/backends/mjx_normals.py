"""Surface normals where rays hit, which MJX's rays do not tell."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
from jax import Array

from crazyflow_ros.extras import extra

with extra("mjx"):
    from mujoco import mjx

_GEOM = mujoco.mjtGeom
SHAPES = (
    _GEOM.mjGEOM_PLANE,
    _GEOM.mjGEOM_SPHERE,
    _GEOM.mjGEOM_CAPSULE,
    _GEOM.mjGEOM_ELLIPSOID,
    _GEOM.mjGEOM_BOX,
)
"""Types of geoms whose normals there are."""


def surface_normals(model: mjx.Model, data: mjx.Data, geoms: Array, points: Array) -> Array:
    """Outward unit normals of geoms of `SHAPES` at points of their surfaces, in one world.

    Args:
        model: The model.
        data: Frames of the world.
        geoms: Ids of the geoms, shape (...); of -1 the normal is zero.
        points: Points in the world [m], shape (..., 3).

    Returns:
        Shape (..., 3), world axes.
    """
    axes, size = data.geom_xmat[geoms].reshape(*geoms.shape, 3, 3), model.geom_size[geoms]
    local = jnp.einsum("...ji,...j->...i", axes, points - data.geom_xpos[geoms])
    up = jnp.array([0.0, 0.0, 1.0])
    along = jnp.clip(local[..., 2], -size[..., 1], size[..., 1])
    face = jnp.abs(local) / jnp.where(size > 0.0, size, 1.0)
    vectors = {
        _GEOM.mjGEOM_PLANE: jnp.broadcast_to(up, local.shape),
        _GEOM.mjGEOM_SPHERE: local,
        _GEOM.mjGEOM_CAPSULE: local - along[..., None] * up,
        _GEOM.mjGEOM_ELLIPSOID: local / jnp.where(size > 0.0, size, 1.0) ** 2,
        _GEOM.mjGEOM_BOX: jnp.sign(local) * (face == face.max(axis=-1, keepdims=True)),
    }
    kinds = jnp.asarray(model.geom_type)[geoms][..., None]
    normal = jnp.zeros_like(local)
    for kind in SHAPES:
        normal = jnp.where(kinds == int(kind), vectors[kind], normal)
    normal = normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)
    world = jnp.einsum("...ij,...j->...i", axes, normal)
    return jnp.where(geoms[..., None] >= 0, world, 0.0)
