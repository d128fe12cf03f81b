"""Contacts between geoms in all worlds, without the other computations of MJX."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from jax.sharding import NamedSharding

from crazyflow_ros.scene import frames
from crazyflow_ros.sim.worlds import of_world
from crazyflow_ros.xla.compiler import works

if TYPE_CHECKING:
    import mujoco
    from mujoco import mjx


class Contact(NamedTuple):
    """Two geoms that touch."""

    geoms: tuple[str, str]
    """Names of the geoms; `geom <id>` for one without a name."""
    distance: float
    """Distance between their surfaces, m; negative because they overlap."""
    pos: np.ndarray
    """(3,) centre of the overlap, world frame, m."""
    normal: np.ndarray
    """(3,) from the first to the second, world frame."""


class ContactSlots(NamedTuple):
    """Contacts of N worlds with K slots each."""

    touching: Array
    """(N, K) bool."""
    distance: Array
    """(N, K) m; negative where geoms overlap, otherwise any positive number."""
    pos: Array
    """(N, K, 3) world frame, m."""
    normal: Array
    """(N, K, 3) from the first geom to the second."""
    geoms: Array
    """(N, K, 2) ids."""


class ContactQuery:
    """Finds contacts between geoms, as a compiled function of the drones' poses.

    MJX data have hundreds of arrays, and passing them takes longer than finding contacts; this
    function receives only those that it reads.
    """

    def __init__(
        self, model: mjx.Model, mjx_data: mjx.Data, pos: Array, quat: Array, ids: Array
    ) -> None:
        """Compile the function for a model.

        Args:
            model: Shared by all worlds.
            mjx_data: Batched over worlds; provides everything except the poses of the drones.
            pos: (N, M, 3) of drones, for shape and dtype.
            quat: (N, M, 4) xyzw, likewise.
            ids: (M,) mocap ids of the drones.
        """
        leaves, treedef = jax.tree.flatten((mjx_data, model))

        def find(pos: Array, quat: Array, ids: Array, leaves: list[Array]) -> ContactSlots:
            return _find(pos, quat, ids, *jax.tree.unflatten(treedef, leaves))

        jaxpr = jax.make_jaxpr(find)(pos, quat, ids, leaves)
        pruned, used = _pruned(jaxpr.jaxpr, 3)
        self._used, self._ids = used[3:], ids
        on_mesh = isinstance(pos.sharding, NamedSharding)
        self._call = jax.jit(
            jaxpr_as_fun(ClosedJaxpr(pruned, jaxpr.consts)),
            out_shardings=pos.sharding if on_mesh else None,
        )
        self.take(model, mjx_data)

    def take(self, model: mjx.Model, mjx_data: mjx.Data) -> None:
        """Use another model and data, except for the drones' poses."""
        leaves = jax.tree.leaves((mjx_data, model))
        self._leaves = [leaf for leaf, used in zip(leaves, self._used) if used]

    def __call__(self, pos: Array, quat: Array) -> ContactSlots:
        """Return the contacts with the drones at these poses."""
        return ContactSlots(*self._call(pos, quat, self._ids, *self._leaves))


def _pruned(jaxpr: Jaxpr, n_kept: int) -> tuple[Jaxpr, list[bool]]:
    """Return a computation without its unused arguments; the first ones are always kept."""
    found: list[tuple[Jaxpr, list[bool]]] = []

    def prune() -> bool:
        from jax.interpreters.partial_eval import dce_jaxpr

        kept = [i < n_kept for i in range(len(jaxpr.invars))]
        found.append(dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), kept))
        return True

    if works(prune, "jax.interpreters.partial_eval.dce_jaxpr"):
        return found[0]
    return jaxpr, [True] * len(jaxpr.invars)


def with_drones(pos: Array, quat: Array, ids: Array, mjx_data: mjx.Data) -> mjx.Data:
    """Return MJX data with the drones' mocap bodies moved; derived quantities are out of date."""
    return mjx_data.replace(
        mocap_pos=mjx_data.mocap_pos.at[:, ids].set(pos),
        mocap_quat=mjx_data.mocap_quat.at[:, ids].set(frames.xyzw_to_wxyz(quat)),
    )


def kinematics(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """Compute all frames of a world; `mjx.kinematics` does not move children of mocap bodies."""
    from mujoco import mjx

    bodies = np.flatnonzero(model.body_mocapid >= 0)
    ids = model.body_mocapid[bodies]
    quat = data.mocap_quat[ids]
    quat = quat / jnp.linalg.norm(quat, axis=1, keepdims=True)
    carrying = model.replace(
        body_pos=model.body_pos.at[bodies].set(data.mocap_pos[ids]),
        body_quat=model.body_quat.at[bodies].set(quat),
    )
    return mjx.kinematics(carrying, data)


def _carried_touches(model: mjx.Model) -> bool:
    """Return whether children of mocap bodies can touch; the rotors of drones cannot."""
    can_touch = (model.geom_contype | model.geom_conaffinity) != 0
    can_touch[np.concatenate([model.pair_geom1, model.pair_geom2])] = True
    bodies = model.geom_bodyid[can_touch]
    is_carried = (model.body_mocapid < 0) & (model.body_mocapid[model.body_rootid] >= 0)
    return bool(is_carried[bodies].any())


def _find(
    pos: Array, quat: Array, ids: Array, mjx_data: mjx.Data, model: mjx.Model
) -> ContactSlots:
    from mujoco import mjx

    from crazyflow_ros.scene.mjx_contacts import collision
    from crazyflow_ros.scene.mjx_internals import contacts

    frames_of = kinematics if _carried_touches(model) else mjx.kinematics

    def collide(data: mjx.Data, model: mjx.Model) -> mjx.Data:
        return collision(model, frames_of(model, data))

    moved = with_drones(pos, quat, ids, mjx_data)
    contact = contacts(jax.vmap(collide, in_axes=(0, None))(moved, model))
    frame = contact.frame.reshape(*contact.frame.shape[:2], 9)
    return ContactSlots(contact.dist < 0, contact.dist, contact.pos, frame[..., :3], contact.geom)


@jax.jit
def touching_geoms(slots: ContactSlots, first: Array | int, end: Array | int) -> Array:
    """Return which contacts involve a geom with `first` <= id < `end`, (N, K) bool."""
    return slots.touching & ((slots.geoms >= first) & (slots.geoms < end)).any(axis=-1)


def listed(
    slots: ContactSlots, world: int, touching: Array, model: mujoco.MjModel
) -> list[Contact]:
    """Return the contacts of a world for which `touching`, (N, K), is true, deepest first."""
    distance, pos, normal, geoms = (np.asarray(of_world(x, world)) for x in slots[1:])
    (places,) = np.nonzero(of_world(touching, world))

    def name(geom: int) -> str:
        return model.geom(geom).name or f"geom {geom}"

    return [
        Contact((name(geoms[i, 0]), name(geoms[i, 1])), float(distance[i]), pos[i], normal[i])
        for i in places[np.argsort(distance[places])]
    ]
