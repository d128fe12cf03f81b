"""Shapes as GLB files, which browsers draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import trimesh
from trimesh.visual.material import PBRMaterial

from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape


def glb(shapes: Iterable[VisibleShape]) -> bytes:
    """Return shapes as one GLB file with a mesh per colour; without shapes, an invisible mesh.

    Coordinates are those of the frame in which the shapes are given, z up.
    """
    by_color: dict[tuple[float, ...], list[trimesh.Trimesh]] = {}
    for shape in shapes:
        by_color.setdefault(tuple(shape.rgba.tolist()), []).append(_mesh(shape))
    scene = trimesh.Scene()
    for color, meshes in by_color.items():
        mesh: Any = trimesh.util.concatenate(meshes)
        mesh.visual = trimesh.visual.TextureVisuals(
            material=PBRMaterial(
                baseColorFactor=[round(255 * value) for value in color],
                alphaMode="OPAQUE" if color[3] >= 1 else "BLEND",
                metallicFactor=0.1,
                roughnessFactor=0.7,
                doubleSided=True,
            )
        )
        scene.add_geometry(mesh)
    content = scene.export(file_type="glb")
    assert isinstance(content, bytes)
    return content


def _mesh(shape: VisibleShape) -> trimesh.Trimesh:
    match shape.form:
        case ShapeForm.BOX:
            mesh = trimesh.creation.box(extents=shape.size)
        case ShapeForm.SPHERE:
            mesh = trimesh.creation.icosphere(subdivisions=2, radius=0.5)
            mesh.apply_scale(shape.size)
        case ShapeForm.CYLINDER:
            mesh = trimesh.creation.cylinder(radius=0.5, height=1.0, sections=24)
            mesh.apply_scale(shape.size)
        case ShapeForm.MESH:
            corners = shape.triangles
            assert corners is not None
            faces = np.arange(3 * len(corners)).reshape(-1, 3)
            mesh = trimesh.Trimesh(corners.reshape(-1, 3), faces)
            mesh.merge_vertices()
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation_matrix(shape.attitude), shape.position
    mesh.apply_transform(pose)
    return mesh
