"""Reads a description once: one text, and the bytes of all files that it names.

SDF and xacro become MJCF and URDF first. MuJoCo opens any file that a description names. So this
module resolves a description first, as MuJoCo's parser would: it inserts included files, and reads
meshes, textures, height fields, skins and models. It gives these unique names, by which MuJoCo
finds exactly these bytes in a virtual file system. Unlike in MuJoCo, files may also be
`package://`, `model://` and `file:` URIs, the meshes of a URDF need not lie beside it, and a URDF
keeps its visuals.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from crazyflow_ros.checks import limits
from crazyflow_ros.scene.description import drawings, sdf, xacro_files
from crazyflow_ros.scene.description.description import CONVERTED, CONVERTED_PART, Description
from crazyflow_ros.scene.description.elements import Element, parsed, written
from crazyflow_ros.scene.description.places import Folders, path_of, unexpanded_path_of

_ROOTS = {"mujoco": "mjcf", "robot": "urdf", "sdf": "mjcf"}
"""Formats by name of the root element; SDF is converted."""

_MOST_COLOURS = 64  # of a mesh file; those with more are drawn as one mesh
_FLEX = "flexcomp"
_FILES = {
    "mesh": ("file", "filename"),  # filename in URDF
    "skin": ("file",),
    "hfield": ("file",),
    _FLEX: ("file",),
    "texture": tuple(
        f"file{side}" for side in ("", "right", "left", "up", "down", "front", "back")
    ),
}
"""Attributes that name files, by element."""
_FOLDERS = {"mesh": "meshdir", "texture": "texturedir", "hfield": "meshdir", "skin": "meshdir"}
"""Attribute of `compiler` with the folder of these files, by element; without it, assetdir."""
_MODEL = "model"  # an asset that is a description itself


class UnknownFormat(ValueError):
    """The description is neither MJCF nor URDF nor SDF."""


def read(path: Path, *, limited: bool = False) -> Description:
    """Read a description from a file.

    Args:
        path: The file.
        limited: Whether the description comes from someone other than the user, so that its size is
            limited, and xacro does not expand it.

    Raises:
        FileNotFoundError: The file, or a file that it names, does not exist.
        OSError: A file cannot be read.
        NotADescription: A file is not XML.
        ValueError: A file is refused.
        ModuleNotFoundError: It is one of xacro, which is not installed.
    """
    reader = _Reader(limited)
    content = reader.bytes_of(path, text=True)
    if not limited and xacro_files.is_xacro(path, content):
        content = xacro_files.expanded(path)
    return reader.description(content, path.parent, path)


def read_text(text: str, *, limited: bool = False, folders: Folders | None = None) -> Description:
    """Return the description in a text.

    Args:
        text: The text.
        limited: As for `read`.
        folders: Where its files may be; by default anywhere, and in the working folder.

    Raises:
        Exception: As for `read`.
    """
    reader = _Reader(limited, folders)
    reader.count(len(text), text=True)
    return reader.description(text, Path.cwd() if folders is None else folders.base, None)


class _Reader:
    """Reads one description with all its files."""

    def __init__(self, limited: bool, folders: Folders | None = None) -> None:
        self._folders, self._limited = folders, limited
        self._drawn: dict[Path, list[tuple[str, str]]] = {}
        self._left = {
            True: limits.DESCRIPTION_BYTES if limited else sys.maxsize,
            False: limits.ASSET_BYTES if limited else sys.maxsize,
        }  # bytes of texts, and of other files
        self._assets: dict[str, bytes] = {}
        self._parts: dict[str, bytes] = {}
        self._read: dict[Path, tuple[str, bytes]] = {}  # names and contents of files
        self._reading: list[Path] = []  # models that contain one another

    def description(self, content: str | bytes, folder: Path, path: Path | None) -> Description:
        root = parsed(content, "" if path is None else path.name)
        kind = _ROOTS.get(root.tag.lower())
        if kind is None:
            expected = " or ".join(f"<{tag}>" for tag in _ROOTS)
            got = limits.shown(root.tag)
            raise UnknownFormat(f"the root element has to be {expected}, got <{got}>")
        root.tag, note = root.tag.lower(), ""
        if root.tag == "sdf":
            root, note = sdf.as_mjcf(root, folder, self)
        elif kind == "mjcf":
            _Mjcf(self, root, folder, path).resolve()
        else:
            _resolve_urdf(self, root, folder)
        text, places = written(root)
        return Description(text, self._assets, self._parts, kind, path, places, note)

    def count(self, size: int, *, text: bool) -> None:
        """Subtract bytes from the number that may still be read.

        Raises:
            ValueError: The limit is exceeded.
        """
        self._left[text] -= size
        if self._left[text] < 0:
            most = limits.DESCRIPTION_BYTES if text else limits.ASSET_BYTES
            what = "" if text else " of meshes, textures and height fields"
            raise ValueError(f"a description may have at most {most} bytes{what}, got more")

    def bytes_of(self, path: Path, *, text: bool) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: It does not exist or cannot be read.
            ValueError: It is not a regular file, or too large.
        """
        with limits.open_file(path, sys.maxsize) as file:
            size = os.fstat(file.fileno()).st_size
            self.count(size, text=text)
            content = file.read(size + 1)
        if len(content) != size:
            raise ValueError(f"{limits.shown_path(path)} changes while it is read")
        return content

    def path_of(self, uri: str, folder: Path) -> Path:
        """Return the path of a URI in a file of a folder; see `places.path_of`."""
        return path_of(uri, folder) if self._folders is None else unexpanded_path_of(uri)

    def first(self, places: Iterable[Path], what: str) -> Path:
        """Return the first place that exists and may be read.

        Raises:
            FileNotFoundError: There is no such place.
        """
        looked_in = list(dict.fromkeys(places))
        for place in looked_in:
            found = place if self._folders is None else self._folders.inside(place)
            if found is not None and os.path.exists(found):
                return found
        names = " or ".join(limits.shown_path(place) for place in looked_in)
        raise FileNotFoundError(f"{what}: there is no file {names}")

    def asset(self, element: str, path: Path) -> str:
        """Read a file that an element names, and return its name in the virtual file system."""
        path = path.resolve()
        if path not in self._read:
            content = self.bytes_of(path, text=False)
            suffix = path.suffix
            if suffix.lower() == drawings.GLTF[1] and not self._limited:  # with others beside it
                content, suffix = drawings.as_obj(path.suffix, content, path), CONVERTED_PART
            elif suffix.lower() in CONVERTED:
                suffix = f"{suffix.lower()}.obj"
            self._read[path] = f"{_short(content)}/{path.stem}{suffix}", content
        name, content = self._read[path]
        (self._parts if element == _FLEX else self._assets)[name] = content
        return name

    def drawings(self, path: Path) -> list[tuple[str, str]]:
        """Return names as assets and colours of the parts of a mesh file; empty if it has none.

        Files of strangers are not split, because their materials would be read here.
        """
        path = path.resolve()
        if self._limited or path.suffix.lower() not in drawings.COLOURED:
            return []
        if path not in self._drawn:
            content = self.bytes_of(path, text=False)
            is_plain = path.suffix.lower() == ".obj" and b"mtllib" not in content
            try:
                parts = [] if is_plain else drawings.drawings_of(path, content)
            except (ValueError, ModuleNotFoundError):
                parts = []  # said where the mesh is converted
            self._drawn[path] = []
            parts = parts if len(parts) <= _MOST_COLOURS else []
            for number, part in enumerate(parts):
                name = f"{_short(part.obj)}/{path.stem}_{number}{CONVERTED_PART}"
                self._assets[name] = part.obj
                self._drawn[path].append((name, " ".join(map(str, part.rgba))))
        return self._drawn[path]

    def model(self, path: Path) -> str:
        """Read another description, and return its name in the virtual file system."""
        path = path.resolve()
        if path in self._reading or len(self._reading) >= limits.DESCRIPTION_DEPTH:
            raise ValueError(f"{limits.shown_path(path)} contains itself")
        self._reading.append(path)
        content = self.description(self.bytes_of(path, text=True), path.parent, path).text.encode()
        self._reading.pop()
        name = f"{_short(content)}/{path.name}"
        self._parts[name] = content
        return name


