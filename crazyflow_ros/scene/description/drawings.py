"""Meshes with materials (glTF, Collada, OBJ), as one mesh of a colour for each material."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.extras import extra
from crazyflow_ros.scene.description import collada

GLTF = (".glb", ".gltf")
COLOURED = (*GLTF, collada.SUFFIX, ".obj")
"""Suffixes of files that may have materials."""
_LEAST = 4  # corners of a mesh


class ColouredMesh(NamedTuple):
    """A part of a mesh."""

    obj: bytes
    """As an OBJ file, in metres."""
    rgba: tuple[float, ...]
    """Colour (4,), each from 0 to 1."""


def drawings_of(path: Path, content: bytes) -> list[ColouredMesh]:
    """Return the parts of a mesh file, one for each colour of its materials.

    A part with a texture gets the texture's mean colour. As in RViz, the axis that a file says is
    upwards is ignored.

    Args:
        path: The file, beside which those with its materials, textures and buffers are.
        content: Its content.

    Raises:
        ValueError: It cannot be read, or has no triangles.
        ModuleNotFoundError: The package that reads it is not installed.
    """
    if path.suffix.lower() == collada.SUFFIX:
        found = collada.triangles_of(content)
    else:
        found = _loaded(path.suffix, content, path)
    if not found:
        raise ValueError(f"{path.name}: it has no triangles")
    largest = max(found.values(), key=lambda parts: sum(map(len, parts)))
    for rgba, parts in list(found.items()):  # MuJoCo wants four corners
        corners = np.concatenate(parts).reshape(-1, 3)
        if parts is not largest and len(np.unique(corners, axis=0)) < _LEAST:
            largest += found.pop(rgba)
    return [ColouredMesh(collada.obj_of(parts), rgba) for rgba, parts in found.items()]


def as_obj(suffix: str, content: bytes, path: Path | None = None) -> bytes:
    """Convert a glTF file to an OBJ file, without colours.

    Args:
        suffix: That of the file.
        content: Its content.
        path: The file, if those beside it may be read: they may be anywhere.

    Raises:
        ValueError: It cannot be read, or has no triangles.
        ModuleNotFoundError: The package that reads it is not installed.
    """
    parts = [part for parts in _loaded(suffix, content, path).values() for part in parts]
    if not parts:
        raise ValueError("it has no triangles")
    return collada.obj_of(parts)


def _loaded(
    suffix: str, content: bytes, path: Path | None
) -> dict[tuple[float, ...], list[np.ndarray]]:
    """Return the triangles (N, 3, 3) of a file by their colours."""
    with extra("meshes"):
        import trimesh
    resolver = None if path is None else trimesh.resolvers.FilePathResolver(str(path))
    try:
        scene = trimesh.load_scene(
            io.BytesIO(content), file_type=suffix[1:].lower(), resolver=resolver
        )
        meshes = [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh)]
        found: dict[tuple[float, ...], list[np.ndarray]] = {}
        for mesh in meshes:
            if len(mesh.faces):
                found.setdefault(_colour(mesh.visual), []).append(np.asarray(mesh.triangles))
    except Exception as error:  # the package raises errors of many kinds
        alone = " without the files beside it" if path is None and suffix != GLTF[0] else ""
        name, reason = "it" if path is None else path.name, error or type(error).__name__
        raise ValueError(f"{name} cannot be read{alone}: {reason}") from None
    return found


def _colour(visual: Any) -> tuple[float, ...]:
    """Return the mean colour of a mesh."""
    material = getattr(visual, "material", None)
    texture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    if texture is not None:
        pixels = np.asarray(texture.convert("RGBA"), float)
        rgba = pixels.reshape(-1, 4).mean(axis=0)
    elif material is not None:
        rgba = np.asarray(material.main_color, float)
    else:
        rgba = np.asarray(visual.vertex_colors, float).mean(axis=0)
    return tuple(np.round(rgba / 255, 3).tolist())
