"""STL files as text, converted to the binary ones that MuJoCo reads."""

from __future__ import annotations

import re

import numpy as np

SUFFIX = ".stl"
_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)")
_HEADER, _COUNT = 80, 4  # bytes
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])


def as_binary(content: bytes) -> bytes:
    """Return an STL file in its binary form.

    Args:
        content: The file; returned as it is unless it is a text.

    Raises:
        ValueError: A text with anything but triangles of finite corners.
    """
    if content.lstrip()[:5].lower() != b"solid" or _is_binary(content):
        return content
    numbers = [float(x) for vertex in _VERTEX.findall(content) for x in vertex]
    corners = np.array(numbers).reshape(-1, 3)
    if not len(corners) or len(corners) % 3 or not np.isfinite(corners).all():
        raise ValueError(f"an STL file as text must have triangles, got {len(corners)} corners")
    triangles = np.zeros(len(corners) // 3, _TRIANGLE)
    triangles["corners"] = corners.reshape(-1, 3, 3)
    return bytes(_HEADER) + np.uint32(len(triangles)).tobytes() + triangles.tobytes()


def _is_binary(content: bytes) -> bool:
    """Return whether the size is that of a binary file, whose header may begin with any word."""
    if len(content) < _HEADER + _COUNT:
        return False
    count = int.from_bytes(content[_HEADER : _HEADER + _COUNT], "little")
    return len(content) == _HEADER + _COUNT + count * _TRIANGLE.itemsize
