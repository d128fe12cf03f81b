"""Descriptions of worlds and objects: MJCF and URDF, from files and texts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import mujoco
from simulation_interfaces.msg import Resource, Result

from crazyflow_ros.ros.simulation_interfaces.server import Refusal

FORMATS = {"mujoco": "mjcf", "robot": "urdf"}
"""Formats by the names of their root elements."""
_UNNAMED = "MuJoCo Model"  # what MuJoCo calls a model without a name


@dataclass(frozen=True)
class Description:
    """A description that MuJoCo can read, read."""

    name: str
    """As it calls itself, else the name of its file; may be empty."""
    spec: mujoco.MjSpec
    resource: Resource

    def text(self, what: str) -> str:
        """Data of a text element; empty if there is none."""
        return next((text.data for text in self.spec.texts if text.name == what), "")


def resource_of(message: Any, field: str) -> Resource:
    """The resource in a message; before version 2 its two fields are fields of the message."""
    if hasattr(message, field):
        return getattr(message, field)
    return Resource(uri=message.uri, resource_string=message.resource_string)


def path_of(uri: str, codes: Any) -> Path:
    """The path that a URI means: a file: URI, or a path itself.

    Args:
        uri: The URI.
        codes: Class with the codes of the service.

    Raises:
        Refusal: It is of another kind.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        text = f"only files can be read, got {uri!r}"
        raise Refusal(codes.UNSUPPORTED_FORMAT, text)
    return Path(unquote(parts.path) if parts.scheme else uri).expanduser()


def read(resource: Resource, codes: Any, formats: tuple[str, ...]) -> Description:
    """Read a description, and try whether it can be compiled.

    Args:
        resource: Where it is.
        codes: Class with the codes of the service.
        formats: What is allowed.

    Raises:
        Refusal: It cannot be used; the text says why.
    """
    if resource.uri:
        path = path_of(resource.uri, codes)
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise Refusal(Result.RESULT_NOT_FOUND, f"{resource.uri}: {error}") from None
        _check_format(text, path.name, codes, formats)
        description = _parsed(lambda: mujoco.MjSpec.from_file(str(path)), codes)
        resource, stem = Resource(uri=path.absolute().as_uri()), path.stem
    elif resource.resource_string:
        _check_format(resource.resource_string, "the text", codes, formats)
        description = _parsed(lambda: mujoco.MjSpec.from_string(resource.resource_string), codes)
        stem = ""
    else:
        raise Refusal(codes.NO_RESOURCE, "neither uri nor resource_string is given")
    own = description.modelname
    return Description(stem if own == _UNNAMED else own, description, resource)


def _check_format(text: str, name: str, codes: Any, formats: tuple[str, ...]) -> None:
    try:
        root = ET.fromstring(text).tag
    except ET.ParseError as error:
        raise Refusal(codes.RESOURCE_PARSE_ERROR, f"{name} is no XML: {error}") from None
    if FORMATS.get(root) not in formats:
        expected = f"expected {' or '.join(formats)}, got a root element <{root}>"
        raise Refusal(codes.UNSUPPORTED_FORMAT, f"{name}: {expected}")


def _parsed(parse: Any, codes: Any) -> mujoco.MjSpec:
    try:
        spec = parse()
        spec.copy().compile()
    except (ValueError, FileNotFoundError) as error:
        missing = "opening file" in str(error) or "resource not found" in str(error).lower()
        code = codes.MISSING_ASSETS if missing else codes.RESOURCE_PARSE_ERROR
        raise Refusal(code, str(error)) from None
    return spec
