"""Conversion of Collada meshes (.dae), which most robots for ROS have, for MuJoCo."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from crazyflow_ros.extras import extra

SUFFIX = ".dae"
GREY = (0.7, 0.7, 0.7, 1.0)
"""Of what has a texture, or no colour."""
_MATERIALS = re.compile(rb"<bind_material\b.*?</bind_material>", re.DOTALL)


def as_obj(content: bytes) -> bytes:
    """Convert a Collada document to an OBJ file: the triangles of its scene, in metres.

    As in RViz, the document's unit applies and its `up_axis` is ignored. Colours, textures and
    animations are left out.

    Raises:
        ValueError: The document cannot be read, or has no triangles.
        ModuleNotFoundError: The package that reads Collada is not installed.
    """
    parts = [part for parts in triangles_of(content).values() for part in parts]
    if not parts:
        raise ValueError("it has no triangles")
    return obj_of(parts)


def triangles_of(content: bytes) -> dict[tuple[float, ...], list[np.ndarray]]:
    """Return the triangles (N, 3, 3) of a document's scene by their diffuse colours (4,).

    Raises:
        ValueError: The document cannot be read.
        ModuleNotFoundError: The package that reads Collada is not installed.
    """
    found = _read(content)
    if not found:  # the package drops shapes whose materials are broken
        found = _read(_MATERIALS.sub(b"", content))
    return found


def _read(content: bytes) -> dict[tuple[float, ...], list[np.ndarray]]:
    with extra("collada"):
        import collada
    ignored = [  # where they concern what is left out
        collada.common.DaeUnsupportedError,
        collada.common.DaeBrokenRefError,
        collada.common.DaeIncompleteError,
    ]
    found: dict[tuple[float, ...], list[np.ndarray]] = {}
    try:
        document = collada.Collada(io.BytesIO(content), ignore=ignored)
        unit = float(document.assetInfo.unitmeter or 1.0)
        for geometry in () if document.scene is None else document.scene.objects("geometry"):
            for rgba, part in _triangles(geometry):
                found.setdefault(rgba, []).append(part * unit)
    except RecursionError:
        raise ValueError("its nodes are nested too deep") from None
    except Exception as error:  # the package raises errors of many kinds
        raise ValueError(
            f"it is not a readable Collada file: {error or type(error).__name__}"
        ) from None
    return found


def obj_of(parts: Iterable[np.ndarray]) -> bytes:
    """Return an OBJ file of triangles (N, 3, 3)."""
    corners = np.concatenate(list(parts)).reshape(-1, 3)
    points, indices = np.unique(corners, axis=0, return_inverse=True)
    text = io.StringIO()
    np.savetxt(text, points, fmt="v %.9g %.9g %.9g")
    np.savetxt(text, indices.reshape(-1, 3) + 1, fmt="f %d %d %d")
    return text.getvalue().encode()


def _triangles(geometry: Any) -> Iterator[tuple[tuple[float, ...], np.ndarray]]:
    """Yield colours and triangles (N, 3, 3) of a geometry in the scene."""
    for primitive in geometry.primitives():
        if hasattr(primitive, "triangleset"):  # polygons
            primitive = primitive.triangleset()
        index = getattr(primitive, "vertex_index", None)
        if index is not None and index.ndim == 2 and index.shape[1] == 3 and len(index):
            diffuse = getattr(getattr(primitive.material, "effect", None), "diffuse", None)
            rgba = diffuse if isinstance(diffuse, tuple) and len(diffuse) >= 3 else GREY
            rgba = tuple(round(float(part), 3) for part in (*rgba, 1.0)[:4])
            yield rgba, np.asarray(primitive.vertex, float)[index]
