"""Paths of URIs: file:, package:// and model:// as ROS and Gazebo resolve them."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from crazyflow_ros.checks import limits

_MODEL_FOLDERS = (
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "GAZEBO_MODEL_PATH",
    "SDF_PATH",
)
_MANIFEST_BYTES = 1 << 20
SCHEMES = ("file", "package", "model")


class UnknownScheme(ValueError):
    """The URI has a scheme that nobody here resolves."""


def path_of(uri: str, folder: Path | None = None) -> Path:
    """Return the path that a URI means, which need not exist.

    Args:
        uri: A path, or a URI `file:...`, `package://<package>/...` or `model://<model>/...`.
        folder: Folder of the file that has the URI. Packages and models around it are found, too.

    Raises:
        UnknownScheme: It is a URI of another kind.
        ValueError: It is not a path.
        FileNotFoundError: There is no such package or model.
    """
    parts = urlsplit(limits.text("uri", uri))
    if len(parts.scheme) < 2:  # a path; one letter is a drive
        path = Path(uri.replace("\\", "/"))
    elif parts.scheme == "file":
        path = Path(unquote(parts.path))
    elif parts.scheme in SCHEMES:
        found = _folder_of(parts.scheme, unquote(parts.netloc), folder)
        path = found / unquote(parts.path).lstrip("/")
    else:
        known = ", ".join(f"{scheme}:" for scheme in SCHEMES)
        raise UnknownScheme(f"expected a path or one of {known}, got {limits.shown(uri)!r}")
    if "\0" in str(path):
        raise ValueError(f"{limits.shown(uri)!r} is not a path: it has a null character")
    try:
        return path.expanduser()
    except RuntimeError as error:  # unknown user
        raise ValueError(f"{limits.shown(uri)!r}: {error}") from None


def _folder_of(kind: str, name: str, folder: Path | None) -> Path:
    """Return the folder of a package or model.

    Raises:
        FileNotFoundError: There is none.
    """
    around = [] if folder is None else [folder, *folder.absolute().parents]
    if kind == "package":
        places = [Path(prefix) / "share" / name for prefix in _listed("AMENT_PREFIX_PATH")]
        places += [Path(path) / name for path in _listed("ROS_PACKAGE_PATH")]
        places += [path for path in around if _package_name(path) == name]
        where = "in AMENT_PREFIX_PATH, ROS_PACKAGE_PATH"
    else:
        places = [Path(path) / name for key in _MODEL_FOLDERS for path in _listed(key)]
        where = f"in {', '.join(_MODEL_FOLDERS)}"
    places += [path for path in around if path.name == name]
    for place in places:
        if place.is_dir():
            return place
    what = f"there is no {kind} {limits.shown(name)!r}"
    raise FileNotFoundError(f"{what} {where} or around the file")


def _listed(variable: str) -> Iterator[str]:
    yield from filter(None, os.environ.get(variable, "").split(os.pathsep))


def _package_name(folder: Path) -> str | None:
    """Return the name of the ROS package in a folder, if it is one."""
    try:
        manifest = limits.read_text(folder / "package.xml", _MANIFEST_BYTES)
        return (ET.fromstring(manifest).findtext("name") or "").strip()
    except (OSError, ValueError, ET.ParseError):
        return None
