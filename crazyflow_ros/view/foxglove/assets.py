"""Meshes of this package for Foxglove, by `package://`; no other file is served."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

_PREFIX = "package://crazyflow_ros/"
_MESHES = {".dae", ".glb", ".obj", ".stl"}


def mesh(uri: str, root: Path) -> bytes | None:
    """Return the content of a mesh, or None if there is no such mesh.

    Args:
        uri: For example "package://crazyflow_ros/urdf_mjcf/objects/gate.stl".
        root: Folder of the package's data.
    """
    if not uri.startswith(_PREFIX):
        return None
    with suppress(OSError, ValueError):  # no file can have this name
        file = (root / unquote(uri.removeprefix(_PREFIX))).resolve()
        is_ours = file.is_relative_to((root / "urdf_mjcf").resolve())
        if is_ours and file.suffix.lower() in _MESHES:
            return file.read_bytes()
    return None
