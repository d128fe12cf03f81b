"""Descriptions of worlds and objects: MJCF and URDF, from files and strings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
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
"""Formats by name of the root element."""
_UNNAMED = "MuJoCo Model"  # MuJoCo's name for a model without one


@dataclass(frozen=True)
class Description:
    """A parsed description that MuJoCo can compile."""

    name: str
    """Name of the model, or else of the file; may be empty."""
    spec: mujoco.MjSpec
    resource: Resource
    elements: int
    """Number of elements after expansion."""

    def text(self, what: str) -> str:
        """Return the data of a text element; empty if there is none."""
        return next((text.data for text in self.spec.texts if text.name == what), "")


def resource_of(message: Any, field: str) -> Resource:
    """Return the resource of a message; before version 2 its fields are fields of the message."""
    if hasattr(message, field):
        return getattr(message, field)
    return Resource(uri=message.uri, resource_string=message.resource_string)


def path_of(uri: str, codes: Any) -> Path:
    """Convert a URI, either a file: URI or a plain path, to a path.

    Args:
        uri: The URI.
        codes: Class with the result codes of the service.

    Raises:
        Refusal: The URI has another scheme or is not a valid path.
    """
    if not uri:
        raise Refusal(codes.RESOURCE_PARSE_ERROR, "uri is empty")
    try:
        parts = urlsplit(limits.text("uri", uri))
        path = Path(unquote(parts.path) if parts.scheme else uri).expanduser()
        os.stat(path)
    except (ValueError, RuntimeError) as error:  # RuntimeError: unknown user
        raise Refusal(codes.RESOURCE_PARSE_ERROR, f"uri: {error}") from None
    except OSError:
        pass  # reported when the file is opened
    if parts.scheme not in ("", "file"):
        text = f"expected a file: URI or a path, got {limits.shown(uri)!r}"
        raise Refusal(codes.UNSUPPORTED_FORMAT, text)
    return path


def by_name(
    wanted: Resource, what: str, shipped: Mapping[str, Path], *, also: str = ""
) -> Resource:
    """Return a resource whose URI may also be the name of one that this package has.

    Args:
        wanted: The resource.
        what: What it is called in messages.
        shipped: Files of this package by name.
        also: Another name for the message.

    Raises:
        Refusal: There is neither a file nor a resource of this name.
    """
    name = wanted.uri
    if name in shipped:
        return Resource(uri=str(shipped[name]))
    is_name = name and len(name) <= limits.NAME_LENGTH and not {"/", ":"} & set(name)
    if is_name and not Path(name).exists():
        known = [*shipped, also] if also else shipped
        text = f"{limits.unknown(what, name, known)}; nor is it a file"
        raise Refusal(Result.RESULT_NOT_FOUND, text)
    return wanted


def read(resource: Resource, codes: Any, formats: tuple[str, ...]) -> Description:
    """Read and compile a description. It is slow, so call it in a worker.

    Args:
        resource: The resource.
        codes: Class with the result codes of the service.
        formats: Allowed formats.

    Raises:
        Refusal: The description is invalid; the text has the reason.
    """
    if resource.uri:
        path = path_of(resource.uri, codes)
        try:
            text = limits.read_text(path, limits.DESCRIPTION_BYTES)
        except FileNotFoundError:
            what = f"there is no file {limits.shown(resource.uri)!r}"
            raise Refusal(Result.RESULT_NOT_FOUND, what) from None
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
    """List the files in a folder by name, up to one more than `check_files` allows."""
    found = (Path(entry.path) for entry in os.scandir(folder) if entry.name.endswith(suffixes))
    return sorted(islice(found, limits.LISTED + 1))


def check_sources(sources: Sequence[str]) -> None:
    """Refuse more sources than one request may have."""
    if len(sources) > limits.REQUESTED:
        text = f"expected at most {limits.REQUESTED} sources, got {len(sources)}"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)


def check_files(paths: Sequence[Path]) -> None:
    """Refuse more files than one request may read."""
    if len(paths) > limits.LISTED:
        text = f"the sources have more than {limits.LISTED} files"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)


def _checked(
    text: str, name: str, folder: Path | None, codes: Any, formats: tuple[str, ...]
) -> int:
    """Refuse content that is unsafe for MuJoCo; return the number of elements."""
    try:
        root, elements = check_description(text, folder)
    except NotADescription as error:
        raise Refusal(codes.RESOURCE_PARSE_ERROR, f"{name} is not XML: {error}") from None
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
