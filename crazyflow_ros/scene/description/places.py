"""Paths of URIs: file:, package://, model:// and those of Fuel, as ROS and Gazebo resolve them.

The user may name any file. Others in the ROS domain may name only files in some `Folders`, and get
the same refusal for all other files, whether these exist or not.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from crazyflow_ros.checks import limits
from crazyflow_ros.resources import resource

_MODEL_FOLDERS = (
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "GAZEBO_MODEL_PATH",
    "SDF_PATH",
)
PREFIXES = "AMENT_PREFIX_PATH"
"""Variable with the folders of installed ROS packages."""
_PACKAGES = "ROS_PACKAGE_PATH"
_AROUND = 4  # folders above a file, beside which packages and models are searched
_MANIFEST_BYTES = 1 << 20
SCHEMES = ("file", "package", "model")


class UnknownScheme(ValueError):
    """The scheme of the URI is not one of `SCHEMES`."""


class Folders:
    """Folders whose files others than the user may name, including those of packages and models.

    Links in folders that the user names must not lead elsewhere. Links in folders of packages may,
    because installations make them, such as `colcon build --symlink-install`.

    Args:
        named: Folders that the user names.
        files: Further files.
    """

    def __init__(self, named: Iterable[str], files: Iterable[Path] = ()) -> None:
        self._named = [Path(os.path.realpath(Path(folder).expanduser())) for folder in named]
        self._files = {Path(os.path.realpath(file)) for file in files}
        models = (path for variable in _MODEL_FOLDERS for path in _listed(variable))
        shares = (os.path.join(prefix, "share") for prefix in _listed(PREFIXES))
        self._own = resource("urdf_mjcf")
        installed = [*shares, *_listed(_PACKAGES), *models, str(self._own)]
        self._installed = [Path(os.path.abspath(folder)) for folder in installed]

    @property
    def base(self) -> Path:
        """The folder to which paths in a text are relative."""
        return self._named[0] if self._named else self._own

    def path_of(self, uri: str) -> Path:
        """Return the path of a file or folder, which need not exist.

        Args:
            uri: As for the function; a path is relative to the folders that the user names.

        Raises:
            ValueError: As for the function.
            FileNotFoundError: The path is in no folder, or there is no such package or model.
        """
        path = unexpanded_path_of(uri)
        found = (self.inside(folder / path) for folder in (self._own, *self._named))
        inside = [place for place in found if place is not None]
        if not inside:
            raise FileNotFoundError(
                f"{limits.shown_path(uri)} is in no folder from which files are read: name its "
                "folder at the start in the parameter world_folders, or send its text"
            )
        return next((place for place in inside if place.exists()), inside[-1])

    def has(self, uri: str) -> bool:
        """Return whether a file or folder exists and may be named.

        Raises:
            ValueError: As for the function `path_of`.
        """
        try:
            return self.path_of(uri).exists()
        except FileNotFoundError:
            return False

    def inside(self, path: Path) -> Path | None:
        """Return the normalised path if it is in one of the folders."""
        normal = Path(os.path.normpath(path))
        real = Path(os.path.realpath(normal))
        if real in self._files or any(real.is_relative_to(folder) for folder in self._named):
            return real
        return normal if any(normal.is_relative_to(f) for f in self._installed) else None


def path_of(uri: str, folder: Path | None = None) -> Path:
    """Return the path that a URI means, which need not exist.

    Args:
        uri: A path, or a URI `file:...`, `package://<package>/...` or `model://<model>/...`.
        folder: Folder of the file that has the URI. Packages and models around it, and beside the
            folders around it, are found, too.

    Raises:
        UnknownScheme: It is a URI of another kind.
        ValueError: It is not a path.
        FileNotFoundError: There is no such package or model.
    """
    path = unexpanded_path_of(uri, folder)
    try:
        return path.expanduser()
    except RuntimeError as error:  # unknown user
        raise ValueError(f"{limits.shown(uri)!r}: {error}") from None


def unexpanded_path_of(uri: str, folder: Path | None = None) -> Path:
    """Return the path as `path_of` does, but without expanding `~`."""
    parts = urlsplit(limits.text("uri", uri))
    if len(parts.scheme) < 2:  # a path; one letter is a drive
        path = Path(uri.replace("\\", "/"))
    elif parts.scheme == "file":
        path = Path(unquote(parts.path))
    elif parts.scheme in SCHEMES:
        found = _folder_of(parts.scheme, unquote(parts.netloc), folder)
        path = found / unquote(parts.path).lstrip("/")
    elif "/models/" in parts.path and parts.scheme in ("http", "https"):
        path = _of_fuel(uri, parts.netloc, unquote(parts.path))
    else:
        known = ", ".join(f"{scheme}:" for scheme in SCHEMES)
        raise UnknownScheme(f"expected a path or one of {known}, got {limits.shown(uri)!r}")
    if "\0" in str(path):
        raise ValueError(f"{limits.shown(uri)!r} is not a path: it has a null character")
    return path


def _folder_of(kind: str, name: str, folder: Path | None) -> Path:
    """Return the folder of a package or model.

    Raises:
        FileNotFoundError: There is none.
    """
    around = [] if folder is None else [folder, *folder.absolute().parents]
    if kind == "package":
        places = [Path(prefix) / "share" / name for prefix in _listed(PREFIXES)]
        places += [Path(path) / name for path in _listed(_PACKAGES)]
        beside = {} if folder is None else packages_around(folder.absolute())
        places += [beside[name]] if name in beside else []
        where = f"in {PREFIXES}, {_PACKAGES}"
    else:
        places = [Path(path) / name for key in _MODEL_FOLDERS for path in _listed(key)]
        where = f"in {', '.join(_MODEL_FOLDERS)}"
    places += [path for path in around if path.name == name]
    places += [path / name for path in around[:_AROUND] if name == Path(f"/{name}").resolve().name]
    for place in places:
        if place.is_dir():
            return place
    what = f"there is no {kind} {limits.shown(name)!r}"
    raise FileNotFoundError(f"{what} {where} or around the file")


def packages_around(folder: Path) -> dict[str, Path]:
    """Return the ROS packages around a folder, and beside the folders around it, by name."""
    around = [folder, *folder.parents]
    beside = [one for above in around[:_AROUND] for one in sorted(above.glob("*/package.xml"))]
    found: dict[str, Path] = {}
    for one in (*around, *(manifest.parent for manifest in beside)):
        if name := _package_name(one):
            found.setdefault(name, one)
    return found


def _of_fuel(uri: str, host: str, path: str) -> Path:
    """Return the folder of a model of Gazebo Fuel, or a file in it, after `gz fuel download`.

    Raises:
        FileNotFoundError: It was not downloaded.
    """
    owner, _, inside = path.rpartition("/models/")
    name, *rest = inside.strip("/").split("/")
    usual = Path("~/.gz/fuel").expanduser(), Path("~/.ignition/fuel").expanduser()
    for cache in [Path(one) for one in _listed("GZ_FUEL_CACHE_PATH")] or usual:
        folder = cache / host / owner.rpartition("/")[2].lower() / "models" / name.lower()
        versions = [one.name for one in folder.glob("*") if one.name.isdigit()]
        if versions:
            asked = rest[0] if rest and rest[0] in versions else max(versions, key=int)
            return folder.joinpath(asked, *(rest[2:] if "files" in rest[:2] else ()))
    raise FileNotFoundError(f"{limits.shown(uri)} is not here: gz fuel download -u {uri}")


def _listed(variable: str) -> Iterator[str]:
    yield from filter(None, os.environ.get(variable, "").split(os.pathsep))


def _package_name(folder: Path) -> str | None:
    """Return the name of the ROS package in a folder, if it is one."""
    try:
        manifest = limits.read_text(folder / "package.xml", _MANIFEST_BYTES)
        return (ET.fromstring(manifest).findtext("name") or "").strip()
    except (OSError, ValueError, ET.ParseError):
        return None
