"""The triangles of meshes and height fields."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.shapes import height_field_points, mesh_corners

_LEAST_AREA = 1e-12  # m², of triangles that are not left out
_SMOOTH = 0.8  # least cosine between the normals of corner and triangle; else there is an edge


class Triangles(NamedTuple):
    """n triangles of a geom, in its frame, counterclockwise."""

    corners: np.ndarray
    """Positions [m], (n, 3, 3)."""
    normals: np.ndarray
    """Unit normals at the corners, with which MuJoCo lights them, (n, 3, 3)."""
    place: np.ndarray
    """Where the corners are in a texture in two dimensions, and zero; if the geom has no texture
    coordinates of its own, their positions in sizes of the geom, y downwards, (n, 3, 3)."""


def triangles_of(model: mujoco.MjModel, geom: int) -> Triangles:
    """Return the triangles of a geom.

    Args:
        model: The scene.
        geom: Id of a geom that is a mesh or a height field.
    """
    number = int(model.geom_dataid[geom])
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        corners = mesh_corners(model, number)
    else:
        corners = _height_field(model, number)
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1, keepdims=True)
    flat = np.repeat((across / np.maximum(area, 1e-30))[:, None], 3, axis=1)
    size = np.where(model.geom_size[geom] > 0.0, model.geom_size[geom], 1.0)
    normals, place = flat, corners / size * [0.5, -0.5, 0.5]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        smooth = _of_corners(model, number, "normal")
        if has_coordinates(model, geom):
            normals = smooth
            place = np.pad(_of_corners(model, number, "texcoord"), ((0, 0), (0, 0), (0, 1)))
        else:
            alike = (smooth * flat).sum(-1, keepdims=True) >= _SMOOTH
            normals = np.where(alike, smooth, flat)
    kept = area[:, 0] > 2 * _LEAST_AREA
    return Triangles(corners[kept], normals[kept], place[kept])


def has_coordinates(model: mujoco.MjModel, geom: int) -> bool:
    """Return whether a geom is a mesh with texture coordinates of its own."""
    is_mesh = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH
    return bool(is_mesh and model.mesh_texcoordadr[model.geom_dataid[geom]] >= 0)


def n_triangles(model: mujoco.MjModel, geom: int) -> int:
    """Return about how many triangles a geom has, without computing them."""
    number = int(model.geom_dataid[geom])
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        return int(model.mesh_facenum[number])
    rows, columns = int(model.hfield_nrow[number]), int(model.hfield_ncol[number])
    return 2 * (rows - 1) * (columns - 1) + 4 * (rows + columns)


def _of_corners(model: mujoco.MjModel, number: int, what: str) -> np.ndarray:
    """Return the normals or texture coordinates of the corners of a mesh, (n, 3, 3 or 2)."""
    first, n_faces = int(model.mesh_faceadr[number]), int(model.mesh_facenum[number])
    values = getattr(model, f"mesh_{what}")[int(getattr(model, f"mesh_{what}adr")[number]) :]
    indices = getattr(model, f"mesh_face{what}")[first : first + n_faces]
    return values[indices].astype(float)


def _height_field(model: mujoco.MjModel, number: int) -> np.ndarray:
    """Return the triangles of the surface, of the four sides and of the bottom."""
    top = height_field_points(model, number)
    bottom = top.copy()
    bottom[..., 2] = -model.hfield_size[number, 3]  # the thickness of its base
    a, b, c, d = top[:-1, :-1], top[:-1, 1:], top[1:, :-1], top[1:, 1:]
    faces = [np.stack([a, b, d], axis=-2), np.stack([a, d, c], axis=-2)]  # as MuJoCo cuts them
    # Counterclockwise from above, along all four sides.
    sides = [(part[0], part[:, -1], part[-1, ::-1], part[::-1, 0]) for part in (top, bottom)]
    for upper, lower in zip(*sides):
        faces.append(np.stack([lower[:-1], lower[1:], upper[:-1]], axis=-2))
        faces.append(np.stack([lower[1:], upper[1:], upper[:-1]], axis=-2))
    corners = [bottom[0, 0], bottom[-1, 0], bottom[-1, -1], bottom[0, -1]]
    faces.append(np.array([corners[:3], [corners[0], corners[2], corners[3]]]))
    return np.concatenate([face.reshape(-1, 3, 3) for face in faces])
