"""The names of what drones touch."""

from __future__ import annotations

import mujoco
import numpy as np

from crazyflow_ros.scene.obstacles import collision_shapes, name_of

_DRONE = "drone:"  # prefix of the bodies of drones
_NEAR = 0.1  # m, largest distance of the collision shape of a drone from what its parts touch


def neighbour(
    model: mujoco.MjModel, data: mujoco.MjData, drone: str, *, drones: bool
) -> str | None:
    """Return the name of the nearest thing that a drone collides with, if it is near.

    Args:
        model: The scene.
        data: Poses of the bodies, with frames.
        drone: Name of the drone.
        drones: Whether drones collide with one another.

    Returns:
        Name of another drone, of a geom of the scene, or of the body at the root of others; None
        if nothing is near.
    """
    shapes, is_drone = collision_shapes(model, data)
    owners = model.body_rootid[model.geom_bodyid]
    own = owners == model.body(f"{_DRONE}{drone}").id
    parts = np.flatnonzero(shapes & own)
    if not parts.size:  # a drone of a user's own may have none
        return None
    others = shapes & ~own & (~is_drone | drones)
    # The exact distance is asked only of those whose bounding spheres are near; planes have none.
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
    if root.name.startswith(_DRONE):
        return str(root.name.removeprefix(_DRONE))
    return name_of(model, nearest)
