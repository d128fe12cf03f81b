"""Size checks of descriptions of worlds and objects, before MuJoCo reads them.

MuJoCo opens any file that a description names, and builds any number of elements. So it only gets
descriptions that pass the checks: regular files of limited size, and limited numbers of elements,
including those that replicate, composite, flexcomp and attach generate. Compiling the largest takes
some seconds.
"""

from __future__ import annotations

import math
import os
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crazyflow_ros import limits

_DOCTYPE = "<!DOCTYPE"
_PIECES = ("composite", "flexcomp")  # their number of parts is the product of their counts
_REPEATED = "replicate"
_ASSETS = (
    "file",
    "filename",
    "fileleft",
    "fileright",
    "fileup",
    "filedown",
    "filefront",
    "fileback",
)
_FOLDERS = ("assetdir", "meshdir", "texturedir")
_DESCRIPTIONS = ("include", "model")  # elements whose files are descriptions themselves
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER = 24  # bytes, up to the height
_MEBI = {"": 1 / 2**20, "K": 1 / 2**10, "M": 1, "G": 2**10, "T": 2**20, "P": 2**30, "E": 2**40}
_NUMBERS = {
    ("numeric", "size"): 10_000,
    ("user", "dim"): 10_000,
    ("mesh", "maxhullvert"): 100_000,
    ("global", "offwidth"): 8192,
    ("global", "offheight"): 8192,
    ("quality", "shadowsize"): 8192,
}
"""Maximum number, by element and attribute."""
_BUILTIN_RESOLUTION, _SUBDIVISIONS = 100, 5  # of meshes that MuJoCo generates


class NotADescription(ValueError):
    """The description is not XML."""


@dataclass
class _Size:
    """Totals so far, in all files of a description."""

    bytes: int = 0
    elements: int = 0
    pieces: int = 0
    assets: int = 0
    pixels: int = 0
    attached: int = 0
    """Elements that each `attach` adds."""
    seen: set[Path] = field(default_factory=set)
    """Files that have been counted; each counts once."""

    def check(self) -> None:
        """Check the totals."""
        for value, most, what in (
            (self.bytes, limits.DESCRIPTION_BYTES, "bytes"),
            (self.elements, limits.DESCRIPTION_ELEMENTS, "elements, those of replicate included"),
            (self.pieces, limits.DESCRIPTION_PIECES, "parts of composite and flexcomp"),
            (self.assets, limits.ASSET_BYTES, "bytes of meshes, textures and height fields"),
            (self.pixels, limits.ASSET_PIXELS, "pixels of textures and points of height fields"),
        ):
            if value > most:
                raise ValueError(f"a description may have at most {most} {what}, got more")


def check_description(text: str, folder: Path | None = None) -> tuple[str, int]:
    """Check the size of a description.

    Args:
        text: MJCF or URDF.
        folder: Folder of its file, in which files that it names are searched.

    Returns:
        The name of its root element, and the number of elements after expansion.

    Raises:
        NotADescription: It is not XML.
        ValueError: It is too large, names something that is not a regular file, or has a document
            type, whose entities could expand to anything.
    """
    size = _Size()
    root = _count(text, folder or Path.cwd(), size, depth=0)
    return root, size.elements