@dataclass
class _Mjcf:
    """An MJCF document and where MuJoCo searches its files."""

    reader: _Reader
    root: Element
    folder: Path
    path: Path | None
    included: set[str] = field(default_factory=set)
    folders: dict[str, str] = field(default_factory=dict)
    """Attributes of all `compiler` elements; the last one counts."""

    def resolve(self) -> None:
        """Insert included files, and name assets as in the virtual file system."""
        if self.path is not None:
            self.included.add(str(self.path))
        origins = {id(self.root): self.folder}
        self._include(self.root, self.folder, origins, depth=1)
        for compiler in (e for e in self.root.iter() if e.tag == "compiler"):
            for name in ("assetdir", "meshdir", "texturedir", "strippath"):
                if name in compiler.attributes:
                    self.folders[name] = compiler.attributes.pop(name)
        waiting = [(self.root, self.folder)]
        while waiting:
            element, origin = waiting.pop()
            origin = origins.get(id(element), origin)
            for name in _FILES.get(element.tag, ()):
                if file := element.get(name):
                    path = self._found(element, file, origin)
                    element.attributes[name] = self.reader.asset(element.tag, path)
            if element.tag == _MODEL and (file := element.get("file")):
                element.attributes["file"] = self.reader.model(self._found(element, file, origin))
            waiting += [(child, origin) for child in reversed(element.children)]

    def _include(self, parent: Element, here: Path, origins: dict[int, Path], depth: int) -> None:
        """Replace the includes below an element by the content of their files.

        Args:
            parent: The element.
            here: Folder of the file that it comes from.
            origins: Filled with folders of elements that come from other files than their parents.
            depth: Depth of files that include one another.
        """
        if depth > limits.DESCRIPTION_DEPTH:
            most = limits.DESCRIPTION_DEPTH
            raise ValueError(f"descriptions may include one another at most {most} deep")
        children: list[Element] = []
        for child in parent.children:
            if child.tag.lower() != "include":
                self._include(child, here, origins, depth)
                children.append(child)
                continue
            path = self._included_file(child, here)
            root = parsed(self.reader.bytes_of(path, text=True), path.name)
            if not root.children:
                raise ValueError(f"include in {child.place}: {path.name} has no elements")
            self._include(root, path.parent, origins, depth + 1)
            for element in root.children:
                origins.setdefault(id(element), path.parent)
            children += root.children
        parent.children = children

    def _included_file(self, include: Element, here: Path) -> Path:
        name = include.get("file")
        if not name or include.children:
            rule = "needs the attribute file" if not name else "must not have elements inside"
            raise ValueError(f"include in {include.place} {rule}")
        path = self.reader.path_of(name, here)
        places = [path] if path.is_absolute() else [self.folder / path, here / path]
        path = self.reader.first(places, f"include in {include.place}")
        key = str(path.resolve())
        if key in self.included:
            raise ValueError(f"include in {include.place}: {name!r} is already included")
        self.included.add(key)
        return path

    def _found(self, element: Element, file: str, origin: Path) -> Path:
        """Return the file that an element names, where MuJoCo would find it."""
        path = self.reader.path_of(file, origin)
        what = f"{element.tag} in {element.place}"
        if self.folders.get("strippath") == "true":
            path = Path(path.name)
        if path.is_absolute():
            return self.reader.first([path], what)
        kind = _FOLDERS.get(element.tag)
        folder = self.folder
        if kind is not None:
            own = self.folders.get(kind) or self.folders.get("assetdir", "")
            folder /= self.reader.path_of(own, self.folder) if own else ""
        inside = os.path.relpath(origin, self.folder)
        return self.reader.first([folder / path, origin / path, folder / inside / path], what)


