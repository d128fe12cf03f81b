"""Descriptions of worlds and objects: MJCF and URDF, from files and texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import mujoco
from simulation_interfaces.msg import Resource, Result

from crazyflow_ros import limits
from crazyflow_ros.ros.door import Refusal
from crazyflow_ros.scene.description import NotADescription, check_description

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
    elements: int
    """What it is expanded to."""

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
        Refusal: It is of another kind, or no path.
    """
    if not uri:
        raise Refusal(codes.RESOURCE_PARSE_ERROR, "uri: it is empty")
    try:
        parts = urlsplit(limits.text("uri", uri))
        path = Path(unquote(parts.path) if parts.scheme else uri).expanduser()
        os.stat(path)
    except (ValueError, RuntimeError) as error:  # RuntimeError: of an unknown user
        raise Refusal(codes.RESOURCE_PARSE_ERROR, f"uri: {error}") from None
    except OSError:
        pass  # whoever opens it says so
    if parts.scheme not in ("", "file"):
        text = f"only files can be read, got {limits.shown(uri)!r}"
        raise Refusal(codes.UNSUPPORTED_FORMAT, text)
    return path


def read(resource: Resource, codes: Any, formats: tuple[str, ...]) -> Description:
    """Read a description, and try whether it can be compiled. For a worker: that takes long.

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
            text = limits.read_text(path, limits.DESCRIPTION_BYTES)
        except (OSError, ValueError) as error:
            what = f"{limits.shown(resource.uri)}: {error}"
            raise Refusal(Result.RESULT_NOT_FOUND, what) from None
        elements = _checked(text, path.name, path.parent, codes, formats)
        spec = _parsed(lambda: mujoco.MjSpec.from_file(str(path)), codes)
        resource, stem = Resource(uri=path.absolute().as_uri()), path.stem
    elif resource.resource_string:
        text = resource.resource_string
        elements = _checked(text, "the text", None, codes, formats)
        spec = _parsed(lambda: mujoco.MjSpec.from_string(text), codes)
        stem = ""
    else:
        raise Refusal(codes.NO_RESOURCE, "neither uri nor resource_string is given")
    own = spec.modelname
    return Description(stem if own == _UNNAMED else own, spec, resource, elements)


def listed(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Files in a folder, by name; one more than `check_files` allows at most."""
    found = (Path(entry.path) for entry in os.scandir(folder) if entry.name.endswith(suffixes))
    return sorted(islice(found, limits.LISTED + 1))


def check_sources(sources: Sequence[str]) -> None:
    """Refuse more files and folders than one request may name."""
    if len(sources) > limits.REQUESTED:
        text = f"expected at most {limits.REQUESTED} sources, got {len(sources)}"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)


def check_files(paths: Sequence[Path]) -> None:
    """Refuse more files than one request may look into."""
    if len(paths) > limits.LISTED:
        text = f"the sources have more than {limits.LISTED} files"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)


def _checked(
    text: str, name: str, folder: Path | None, codes: Any, formats: tuple[str, ...]
) -> int:
    """Refuse what MuJoCo must not see; returns the number of elements."""
    try:
        root, elements = check_description(text, folder)
    except NotADescription as error:
        raise Refusal(codes.RESOURCE_PARSE_ERROR, f"{name} is no XML: {error}") from None
    except (OSError, ValueError) as error:
        raise Refusal(codes.RESOURCE_PARSE_ERROR, f"{name}: {error}") from None
    if FORMATS.get(root) not in formats:
        expected = f"expected {' or '.join(formats)}, got a root element <{limits.shown(root)}>"
        raise Refusal(codes.UNSUPPORTED_FORMAT, f"{name}: {expected}")
    return elements


def _parsed(parse: Callable[[], mujoco.MjSpec], codes: Any) -> mujoco.MjSpec:
    try:
        spec = parse()
        spec.copy().compile()
    except (ValueError, FileNotFoundError) as error:
        missing = "opening file" in str(error) or "resource not found" in str(error).lower()
        code = codes.MISSING_ASSETS if missing else codes.RESOURCE_PARSE_ERROR
        raise Refusal(code, str(error)) from None
    return spec
