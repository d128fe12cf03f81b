"""Extraction of the shapes that drones collide with from a MuJoCo scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.dynamics.obstacles import Obstacles, Shape
from crazyflow_ros.scene.frames import quat_from_matrix

_DRONE = "drone:"  # prefix of the bodies of drones
_DRONES_COLLIDE_AS = 1  # contype and conaffinity of their collision shapes


class Scanned(NamedTuple):
    """The obstacles of a scene."""

    obstacles: Obstacles
    ignored: tuple[str, ...]
    """Reasons why drones fly through some of the geoms, one text each."""
    names: tuple[str, ...]
    """What messages call the obstacles: the name of the geom, or of its body at the root."""


def obstacles_of(
    model: mujoco.MjModel,
    data: mujoco.MjData | None = None,
    *,
    slots: Callable[[int], int] = lambda shapes: shapes,
) -> Scanned:
    """Return everything that drones collide with, except drones and the floor z = 0.

    These are the shapes with which contype and conaffinity let them collide. Meshes, height fields,
    ellipsoids and signed distance fields are ignored: replace them with primitive shapes.

    Args:
        model: The scene.
        data: Poses of the bodies, with frames; by default those of the model.
        slots: Returns the number of slots for a number of shapes.
    """
    if data is None:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
    quats = quat_from_matrix(data.geom_xmat.reshape(-1, 3, 3))
    kinds, owners = model.geom_type, model.body_rootid[model.geom_bodyid]
    roots = {int(root): model.body(int(root)).name for root in np.unique(owners)}
    drones = [root for root, name in roots.items() if name.startswith(_DRONE)]
    collides = (model.geom_contype | model.geom_conaffinity) & _DRONES_COLLIDE_AS != 0
    collides &= ~np.isin(owners, drones)
    is_shape = np.isin(kinds, [int(shape) for shape in Shape])
    ignored = []
    for geom in np.flatnonzero(collides & ~is_shape).tolist():
        name = model.geom(geom).name or f"{geom} of {roots[int(owners[geom])]!r}"
        what = mujoco.mjtGeom(kinds[geom]).name.removeprefix("mjGEOM_").lower()
        shapes = ", ".join(shape.name for shape in Shape if shape is not Shape.none)
        ignored.append(f"drones fly through the {what} {name}, because only {shapes} are solid")
    is_floor = (kinds == Shape.plane) & (data.geom_xpos[:, 2] == 0) & ~quats[:, :2].any(axis=1)
    found = np.flatnonzero(collides & is_shape & ~is_floor)
    obstacles = Obstacles.create(
        [Shape(kind) for kind in model.geom_type[found]],
        np.where(model.geom_size[found] > 0, model.geom_size[found], 1.0),
        data.geom_xpos[found],
        quats[found],
        slots=slots(len(found)),
    )
    names = tuple(_name(model, geom, roots[int(owners[geom])]) for geom in found.tolist())
    return Scanned(obstacles, tuple(ignored), names)


def _name(model: mujoco.MjModel, geom: int, root: str) -> str:
    """Return what a pilot calls a geom: parts of an object have its name as a prefix."""
    own = model.geom(geom).name
    if root != "world":
        own = root.partition("/")[0]
    return own or f"a {Shape(model.geom_type[geom]).name} without a name"
