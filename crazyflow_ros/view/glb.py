"""GLB files, which browsers draw: triangles with materials.

viser's browser maps all colours with the ACES curve of three.js, which greys bright colours. The
colours of `unlit` surfaces are those that the curve maps to the requested ones.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_FLOAT, _UINT, _ARRAY, _ELEMENTS = 5126, 5125, 34962, 34963  # numbers of glTF
_UNLIT = "KHR_materials_unlit"
# ACESFilmicToneMapping of three.js: curve(x) = OUT @ fit(IN @ x / 0.6), x in linear sRGB.
_INTO = np.array(
    [[0.59719, 0.35458, 0.04823], [0.07600, 0.90834, 0.01566], [0.02840, 0.13383, 0.83777]]
)
_OUT = np.array(
    [[1.60475, -0.53108, -0.07367], [-0.10208, 1.10813, -0.00605], [-0.00327, -0.07276, 1.07602]]
)
_EXPOSURE = 1 / 0.6
_LARGEST = 0.985  # of a curve that reaches 1 at infinity


@dataclass(frozen=True, eq=False)
class GlbPart:
    """Triangles of one material."""

    corners: np.ndarray
    """[m], shape (n, 3)."""
    faces: np.ndarray
    """Indices of corners, counter-clockwise seen from outside, shape (k, 3)."""
    rgba: np.ndarray
    """Linear colour and opacity: of all, shape (4,), or of each corner, shape (n, 4)."""
    is_lit: bool = True
    """Whether light falls on it, or it has its colour from all sides."""
    is_double_sided: bool = False
    material: dict[str, Any] = field(default_factory=dict)
    """Further properties of its glTF material."""


def glb_of(parts: Sequence[GlbPart]) -> bytes:
    """Return the parts as one GLB file, in their frame; at least one is needed."""
    file = _File()
    primitives, materials = [], []
    for part in parts:
        attributes = {"POSITION": file.add(part.corners, np.float32, "VEC3", has_bounds=True)}
        if part.is_lit:  # without normals, three.js shades each triangle as flat
            attributes["NORMAL"] = file.add(_normals(part), np.float32, "VEC3")
        is_colored = part.rgba.ndim == 2
        if is_colored:
            attributes["COLOR_0"] = file.add(part.rgba, np.float32, "VEC4")
        color = [1.0] * 4 if is_colored else part.rgba.tolist()
        opacity = float(part.rgba[:, 3].min() if is_colored else part.rgba[3])
        materials.append(
            {
                "doubleSided": part.is_double_sided,
                "alphaMode": "OPAQUE" if opacity >= 1 else "BLEND",
                "pbrMetallicRoughness": {
                    "baseColorFactor": color,
                    "metallicFactor": 0.0,
                    "roughnessFactor": 0.6,
                },
                **({} if part.is_lit else {"extensions": {_UNLIT: {}}}),
                **part.material,
            }
        )
        primitives.append(
            {
                "attributes": attributes,
                "indices": file.add(part.faces.reshape(-1), np.uint32, "SCALAR"),
                "material": len(materials) - 1,
            }
        )
    # A mesh of several primitives would be a group, of which viser copies only the first one.
    meshes = [{"primitives": [primitive]} for primitive in primitives]
    return file.content(
        {
            "asset": {"version": "2.0"},
            "extensionsUsed": [_UNLIT],
            "scene": 0,
            "scenes": [{"nodes": list(range(len(meshes)))}],
            "nodes": [{"mesh": number} for number in range(len(meshes))],
            "meshes": meshes,
            "materials": materials,
        }
    )


def _normals(part: GlbPart) -> np.ndarray:
    """Return the mean normal of the triangles at each corner, weighted by their areas, (n, 3)."""
    a, b, c = np.moveaxis(part.corners[part.faces], 1, 0)
    normals = np.zeros_like(part.corners, float)
    for column in part.faces.T:
        np.add.at(normals, column, np.cross(b - a, c - a))
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.where(lengths > 0, normals / np.maximum(lengths, 1e-30), [0.0, 0.0, 1.0])


class _File:
    """The binary part of a GLB file with its views and accessors."""

    def __init__(self) -> None:
        self._binary = b""
        self._views: list[dict[str, Any]] = []
        self._accessors: list[dict[str, Any]] = []

    def add(self, array: np.ndarray, kind: Any, name: str, *, has_bounds: bool = False) -> int:
        """Append an array of a type of glTF, and return its number."""
        values = np.ascontiguousarray(array, kind)
        part = values.tobytes()
        is_index = name == "SCALAR"
        self._views.append(
            {
                "buffer": 0,
                "byteOffset": len(self._binary),
                "byteLength": len(part),
                "target": _ELEMENTS if is_index else _ARRAY,
            }
        )
        self._binary += part
        accessor: dict[str, Any] = {
            "bufferView": len(self._views) - 1,
            "componentType": _UINT if is_index else _FLOAT,
            "count": len(values),
            "type": name,
        }
        if has_bounds:
            accessor |= {"min": values.min(axis=0).tolist(), "max": values.max(axis=0).tolist()}
        self._accessors.append(accessor)
        return len(self._accessors) - 1

    def content(self, description: dict[str, Any]) -> bytes:
        """Return the whole file."""
        description |= {
            "accessors": self._accessors,
            "bufferViews": self._views,
            "buffers": [{"byteLength": len(self._binary)}],
        }
        text = json.dumps(description).encode()
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text
        chunks += struct.pack("<I4s", len(self._binary), b"BIN\0") + self._binary
        return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def linear(seen: np.ndarray) -> np.ndarray:
    """Convert sRGB values to linear values, both from 0 to 1."""
    seen = np.asarray(seen, float)
    return np.where(seen <= 0.04045, seen / 12.92, ((seen + 0.055) / 1.055) ** 2.4)


def before_curve(seen: np.ndarray) -> np.ndarray:
    """Return the linear colours (..., 3) that the browser maps to sRGB colours (..., 3)."""
    y = np.clip(linear(seen) @ np.linalg.inv(_OUT).T, 0.0, _LARGEST)
    a, b = 1 - 0.983729 * y, 0.0245786 - 0.4329510 * y  # the fit is a ratio of parabolas
    c = -0.000090537 - 0.238081 * y
    x = (-b + np.sqrt(b**2 - 4 * a * c)) / (2 * a)
    return np.maximum(x @ np.linalg.inv(_INTO).T / _EXPOSURE, 0.0)


def unlit(
    corners: np.ndarray, seen: np.ndarray, faces: np.ndarray, *, is_double_sided: bool = False
) -> GlbPart:
    """Return a surface whose colours are seen exactly, whatever the light.

    Args:
        corners: Corners of the triangles [m], shape (n, 3).
        seen: Red, green, blue and opacity, from 0 to 1, of all, shape (4,), or of each corner,
            shape (n, 4).
        faces: Indices of corners, counter-clockwise seen from outside, shape (k, 3).
        is_double_sided: Whether it is seen from inside, too.
    """
    rgba = np.concatenate([before_curve(seen[..., :3]), seen[..., 3:]], axis=-1)
    return GlbPart(corners, faces, rgba, is_lit=False, is_double_sided=is_double_sided)


def circle(count: int) -> np.ndarray:
    """Return corners of a circle of radius 1, counter-clockwise, shape (count, 2)."""
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def band(first: int, count: int) -> list[np.ndarray]:
    """Return the faces between two closed rings of `count` corners, the first ring inside.

    Args:
        first: Index of the first corner of the first ring, which the second ring follows.
        count: Corners of a ring.
    """
    here = np.arange(count)
    a, b = first + here, first + (here + 1) % count
    return [np.column_stack([a, a + count, b + count]), np.column_stack([a, b + count, b])]
