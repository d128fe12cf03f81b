"""The shapes in a MuJoCo scene that drones collide with, and which of them a drone touches."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.dynamics.obstacles import Obstacles, Shape
from crazyflow_ros.scene.drone_bodies import DRONE, drones_in
from crazyflow_ros.scene.frames import quat_from_matrix
from crazyflow_ros.scene.surfaces import surfaces

_NEAR = 0.1  # m, largest distance of the collision shape of a drone from what its parts touch
_WITHOUT_DISTANCES = mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_SDF
_DRONES_COLLIDE_AS = 1  # contype and conaffinity of their collision shapes


class Scanned(NamedTuple):
    """The obstacles of a scene."""

    obstacles: Obstacles
    ignored: tuple[str, ...]
    """Reasons why drones fly through some of the geoms, one text each."""
    names: tuple[str, ...]
    """Names of the obstacles in messages: that of the geom, or of its root body."""


def obstacles_of(
    model: mujoco.MjModel,
    data: mujoco.MjData | None = None,
    *,
    slots: Callable[[int], int] = lambda shapes: shapes,
    moving: bool = True,
    floor: float | None = 0.0,
) -> Scanned:
    """Return everything that drones collide with, except drones and the floor.

    Contype and conaffinity say which shapes collide with drones. Meshes, height fields, ellipsoids
    and signed distance fields are left out: contacts with them are MuJoCo's, see `Terrain`.

    Args:
        model: The scene.
        data: Poses of the bodies, with frames; by default those of the model.
        slots: Returns the number of slots for a number of shapes.
        moving: Include shapes of bodies with joints, where they are now.
        floor: Height of the floor [m], with which drones collide anyway; None for none.
    """
    if data is None:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
    collides, is_drone = _collision_shapes(model, data, floor)
    stands = model.body_weldid[model.geom_bodyid] == 0
    found = np.flatnonzero(collides & ~is_drone & (stands | moving))
    ignored = []
    for geom in np.flatnonzero(_collides(model) & ~is_drone & ~_is_shape(model)).tolist():
        root = model.body(model.body_rootid[model.geom_bodyid[geom]]).name
        name = model.geom(geom).name or f"{geom} of {root!r}"
        what = mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
        shapes = ", ".join(shape.name for shape in Shape if shape is not Shape.none)
        ignored.append(f"drones fly through the {what} {name}, because only {shapes} are solid")
    obstacles = Obstacles.create(
        [Shape(kind) for kind in model.geom_type[found]],
        np.where(model.geom_size[found] > 0, model.geom_size[found], 1.0),
        data.geom_xpos[found],
        quat_from_matrix(data.geom_xmat[found].reshape(-1, 3, 3)),
        surface=surfaces(model)[found],
        slots=slots(len(found)),
    )
    names = tuple(name_of(model, geom) for geom in found.tolist())
    return Scanned(obstacles, tuple(ignored), names)


def neighbour(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    drone: str,
    *,
    drones: bool,
    floor: float | None = 0.0,
) -> str | None:
    """Return the name of the nearest thing that a drone collides with, if it is near.

    Args:
        model: The scene.
        data: Poses of the bodies, with frames.
        drone: Name of the drone.
        drones: Whether drones collide with one another.
        floor: Height of the floor [m], which is not meant; None for none.

    Returns:
        Name of another drone, of a geom of the scene, or of its root body; None if nothing is near.
    """
    shapes, is_drone = _collision_shapes(model, data, floor)
    owners = model.body_rootid[model.geom_bodyid]
    own = owners == model.body(f"{DRONE}{drone}").id
    parts = np.flatnonzero(shapes & own)
    if not parts.size:  # a user's drone may have none
        return None
    measured = only_for_mujoco(model) & ~np.isin(model.geom_type, _WITHOUT_DISTANCES)
    others = (shapes | measured) & ~own & (~is_drone | drones)
    # Compute exact distances only of geoms with near bounding spheres, and of planes, without one.
    place, reach = data.geom_xpos[parts[0]], model.geom_rbound[parts].max()
    away = np.linalg.norm(data.geom_xpos - place, axis=1) - model.geom_rbound
    others &= (away < 2 * reach + _NEAR) | (model.geom_rbound == 0)
    distances = {
        geom: min(
            mujoco.mj_geomDistance(model, data, int(part), geom, _NEAR, None) for part in parts
        )
        for geom in np.flatnonzero(others).tolist()
    }
    nearest = min(distances, key=distances.__getitem__, default=None)
    if nearest is None or distances[nearest] >= _NEAR:
        return None
    root = model.body(int(owners[nearest]))
    if root.name.startswith(DRONE):
        return str(root.name.removeprefix(DRONE))
    return name_of(model, nearest)


def name_of(model: mujoco.MjModel, geom: int) -> str:
    """Return what a pilot calls a geom: its own name, or that of the object to which it belongs."""
    root = model.body(int(model.body_rootid[model.geom_bodyid[geom]]))
    # Parts of an object have its name as a prefix.
    name = root.name.partition("/")[0] if root.id else model.geom(geom).name
    kind = mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
    return name or f"a {kind}"


def _collision_shapes(
    model: mujoco.MjModel, data: mujoco.MjData, floor: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which geoms collide as primitive shapes, except the floor and level planes below it.

    Args:
        model: The scene.
        data: Poses of the bodies, with frames.
        floor: Height of the floor [m]; None for none.

    Returns:
        (ngeom,) bool: whether a geom is such a shape, and whether it is part of a drone.
    """
    low = -np.inf if floor is None else floor
    is_floor = are_level_planes(model, data) & (data.geom_xpos[:, 2] <= low)
    owners = model.body_rootid[model.geom_bodyid]
    return _collides(model) & _is_shape(model) & ~is_floor, np.isin(owners, [*drones_in(model)])


def are_level_planes(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return which geoms are level planes that drones collide with, (ngeom,) bool.

    Args:
        model: The scene.
        data: Poses of the bodies, with frames.
    """
    axes = data.geom_xmat.reshape(-1, 3, 3)
    is_level = ~axes[:, :2, 2].any(axis=1) & (axes[:, 2, 2] > 0)
    found: np.ndarray = _collides(model) & (model.geom_type == Shape.plane) & is_level
    return found


def _collides(model: mujoco.MjModel) -> np.ndarray:
    """Return which geoms collide with drones."""
    collides: np.ndarray = (model.geom_contype | model.geom_conaffinity) & _DRONES_COLLIDE_AS != 0
    return collides


def only_for_mujoco(model: mujoco.MjModel) -> np.ndarray:
    """Return which shapes stand and collide with drones, but are none of `Shape`, (ngeom,) bool."""
    stands = model.body_weldid[model.geom_bodyid] == 0
    found: np.ndarray = _collides(model) & ~_is_shape(model) & stands
    return found


def _is_shape(model: mujoco.MjModel) -> np.ndarray:
    return np.isin(model.geom_type, [int(shape) for shape in Shape])
