"""Conversion of Collada meshes (.dae), which most robots for ROS have, for MuJoCo."""

from __future__ import annotations

import io

import numpy as np

from crazyflow_ros.extras import extra

SUFFIX = ".dae"


def as_obj(content: bytes) -> bytes:
    """Convert a Collada document to an OBJ file: the triangles of its scene, in metres.

    As in RViz, the document's unit applies and its `up_axis` is ignored. Colours, textures and
    animations are left out.

    Raises:
        ValueError: The document cannot be read, or has no triangles.
        ModuleNotFoundError: The package that reads Collada is not installed.
    """
    with extra("collada"):
        import collada
    ignored = [  # where they concern what is left out
        collada.common.DaeUnsupportedError,
        collada.common.DaeBrokenRefError,
        collada.common.DaeIncompleteError,
    ]
    try:
        document = collada.Collada(io.BytesIO(content), ignore=ignored)
        found = [] if document.scene is None else list(document.scene.objects("geometry"))
        parts = [part for geometry in found for part in _triangles(geometry)]
        unit = float(document.assetInfo.unitmeter or 1.0)
    except RecursionError:
        raise ValueError("its nodes are nested too deep") from None
    except Exception as error:  # the package raises errors of many kinds
        raise ValueError(
            f"it is not a readable Collada file: {error or type(error).__name__}"
        ) from None
    if not parts:
        raise ValueError("it has no triangles")
    corners = np.concatenate(parts).reshape(-1, 3) * unit
    points, indices = np.unique(corners, axis=0, return_inverse=True)
    text = io.StringIO()
    np.savetxt(text, points, fmt="v %.9g %.9g %.9g")
    np.savetxt(text, indices.reshape(-1, 3) + 1, fmt="f %d %d %d")
    return text.getvalue().encode()


def _triangles(geometry: object) -> list[np.ndarray]:
    """Return the triangles of a geometry in the scene, each array (n, 3, 3)."""
    found = []
    for primitive in geometry.primitives():  # type: ignore[attr-defined]
        if hasattr(primitive, "triangleset"):  # polygons
            primitive = primitive.triangleset()
        index = getattr(primitive, "vertex_index", None)
        if index is not None and index.ndim == 2 and index.shape[1] == 3 and len(index):
            found.append(np.asarray(primitive.vertex, float)[index])
    return found
