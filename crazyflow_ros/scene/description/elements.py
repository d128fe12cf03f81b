"""The elements of a description: XML in, XML out, and where each element came from.

XML is read without namespaces and declared entities, as MuJoCo reads it, so the checks see what
MuJoCo sees. The written text keeps the lines of the main file, unless includes shift them, and each
line has elements of one place only: a line in an error of MuJoCo leads back to the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from crazyflow_ros.checks import limits

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)  # with --, which XML forbids and MuJoCo accepts
_MARKS = b"\xef\xbb\xbf \t\r\n"  # before an XML declaration, where MuJoCo accepts them


class NotADescription(ValueError):
    """The text is not XML."""


class SourcePlace(NamedTuple):
    """Where an element is written."""

    file: str
    """Name of the file; empty for a text from elsewhere."""
    line: int

    def __str__(self) -> str:
        return f"line {self.line} of {self.file}" if self.file else f"line {self.line}"


class Element:
    """An element with its attributes, children and origin."""

    __slots__ = ("attributes", "children", "place", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str], place: SourcePlace) -> None:
        self.tag, self.attributes, self.place = tag, attributes, place
        self.children: list[Element] = []
        self.text = ""  # of SDF; MJCF and URDF have none

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def iter(self) -> Iterator[Element]:
        """Yield this element and all below it, in the order of the document."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)


def parsed(content: str | bytes, file: str = "") -> Element:
    """Return the root element of an XML document.

    Args:
        content: The document.
        file: Name of its file, for `SourcePlace`.

    Raises:
        NotADescription: It is not XML.
        ValueError: It has a document type, whose entities could expand to anything, or elements are
            nested too deep.
    """
    try:
        document = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise NotADescription(str(error)) from None
    skipped = len(document) - len(document.lstrip(_MARKS))
    lines_before = document.count(b"\n", 0, skipped)
    document = _COMMENT.sub(lambda comment: b"\n" * comment[0].count(b"\n"), document[skipped:])
    parser = expat.ParserCreate("utf-8" if isinstance(content, str) else None)
    roots: list[Element] = []
    opened: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(opened) >= limits.DESCRIPTION_DEPTH:
            most = limits.DESCRIPTION_DEPTH
            raise ValueError(f"elements may be nested at most {most} deep")
        line = parser.CurrentLineNumber + lines_before
        element = Element(tag, attributes, SourcePlace(file, line))
        (opened[-1].children if opened else roots).append(element)
        opened.append(element)

    def characters(content: str) -> None:
        if opened:
            opened[-1].text += content

    def doctype(*_: object) -> None:
        raise ValueError("a description must not have a document type (<!DOCTYPE>)")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: opened.pop()
    parser.CharacterDataHandler = characters
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        place = SourcePlace(file, error.lineno + lines_before)
        raise NotADescription(f"{expat.ErrorString(error.code)} in {place}") from None
    return roots[0]


def written(root: Element) -> tuple[str, tuple[SourcePlace, ...]]:
    """Return an XML document, and the place of the element in each of its lines.

    Raises:
        ValueError: Elements are nested too deep.
    """
    lines: list[str] = [""]
    places: list[SourcePlace] = [root.place]

    def write(element: Element, depth: int) -> None:
        if depth > limits.DESCRIPTION_DEPTH:
            most = limits.DESCRIPTION_DEPTH
            raise ValueError(f"elements may be nested at most {most} deep, with included files")
        if element.place != places[-1]:
            is_ahead = element.place.file == root.place.file and element.place.line > len(lines)
            missing = element.place.line - len(lines) if is_ahead else 1
            lines.extend([""] * missing)
            places.extend([element.place] * missing)
        attributes = "".join(f" {key}={quoteattr(v)}" for key, v in element.attributes.items())
        end = "" if element.children else "/"
        lines[-1] += f"<{escape(element.tag)}{attributes}{end}>"
        for child in element.children:
            write(child, depth + 1)
        if element.children:
            lines[-1] += f"</{escape(element.tag)}>"

    write(root, 1)
    return "\n".join(lines), tuple(places)
