"""Names and poses of SDF: what is relative to what, in models that contain models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.scene import frames
from crazyflow_ros.scene.description.elements import Element
from crazyflow_ros.scene.description.sdf_shapes import child, numbers, text

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})", re.ASCII)


class SdfScope:
    """A world or a model: what its names mean, and where it is."""

    def __init__(
        self,
        element: Element,
        parent: SdfScope | None,
        name: str,
        folder: Path,
        version: tuple[int, int],
        include: Element | None = None,
        file: Path | None = None,
    ) -> None:
        self.element, self.parent, self.name = element, parent, name
        self.folder, self.version, self.include = folder, version, include
        self.file = file
        self.posed = element if include is None or child(include, "pose") is None else include
        placement = text(include, "placement_frame") or element.get("placement_frame")
        self._placement = placement if include is None or self.posed is include else ""
        self.named = {  # links before joints of the same name, which old files have
            one.get("name"): one
            for tag in ("joint", "frame", "link")
            for one in element.children
            if one.tag == tag
        }
        self.models: dict[str, SdfScope] = {}
        self.merged: list[SdfScope] = []
        self._known: dict[int, np.ndarray | None] = {}

    def hold(self, model: SdfScope) -> None:
        """Add a model.

        Raises:
            ValueError: There is one of that name.
        """
        if model.name in self.models:
            place = model.element.place
            raise ValueError(f"model in {place}: there are two called {limits.shown(model.name)!r}")
        self.models[model.name] = model

    @property
    def is_whole(self) -> bool:
        """Whether it is the model of a file, not of a world: its parts keep their names."""
        return self.parent is not None and self.parent.element.tag == "sdf"

    @property
    def prefix(self) -> str:
        """What names of parts begin with in the MJCF."""
        if self.parent is None or self.is_whole:
            return ""
        return self.parent.prefix + ("" if self in self.parent.merged else f"{self.name}/")

    @property
    def at(self) -> np.ndarray:
        """Its pose in the world, shape (4, 4)."""
        return np.eye(4) if self.parent is None else self.parent.at @ self._in_parent()

    def _in_parent(self) -> np.ndarray:
        assert self.parent is not None
        raw = pose_of(self.posed)
        base = self.parent.local(relative_to(self.posed))
        return base @ raw @ np.linalg.inv(self.local(self._placement))

    def local(self, name: str) -> np.ndarray:
        """Return the pose of what has a name in this scope, shape (4, 4).

        Raises:
            ValueError: There is no such name, or it refers to itself.
        """
        if name in ("", "__model__", "world"):
            return np.eye(4)
        head, _, rest = name.partition("::")
        if head in self.models:
            return self.models[head]._in_parent() @ self.models[head].local(rest)
        for scope in self.merged:
            if scope.knows(head):
                return scope._in_parent() @ scope.local(name)
        if name not in self.named:
            raise ValueError(
                f"{self.element.tag} in {self.element.place}: "
                f"{limits.unknown('frame', name, (*self.named, *self.models))}"
            )
        return self.place_of(self.named[name])

    def knows(self, name: str) -> bool:
        """Return whether something in this scope has a name."""
        return name in self.named or name in self.models or any(s.knows(name) for s in self.merged)

    def place_of(self, element: Element) -> np.ndarray:
        """Return the pose of a link, joint or frame of this scope, shape (4, 4).

        Raises:
            ValueError: It refers to itself, or to what does not exist.
        """
        if id(element) not in self._known:
            self._known[id(element)] = None  # until it is known
            default = {"joint": text(element, "child"), "frame": element.get("attached_to")}
            to = relative_to(element) or default.get(element.tag, "")
            self._known[id(element)] = self.local(to) @ pose_of(element)
        found = self._known[id(element)]
        if found is None:
            raise ValueError(f"{element.tag} in {element.place} is relative to itself")
        return found

    def link_of(self, name: str, depth: int = 0) -> Element | None:
        """Return the link that has a name, or to which a frame is attached; None: the world.

        Raises:
            ValueError: There is none.
        """
        if name == "world":
            return None
        head, _, rest = name.partition("::")
        if head in self.models:
            return self.models[head].link_of(rest or "__model__", depth + 1)
        for scope in self.merged:
            if scope.knows(head):
                return scope.link_of(name, depth + 1)
        found = self.named.get(name)
        if depth > limits.DESCRIPTION_DEPTH or (found is None and name not in ("", "__model__")):
            raise ValueError(f"{self.element.tag} in {self.element.place}: {name!r} is no link")
        if found is None:
            canonical = self.element.get("canonical_link")
            links = [one for one in self.named if self.named[one].tag == "link"]
            if not (canonical or links or self.models):
                return None
            first = canonical or next(iter(links or self.models))
            return self.link_of(first, depth + 1)
        if found.tag == "link":
            return found
        to = found.get("attached_to") if found.tag == "frame" else text(found, "child")
        return self.link_of(to, depth + 1)


def pose_of(element: Element) -> np.ndarray:
    """Return the pose of an element in that to which it is relative, shape (4, 4).

    Raises:
        ValueError: It is none.
    """
    found = child(element, "pose")
    is_quat = found is not None and found.get("rotation_format") == "quat_xyzw"
    default = "0 0 0 0 0 0 1" if is_quat else "0 0 0 0 0 0"
    values = numbers(element, "pose", default=default, n=(len(default.split()),))
    angles = values[3:]
    if found is not None and found.get("degrees").lower() in ("1", "true"):
        angles = np.deg2rad(angles)
    if is_quat:
        quat = limits.unit_quaternion(f"pose in {element.place}", angles)
    else:
        quat = frames.quat_from_rpy(angles)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = frames.rotation_matrix(quat), values[:3]
    return matrix


def relative_to(element: Element) -> str:
    """Return the name of what a pose is relative to; empty for the default."""
    pose = child(element, "pose")
    return "" if pose is None else pose.get("relative_to") or pose.get("frame")


def version_of(element: Element) -> tuple[int, int]:
    """Return the version of SDF that an element says."""
    found = _VERSION.match(element.get("version"))
    return (int(found[1]), int(found[2])) if found else (1, 4)
