"""Descriptions of worlds and objects from outside: how large they may be, before MuJoCo reads them.

MuJoCo opens whatever file a description names, and builds whatever number of things it asks for.
So it gets only what has passed here: regular files of limited size, and limited numbers of things,
with those that replicate, composite, flexcomp and attach make of a few words. Compiling the largest
takes some seconds.
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
_PIECES = ("composite", "flexcomp")  # of as many parts as the product of their counts
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
_DESCRIPTIONS = ("include", "model")  # elements whose files are descriptions, too
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
"""By element and attribute, the largest number."""
_BUILTIN_RESOLUTION, _SUBDIVISIONS = 100, 5  # of meshes that MuJoCo makes


class NotADescription(ValueError):
    """It is not XML."""


@dataclass
class _Size:
    """What has been counted so far, in all files of a description."""

    bytes: int = 0
    elements: int = 0
    pieces: int = 0
    assets: int = 0
    pixels: int = 0
    attached: int = 0
    """Elements that are put in with each `attach`."""
    seen: set[Path] = field(default_factory=set)
    """Files that were counted, each once."""

    def check(self) -> None:
        """Refuse what is too much."""
        for value, most, what in (
            (self.bytes, limits.DESCRIPTION_BYTES, "bytes"),
            (self.elements, limits.DESCRIPTION_ELEMENTS, "elements, those of replicate included"),
            (self.pieces, limits.DESCRIPTION_PIECES, "parts of composite and flexcomp"),
            (self.assets, limits.ASSET_BYTES, "bytes of meshes, textures and height fields"),
            (self.pixels, limits.ASSET_PIXELS, "pixels of textures and points of height fields"),
        ):
            if value > most:
                raise ValueError(f"a description may have {most} {what} at most, it has more")


def check_description(text: str, folder: Path | None = None) -> tuple[str, int]:
    """Refuse a description that asks for too much.

    Args:
        text: MJCF or URDF.
        folder: Of the file that it is from; files that it names are looked for there.

    Returns:
        The name of its root element, and the number of elements that it is expanded to.

    Raises:
        NotADescription: It is not XML.
        ValueError: It is too large, names something that is not a regular file, or has a document
            type, whose entities could make anything of it.
    """
    size = _Size()
    root = _count(text, folder or Path.cwd(), size, depth=0)
    return root, size.elements


def check_scene(path: Path) -> None:
    """Refuse a file of a scene that asks for too much, see `check_description`.

    Raises:
        ValueError: It cannot be read, or is refused.
    """
    try:
        check_description(limits.read_text(path, limits.DESCRIPTION_BYTES), path.parent)
    except NotADescription as error:
        raise ValueError(f"scene {str(path)!r} is no XML: {error}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"scene {str(path)!r}: {error}") from None


def _count(text: str, folder: Path, size: _Size, depth: int) -> str:
    """Add what a text is expanded to; returns the name of its root element."""
    size.bytes += len(text)
    size.check()
    if depth > limits.DESCRIPTION_DEPTH:
        most = limits.DESCRIPTION_DEPTH
        raise ValueError(f"descriptions may include one another {most} deep at most")
    if _DOCTYPE in text.upper():
        raise ValueError(f"a description has no document type, got {_DOCTYPE}")
    root = _parsed(text)
    folders = [folder, Path.cwd()]
    for compiler in root.iter("compiler"):
        folders += [folder / compiler.get(name, "") for name in _FOLDERS]
    for model in root.iter("model"):  # before what attaches it
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
    """The tree, read piece by piece so that what is too deep ends it early."""
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
                    raise ValueError(f"elements may be nested {most} deep at most")
        parser.close()
    except (ET.ParseError, UnicodeEncodeError) as error:
        raise NotADescription(str(error)) from None
    assert isinstance(root, ET.Element)  # for without one the parser fails
    return root


def _expanded(root: ET.Element) -> Iterator[tuple[ET.Element, int]]:
    """All elements, each with how often it is put in."""
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
            raise ValueError(f"{name} of {tag} may be {most} at most, got {element.get(name)}")
    if element.tag in _PIECES:
        size.pieces += times * math.prod(max(1, n) for n in _wholes(element, "count"))
        if element.get("file"):
            raise ValueError(f"{element.tag} may not be read from a file")
    elif element.tag == "texture":
        width, height = max(1, _whole(element, "width")), max(1, _whole(element, "height"))
        size.pixels += width * height if element.get("type") == "2d" else 6 * width**2
    elif element.tag == "hfield":
        sides = _wholes(element, "nrow") + _wholes(element, "ncol")
        size.pixels += math.prod(max(1, n) for n in sides)
    elif element.tag == "mesh" and (kind := element.get("builtin", "none")) != "none":
        most = _SUBDIVISIONS if kind == "sphere" else _BUILTIN_RESOLUTION
        if _largest(element, "params") > most:
            raise ValueError(f"params of a {kind} may be {most} at most")
    elif element.tag == "size":
        _check_sizes(element)


def _check_sizes(element: ET.Element) -> None:
    """The element `size` reserves memory."""
    for name, value in element.attrib.items():
        number, unit = value.strip(), ""
        if number[-1:].upper() in _MEBI and number[-1:]:
            number, unit = number[:-1], number[-1].upper()
        try:
            amount = float(number)
        except ValueError:
            continue  # for MuJoCo to refuse
        most = limits.MODEL_MEBIBYTES if name == "memory" else 10_000
        if amount * (_MEBI[unit] if name == "memory" else 1) > most:
            unit = " MiB" if name == "memory" else ""
            raise ValueError(f"{name} of size may be {most}{unit} at most, got {value}")


def _count_file(
    tag: str, name: str, times: int, folders: list[Path], size: _Size, depth: int
) -> None:
    """Add a file that a description names, wherever MuJoCo would find it."""
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
        size.pixels += math.prod(struct.unpack(">II", head[16:24]))  # what it is unpacked to


def _whole(element: ET.Element, name: str) -> int:
    return max(_wholes(element, name), default=0)


def _wholes(element: ET.Element, name: str) -> list[int]:
    """The whole numbers of an attribute; what is not one is for MuJoCo to refuse."""
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