def _resolve_urdf(reader: _Reader, root: Element, folder: Path) -> None:
    """Name the meshes of a URDF as in the virtual file system, and keep its visuals."""
    extension = next((child for child in root.children if child.tag == "mujoco"), None)
    if extension is None:
        extension = Element("mujoco", {}, root.place)
        root.children.insert(0, extension)
    compiler = next((child for child in extension.children if child.tag == "compiler"), None)
    if compiler is None:
        compiler = Element("compiler", {}, root.place)
        extension.children.insert(0, compiler)
    meshes = folder / (compiler.attributes.pop("meshdir", "") or compiler.get("assetdir"))
    for name in ("assetdir", "texturedir"):
        compiler.attributes.pop(name, None)
    for element in root.iter():  # MuJoCo refuses invisible shapes of size 0
        element.children = [
            child
            for child in element.children
            if child.tag not in ("visual", "collision") or not _is_nothing(child)
        ]
    compiler.attributes["strippath"] = "false"
    compiler.attributes.setdefault("discardvisual", "false")
    for element in root.iter():
        if element.tag.startswith("xacro:"):
            raise ValueError(f"{element.tag} in {element.place}: expand it with xacro first")
        if element.tag == "axis":
            element.attributes.setdefault("xyz", "1 0 0")  # as URDF says
        if element.tag == "mesh" and (file := element.get("filename")):
            path = reader.path_of(file, folder)
            what = f"mesh in {element.place}"
            places = [meshes / path, folder / path, meshes / path.name]
            element.attributes["filename"] = str(reader.first(places, what))
    for link in root.iter():
        link.children = [part for one in link.children for part in _coloured(reader, one)]


def _coloured(reader: _Reader, element: Element) -> Iterator[Element]:
    """Yield a part of a link with its mesh as an asset; a visual once for each colour of its file.

    A material of the visual comes before those of the file.
    """
    mesh = next((one for one in element.iter() if one.tag == "mesh"), None)
    if element.tag not in ("visual", "collision") or mesh is None or not mesh.get("filename"):
        yield element
        return
    path = Path(mesh.attributes["filename"])
    has_material = element.tag == "collision" or any(
        child.tag == "material" for child in element.children
    )
    parts = [] if has_material else reader.drawings(path)
    if not parts:
        mesh.attributes["filename"] = reader.asset("mesh", path)
        yield element
    for name, rgba in parts:
        part = deepcopy(element)
        part.attributes.pop("name", None)
        next(one for one in part.iter() if one.tag == "mesh").attributes["filename"] = name
        material = Element("material", {"name": f"colour {rgba}"}, element.place)
        material.children.append(Element("color", {"rgba": rgba}, element.place))
        part.children.append(material)
        yield part


def _is_nothing(visual: Element) -> bool:
    """Return whether the shape of a visual or a collision has no size at all."""
    sizes = [
        element.get(name).split()
        for element in visual.iter()
        for name in ("size", "radius", "length")
        if name in element.attributes
    ]
    return bool(sizes) and all(number.strip("0.") == "" for size in sizes for number in size)


def _short(content: bytes) -> str:
    """Return a name of a virtual folder for a content, so that files with equal names differ."""
    return hashlib.sha256(content).hexdigest()[:16]
