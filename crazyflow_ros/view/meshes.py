"""Shapes of worlds and drones as parts of GLB files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import trimesh

from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape
from crazyflow_ros.view.glb import GlbPart, glb_of, linear, unlit

_SHARP = np.deg2rad(35.0)  # angle between faces above which their edge is sharp
_MOST_FACES = 50_000  # of a mesh whose edges are looked for


def glb(shapes: Iterable[VisibleShape]) -> bytes:
    """Return shapes as one GLB file with a mesh per colour; without shapes, an invisible mesh.

    Coordinates are those of the frame in which the shapes are given, z up.
    """
    return glb_of(parts_of(shapes) or [_nothing()])


def parts_of(shapes: Iterable[VisibleShape]) -> list[GlbPart]:
    """Return shapes as parts of a GLB file, one per colour."""
    by_color: dict[tuple[float, ...], list[VisibleShape]] = {}
    for shape in shapes:
        by_color.setdefault(tuple(shape.rgba.tolist()), []).append(shape)
    parts = []
    for color, own in by_color.items():
        mesh: Any = trimesh.util.concatenate([mesh_of(shape) for shape in own])
        is_open = any(shape.form is ShapeForm.MESH for shape in own)  # its inside may be seen
        rgba = linear_rgba(np.array(color))
        parts.append(GlbPart(mesh.vertices, mesh.faces, rgba, is_double_sided=is_open))
    return parts


def linear_rgba(rgba: np.ndarray) -> np.ndarray:
    """Convert a colour of a shape to a linear colour of GLB files, (4,)."""
    return np.append(linear(rgba[:3]), rgba[3])


def outline(shapes: Sequence[VisibleShape], width: float, seen: tuple[float, ...]) -> GlbPart:
    """Return a line around shapes: a larger shell, of which only the inside is visible.

    Args:
        shapes: The shapes; meshes and transparent ones have no outline.
        width: Width of the line [m].
        seen: Colour of the line, red, green and blue from 0 to 1.
    """
    meshes = [
        mesh_of(replace(shape, size=shape.size + 2 * width))
        for shape in shapes
        if shape.form is not ShapeForm.MESH and shape.rgba[3] >= 1
    ]
    if not meshes:
        return _nothing()
    mesh: Any = trimesh.util.concatenate(meshes)
    return unlit(mesh.vertices, np.array([*seen, 1.0]), mesh.faces[:, ::-1])


def _nothing() -> GlbPart:
    return GlbPart(np.zeros((3, 3)), np.array([[0, 1, 2]]), np.ones(4))


def mesh_of(shape: VisibleShape) -> trimesh.Trimesh:
    """Return a shape as triangles, with separate corners at sharp edges."""
    match shape.form:
        case ShapeForm.BOX:
            mesh = trimesh.creation.box(extents=shape.size)
        case ShapeForm.SPHERE:
            mesh = trimesh.creation.icosphere(subdivisions=3, radius=0.5)
            mesh.apply_scale(shape.size)
        case ShapeForm.CYLINDER:
            mesh = trimesh.creation.cylinder(radius=0.5, height=1.0, sections=32)
            mesh.apply_scale(shape.size)
        case ShapeForm.MESH:
            corners = shape.triangles
            assert corners is not None
            faces = np.arange(3 * len(corners)).reshape(-1, 3)
            mesh = trimesh.Trimesh(corners.reshape(-1, 3), faces)
            mesh.merge_vertices()
    if shape.form is not ShapeForm.SPHERE and len(mesh.faces) < _MOST_FACES:
        mesh = trimesh.graph.smooth_shade(mesh, angle=_SHARP)
    return transformed(mesh, shape.position, shape.attitude)


def transformed(
    mesh: trimesh.Trimesh, position: np.ndarray, attitude: np.ndarray
) -> trimesh.Trimesh:
    """Move a mesh to a position [m] and an attitude (xyzw), and return it."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation_matrix(attitude), position
    mesh.apply_transform(pose)
    return mesh
