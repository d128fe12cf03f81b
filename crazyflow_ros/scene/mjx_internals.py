"""Parts of MJX that this package uses although MJX does not export them.

If another version of MJX lacks a part, test/scene/test_mjx_internals.py says which.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import mujoco
from jax import Array

from crazyflow_ros.extras import extra

with extra("mjx"):
    from mujoco import mjx
    from mujoco.mjx._src.collision_driver import geom_pairs, has_collision_fn

__all__ = ["contact_forces", "contacts", "geom_pairs", "has_collision_fn", "with_contacts"]


def contacts(data: mjx.Data) -> Any:
    """Return the slots for contacts of one world or of all, like `mujoco.MjData.contact`."""
    return data._impl.contact


def with_contacts(data: mjx.Data, dist: Array, pos: Array, frame: Array) -> mjx.Data:
    """Return data of one world whose slots for contacts have other distances and places."""
    found = contacts(data).replace(dist=dist, pos=pos, frame=frame)
    changed: mjx.Data = data.replace(_impl=data._impl.replace(contact=found))
    return changed


def contact_forces(model: mjx.Model, data: mjx.Data) -> Array:
    """Return force and torque of each contact in its axes, (C, 6); zero where the solver has none.

    Raises:
        NotImplementedError: This version of MJX does not provide them.
    """
    try:
        from mujoco.mjx._src.support import contact_force_dim
    except ImportError as error:
        version = f"MJX {mujoco.__version__} does not report the forces of contacts as 3.17 does"
        raise NotImplementedError(f"{version} ({error}); use C MuJoCo, or that version") from None
    found = contacts(data)
    wrenches = jnp.zeros((len(found.dist), 6))
    for dim in set(found.dim.tolist()):
        forces, numbers = contact_force_dim(model, data, dim)
        wrenches = wrenches.at[numbers].set(forces)
    return jnp.where((found.dist < found.includemargin)[:, None], wrenches, 0.0)