def check_scene(path: Path) -> None:
    """Check the size of a scene file, see `check_description`.

    Raises:
        ValueError: The file cannot be read, or is refused.
    """
    try:
        check_description(limits.read_text(path, limits.DESCRIPTION_BYTES), path.parent)
    except NotADescription as error:
        raise ValueError(f"scene {str(path)!r} is not XML: {error}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"scene {str(path)!r}: {error}") from None


def _count(text: str, folder: Path, size: _Size, depth: int) -> str:
    """Add the expanded size of a text, and return the name of its root element."""
    size.bytes += len(text)
    size.check()
    if depth > limits.DESCRIPTION_DEPTH:
        most = limits.DESCRIPTION_DEPTH
        raise ValueError(f"descriptions may include one another at most {most} deep")
    if _DOCTYPE in text.upper():
        raise ValueError(f"a description must not have a document type, got {_DOCTYPE}")
    root = _parsed(text)
    folders = [folder, Path.cwd()]
    for compiler in root.iter("compiler"):
        folders += [folder / compiler.get(name, "") for name in _FOLDERS]
    for model in root.iter("model"):  # before elements that attach it
        _count_file("model", model.get("file", ""), 1, folders, size, depth)
    for element, times in _expanded(root):
        size.elements += times * (size.attached if element.tag == "attach" else 1)
        _count_element(element, times, size)
        for name in _ASSETS:
            if file := element.get(name):
                _count_file(element.tag, file, times, folders, size, depth)
        size.check()
    return root.tag


def _parsed(text: str) -> ET.Element:
    """Return the tree; parse in pieces, to stop early if it is too deep."""
    parser: Any = ET.XMLPullParser(("start", "end"))
    depth, root = 0, None
    try:
        for start in range(0, len(text), 65536):
            parser.feed(text[start : start + 65536])
            for event, element in parser.read_events():
                root = element if root is None else root
                depth += 1 if event == "start" else -1
                if depth > limits.DESCRIPTION_DEPTH:
                    most = limits.DESCRIPTION_DEPTH
                    raise ValueError(f"elements may be nested at most {most} deep")
        parser.close()
    except (ET.ParseError, UnicodeEncodeError) as error:
        raise NotADescription(str(error)) from None
    assert isinstance(root, ET.Element)  # because without one the parser fails
    return root


def _expanded(root: ET.Element) -> Iterator[tuple[ET.Element, int]]:
    """Yield all elements, each with the number of its copies."""
    open_elements = [(root, 1)]
    while open_elements:
        element, times = open_elements.pop()
        yield element, times
        if element.tag == _REPEATED:
            times *= max(1, _whole(element, "count"))
        open_elements += [(child, times) for child in element]


def _count_element(element: ET.Element, times: int, size: _Size) -> None:
    for (tag, name), most in _NUMBERS.items():
        if element.tag == tag and _largest(element, name) > most:
            raise ValueError(f"{name} of {tag} must be at most {most}, got {element.get(name)}")
    if element.tag in _PIECES:
        size.pieces += times * math.prod(max(1, n) for n in _wholes(element, "count"))
        if element.get("file"):
            raise ValueError(f"{element.tag} must not be read from a file")
    elif element.tag == "texture":
        width, height = max(1, _whole(element, "width")), max(1, _whole(element, "height"))
        size.pixels += width * height if element.get("type") == "2d" else 6 * width**2
    elif element.tag == "hfield":
        sides = _wholes(element, "nrow") + _wholes(element, "ncol")
        size.pixels += math.prod(max(1, n) for n in sides)
    elif element.tag == "mesh" and (kind := element.get("builtin", "none")) != "none":
        most = _SUBDIVISIONS if kind == "sphere" else _BUILTIN_RESOLUTION
        if _largest(element, "params") > most:
            raise ValueError(f"params of a {kind} must be at most {most}")
    elif element.tag == "size":
        _check_sizes(element)


def _check_sizes(element: ET.Element) -> None:
    """Check the element `size`, which reserves memory."""
    for name, value in element.attrib.items():
        number, unit = value.strip(), ""
        if number[-1:].upper() in _MEBI and number[-1:]:
            number, unit = number[:-1], number[-1].upper()
        try:
            amount = float(number)
        except ValueError:
            continue  # MuJoCo refuses it
        most = limits.MODEL_MEBIBYTES if name == "memory" else 10_000
        if amount * (_MEBI[unit] if name == "memory" else 1) > most:
            unit = " MiB" if name == "memory" else ""
            raise ValueError(f"{name} of size must be at most {most}{unit}, got {value}")


def _count_file(
    tag: str, name: str, times: int, folders: list[Path], size: _Size, depth: int
) -> None:
    """Add the size of a file that a description names, wherever MuJoCo could find it."""
    limits.text(f"file of {tag}", name)
    if not set(name).isdisjoint("\0"):
        raise ValueError(f"{name!r} is not a path")
    places = {folder / part for folder in folders for part in (name, Path(name).name)}
    for path in sorted(place for place in places if os.path.exists(place)):
        path = path.resolve()
        if path in size.seen or path.is_dir():
            continue
        size.seen.add(path)
        if tag in _DESCRIPTIONS:
            before = size.elements
            text = limits.read_text(path, limits.DESCRIPTION_BYTES)
            _count(text, path.parent, size, depth + 1)
            added = size.elements - before
            size.elements += (times - 1) * added
            if tag == "model":
                size.attached += added
        else:
            _count_asset(path, size)
        size.check()


def _count_asset(path: Path, size: _Size) -> None:
    with limits.open_file(path, limits.ASSET_BYTES) as file:
        size.assets += os.fstat(file.fileno()).st_size
        head = file.read(_PNG_HEADER)
    if head.startswith(_PNG) and len(head) == _PNG_HEADER:
        size.pixels += math.prod(struct.unpack(">II", head[16:24]))  # unpacked size


def _whole(element: ET.Element, name: str) -> int:
    return max(_wholes(element, name), default=0)


def _wholes(element: ET.Element, name: str) -> list[int]:
    """Return the integers of an attribute; MuJoCo refuses other values."""
    return [int(number) for number in _floats(element, name)]


def _largest(element: ET.Element, name: str) -> float:
    return max(_floats(element, name), default=0.0)


def _floats(element: ET.Element, name: str) -> list[float]:
    numbers = []
    for word in element.get(name, "").split()[:16]:
        try:
            number = float(word)
        except ValueError:
            continue
        numbers.append(min(max(number, -1e9), 1e9) if number == number else 0.0)
    return numbers
