"""Resources of requests: MJCF and URDF of worlds and objects, from files and strings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import mujoco
from simulation_interfaces.msg import Resource, Result

from crazyflow_ros.checks import limits
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.scene import description as descriptions
from crazyflow_ros.scene.description import Description, Sandbox

SUFFIXES = (".xml", ".urdf", ".sdf")
"""Suffixes of files with descriptions."""
_UNNAMED = "MuJoCo Model"  # MuJoCo's name for a model without one


@dataclass(frozen=True)
class Model:
    """The model that a resource describes."""

    name: str
    """Name of the model, or else of the file; may be empty."""
    resource: Resource
    description: Description
    spec: mujoco.MjSpec

    def text(self, what: str) -> str:
        """Return the data of a text element; empty if there is none."""
        return next((text.data for text in self.spec.texts if text.name == what), "")


def resource_of(message: Any, field: str) -> Resource:
    """Return the resource of a message; before version 2 its fields are fields of the message."""
    if hasattr(message, field):
        return getattr(message, field)
    return Resource(uri=message.uri, resource_string=message.resource_string)


class Reader:
    """Reads resources. Those of strangers must be small, and are tested in a process first.

    Args:
        own: Files that the user or this package provides.
        named: Folders that the user names, whose files requests may name.
    """

    def __init__(self, own: Iterable[Path], named: Iterable[str] = ()) -> None:
        self._own = {path.resolve() for path in own}
        self._folders = descriptions.Folders(named, self._own)
        self._sandbox = Sandbox()

    def path_of(self, uri: str, codes: Any) -> Path:
        """Return the path of a URI, see `Folders.path_of`.

        Args:
            uri: The URI.
            codes: Class with the result codes of the service.

        Raises:
            Refusal: The URI has another scheme, is not a valid path, leads to where requests may
                not read, or there is no such package.
        """
        if not uri:
            raise Refusal(codes.RESOURCE_PARSE_ERROR, "uri is empty")
        try:
            return self._folders.path_of(uri)
        except descriptions.UnknownScheme as error:
            raise Refusal(codes.UNSUPPORTED_FORMAT, str(error)) from None
        except FileNotFoundError as error:
            raise Refusal(Result.RESULT_NOT_FOUND, str(error)) from None
        except ValueError as error:
            raise Refusal(codes.RESOURCE_PARSE_ERROR, f"uri: {error}") from None

    def by_name(
        self, wanted: Resource, what: str, shipped: Mapping[str, Path], *, also: str = ""
    ) -> Resource:
        """Return a resource whose URI may also be the name of one that this package has.

        Raises:
            Refusal: There is neither a file nor a resource of this name.
        """
        name = wanted.uri
        if name in shipped:
            return Resource(uri=str(shipped[name]))
        is_name = name and len(name) <= limits.NAME_LENGTH and not {"/", ":"} & set(name)
        if is_name and not self._folders.has(name):
            known = [*shipped, also] if also else shipped
            text = f"{limits.unknown(what, name, known)}; nor is it a file in world_folders"
            raise Refusal(Result.RESULT_NOT_FOUND, text)
        return wanted

    def close(self) -> None:
        """End the process in which models are tested."""
        self._sandbox.close()

    def read(self, wanted: Resource, codes: Any, formats: Sequence[str]) -> Model:
        """Read a resource. It is slow, so call it in a worker.

        Args:
            wanted: The resource.
            codes: Class with the result codes of the service.
            formats: Allowed formats.

        Raises:
            Refusal: The description is invalid; the text has the reason.
        """
        path = self.path_of(wanted.uri, codes) if wanted.uri else None
        if path is not None and not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise Refusal(Result.RESULT_NOT_FOUND, f"{limits.shown_path(path)} {what}")
        if path is None and not wanted.resource_string:
            raise Refusal(codes.NO_RESOURCE, "neither uri nor resource_string is given")
        name = "the text" if path is None else path.name
        try:
            own = path is not None and path.resolve() in self._own
            if path is None:
                text, folders = wanted.resource_string, self._folders
                description = descriptions.read_text(text, limited=True, folders=folders)
            else:
                description = descriptions.read(path, limited=not own)
            if description.format not in formats:
                expected = f"expected {' or '.join(formats)}, got {description.format}"
                raise descriptions.UnknownFormat(expected)
            if not own:
                self._sandbox.check(description)
            spec = description.spec()
        except descriptions.UnknownFormat as error:
            raise Refusal(codes.UNSUPPORTED_FORMAT, f"{name}: {error}") from None
        except descriptions.NotADescription as error:
            raise Refusal(codes.RESOURCE_PARSE_ERROR, f"{name} is not XML: {error}") from None
        except FileNotFoundError as error:
            raise Refusal(codes.MISSING_ASSETS, f"{name}: {error}") from None
        except (OSError, ValueError) as error:
            raise Refusal(codes.RESOURCE_PARSE_ERROR, f"{name}: {error}") from None
        if path is not None:
            wanted = Resource(uri=path.absolute().as_uri())
        name = "" if path is None else path.stem
        if spec.modelname != _UNNAMED:
            name = spec.modelname
        return Model(name, wanted, description, spec)


def objects() -> dict[str, Path]:
    """Return the objects of this package, by name."""
    return {path.stem: path for path in listed(resource("urdf_mjcf", "objects"), SUFFIXES)}


def listed(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """List the files in a folder by name, up to one more than `check_files` allows."""
    found = (Path(entry.path) for entry in os.scandir(folder) if entry.name.endswith(suffixes))
    return sorted(islice(found, limits.LISTED + 1))


def check_sources(sources: Sequence[str]) -> None:
    """Refuse more sources than one request may have."""
    if len(sources) > limits.REQUESTED:
        raise ValueError(f"expected at most {limits.REQUESTED} sources, got {len(sources)}")


def check_files(paths: Sequence[Path]) -> None:
    """Refuse more files than one request may read."""
    if len(paths) > limits.LISTED:
        raise ValueError(f"the sources have more than {limits.LISTED} files")
