"""SDF: models and worlds of Gazebo, converted to MJCF.

The Python bindings of libsdformat are in no registry for all versions of Python that this package
supports, so this reads what moves, collides and is drawn: models in models, frames, joints, links,
shapes, inertias, lights, gravity. What it leaves out, such as plugins and sensors, is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Protocol

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.scene.description.elements import Element, parsed
from crazyflow_ros.scene.description.sdf_scopes import SdfScope, pose_of, relative_to, version_of
from crazyflow_ros.scene.description.sdf_shapes import (
    SdfShapes,
    child,
    inertial,
    is_true,
    light,
    number,
    numbers,
    placed,
    text,
    written,
)

_NO_MATTER = {
    *("gui", "scene", "audio", "physics", "state", "pose", "static", "self_collide", "uri", "name"),
    *("allow_auto_disable", "enable_wind", "gravity", "link", "joint", "model", "include", "frame"),
    *("light", "wind", "spherical_coordinates", "atmosphere", "author", "description", "kinematic"),
    *("inertial", "visual", "collision", "velocity_decay", "must_be_base_link", "placement_frame"),
}
_UNLIMITED = 1e15
_OLD_AXES = (1, 5)  # from this version on, axes are in the joint's frame by default
_AXES = {"revolute": 1, "continuous": 1, "prismatic": 1, "universal": 2, "revolute2": 2, "screw": 1}


class DescriptionFiles(Protocol):
    """Finds and reads the files of a description."""

    def path_of(self, uri: str, folder: Path) -> Path:
        """Return the path of a URI in a file of a folder."""

    def first(self, places: Iterable[Path], what: str) -> Path:
        """Return the first place that exists and may be read."""

    def bytes_of(self, path: Path, *, text: bool) -> bytes:
        """Return the content of a file."""

    def drawings(self, path: Path) -> list[tuple[str, str]]:
        """Return names as assets and colours of the parts of a mesh file; empty if it has none."""

    def asset(self, element: str, path: Path) -> str:
        """Read a file, and return its name as an asset."""


def as_mjcf(root: Element, folder: Path, files: DescriptionFiles) -> tuple[Element, str]:
    """Convert an SDF document.

    Args:
        root: The element `<sdf>`.
        folder: Folder of the file.
        files: Finds its files.

    Returns:
        The element `<mujoco>`, and what was left out, in words; empty if nothing was.

    Raises:
        ValueError: It has no world or model, a frame that does not exist, or a joint of a kind
            that MuJoCo does not have.
        OSError: A file cannot be read.
    """
    try:
        return _converted(root, folder, files)
    except RecursionError:
        raise ValueError("links or frames hang on one another, too many in a row") from None


def _converted(root: Element, folder: Path, files: DescriptionFiles) -> tuple[Element, str]:
    world = child(root, "world")
    top = SdfScope(world if world is not None else root, None, "", folder, version_of(root))
    conversion = _Conversion(files)
    conversion.add(top, is_static=False, depth=0)
    if not conversion.links and world is None:
        raise ValueError(f"{root.tag} in {root.place} has neither a world nor a model with links")
    left_out = sorted(conversion.left_out | conversion.shapes.left_out)
    said = f"has no {', '.join(left_out)} of its SDF" if left_out else ""
    return conversion.written(root, world), said


@dataclass(eq=False)
class _Link:
    element: Element
    scope: SdfScope
    name: str
    is_static: bool
    at: np.ndarray
    """In the world, shape (4, 4)."""
    joint: tuple[SdfScope, Element] | None = None
    """That leads to it."""
    children: list[_Link] = field(default_factory=list)
    above: _Link | None = None
    is_root: bool = True

    def hangs_on(self, other: _Link) -> bool:
        """Return whether it is another link or hangs on it."""
        link: _Link | None = self
        while link is not None and link is not other:
            link = link.above
        return link is other


class _Conversion:
    """Collects links and joints, and writes them as a tree of bodies."""

    def __init__(self, files: DescriptionFiles) -> None:
        self._files = files
        self.shapes = SdfShapes(self._find)
        self.links: dict[int, _Link] = {}
        self.left_out: set[str] = set()
        self._joints: list[tuple[SdfScope, Element]] = []
        self._lights: list[Element] = []
        self._folder, self._models = Path(), 0
        self._rest = {"equality": list[Element](), "contact": list[Element]()}

    def _find(self, uri: Element, kind: str) -> list[tuple[str, str]]:
        path = self._found(uri, uri.text.strip(), self._folder)
        drawn = self._files.drawings(path) if kind == "drawing" else []
        return drawn or [(self._files.asset(kind.replace("drawing", "mesh"), path), "")]

    def _found(self, element: Element, uri: str, folder: Path) -> Path:
        path = folder / self._files.path_of(uri, folder)
        return self._files.first([path], f"{element.tag} in {element.place}")

    def add(self, scope: SdfScope, *, is_static: bool, depth: int) -> None:
        """Add a world or a model with all that it contains."""
        if depth > limits.DESCRIPTION_DEPTH:
            raise ValueError(
                f"models may be in one another at most {limits.DESCRIPTION_DEPTH} deep"
            )
        self._models += 1
        if max(self._models, len(self.links)) > limits.SCENE_ELEMENTS:
            raise ValueError(f"expected at most {limits.SCENE_ELEMENTS} models and links, got more")
        is_static = is_static or is_true(scope.element, "static")
        for one in scope.element.children:
            match one.tag:
                case "include":
                    self._include(scope, one)
                case "model":
                    nested = SdfScope(one, scope, one.get("name"), scope.folder, scope.version)
                    scope.hold(nested)
                case "joint":
                    self._joints.append((scope, one))
                case "light":
                    self._lights.append(light(one, scope.at @ pose_of(one)))
                case tag if tag not in _NO_MATTER:
                    self.left_out.add(tag)
        for nested in (*scope.models.values(), *scope.merged):
            fixed = nested.include is not None and is_true(nested.include, "static")
            self.add(nested, is_static=is_static or fixed, depth=depth + 1)
        links = [one for one in scope.element.children if one.tag == "link"]
        for link in links:
            name = scope.prefix + link.get("name")
            is_alone = len(links) == 1 and not scope.is_whole
            if is_alone and scope.parent is not None and scope not in scope.parent.merged:
                name = scope.prefix.removesuffix("/") or name
            at = scope.at @ scope.place_of(link)
            self.links[id(link)] = _Link(link, scope, name, is_static, at)
            self.left_out |= {one.tag for one in link.children} - _NO_MATTER

    def _include(self, scope: SdfScope, include: Element) -> None:
        """Read an included model, or a light."""
        uri = text(include, "uri")
        try:
            path = self._found(include, uri, scope.folder)
        except FileNotFoundError:
            if ":" in uri or "/" in uri:
                raise
            path = self._found(include, f"model://{uri}", scope.folder)  # as Gazebo does
        path = path if path.is_file() else self._model_file(include, path)
        above: SdfScope | None = scope
        while above is not None:
            if above.file == path.resolve():
                raise ValueError(f"{limits.shown_path(path)} contains itself")
            above = above.parent
        root = parsed(self._files.bytes_of(path, text=True), path.name)
        found = [one for one in root.children if one.tag in ("model", "light", "actor")]
        if root.tag != "sdf" or len(found) != 1:
            raise ValueError(f"include in {include.place}: {path.name} must have one model")
        (element,) = found
        if element.tag == "model":
            name = text(include, "name") or element.get("name")
            nested = SdfScope(
                element, scope, name, path.parent, version_of(root), include, path.resolve()
            )
            if include.get("merge").lower() in ("1", "true"):
                scope.merged.append(nested)
            else:
                scope.hold(nested)
        elif element.tag == "light":
            posed = element if child(include, "pose") is None else include
            self._lights.append(light(element, scope.at @ pose_of(posed)))
        else:
            self.left_out.add(element.tag)

    def _model_file(self, include: Element, folder: Path) -> Path:
        """Return the newest SDF file of a model's folder, which may have a folder for each version.

        Raises:
            FileNotFoundError: There is none.
        """
        versions = [one for one in folder.iterdir() if one.name.isdigit() and one.is_dir()]
        if versions and not (folder / "model.config").exists():
            folder = max(versions, key=lambda one: int(one.name))
        config = folder / "model.config"
        name = "model.sdf"
        if config.exists():
            about = parsed(self._files.bytes_of(config, text=True), config.name)
            listed = [one for one in about.children if one.tag == "sdf"]
            if listed:
                newest = max(listed, key=lambda one: version_of(one))
                name = newest.text.strip()
        return self._files.first([folder / name], f"include in {include.place}")

    def written(self, root: Element, world: Element | None) -> Element:
        """Return everything as MJCF."""
        whole = world if world is not None else child(root, "model")
        name = "" if whole is None else whole.get("name")
        self._connect()
        bodies = Element("worldbody", {}, root.place)
        bodies.children += self._lights
        for link in self.links.values():
            if link.is_root:
                bodies.children.append(self._body(link, np.eye(4)))
        counts = Counter(link.name for link in self.links.values())
        if twice := [one for one, count in counts.items() if count > 1]:
            raise ValueError(f"there are two links {limits.shown(twice[0])}")
        result = Element("mujoco", {"model": name}, root.place)
        compiler = {"angle": "radian", "autolimits": "true"}
        result.children.append(Element("compiler", compiler, root.place))
        if world is not None:
            gravity = numbers(world, "gravity", default="0 0 -9.8", n=(3,))
            option = Element("option", {"gravity": written(gravity)}, world.place)
            if len(wind := numbers(world, "wind", "linear_velocity", n=(0, 3))):
                option.attributes["wind"] = written(wind)
            result.children.append(option)
        for tag, children in {"asset": self.shapes.assets, **self._rest}.items():
            if children:
                result.children.append(Element(tag, {}, root.place))
                result.children[-1].children = children
        result.children.append(bodies)
        return result

    def _connect(self) -> None:
        """Make a tree of the links; a joint to a link that has one already becomes a constraint."""
        for scope, joint in self._joints:
            kind = joint.get("type")
            if kind not in (*_AXES, "fixed", "ball"):
                raise ValueError(f"joint in {joint.place}: MuJoCo has no joint of type {kind!r}")
            above, below = (scope.link_of(text(joint, end)) for end in ("parent", "child"))
            if below is None:
                raise ValueError(f"joint in {joint.place}: the world cannot be a child")
            link = self.links[id(below)]
            parent = None if above is None else self.links[id(above)]
            if parent is link:
                raise ValueError(f"joint in {joint.place} joins {link.name} with itself")
            if link.joint is None and not (parent is not None and parent.hangs_on(link)):
                link.joint, link.above, link.is_root = (scope, joint), parent, parent is None
                if parent is not None:
                    parent.children.append(link)
                continue
            ends = {"body1": link.name} | ({} if parent is None else {"body2": parent.name})
            about = {**ends, "anchor": written(self._joint_in(link, scope, joint)[:3, 3])}
            self._rest["equality"].append(
                Element("weld" if kind == "fixed" else "connect", about, joint.place)
            )
        self._rest["contact"] += self._excluded()

    def _excluded(self) -> Iterator[Element]:
        """Yield which links do not collide: those of a model that is not to, and joined ones."""
        links: dict[SdfScope, list[_Link]] = {}  # of models whose links do not collide
        for one in self.links.values():
            is_solid = not one.is_static and child(one.element, "collision") is not None
            if is_solid and not is_true(one.scope.element, "self_collide"):
                links.setdefault(one.scope, []).append(one)
        most = limits.SCENE_ELEMENTS
        if (n := sum(comb(len(apart), 2) for apart in links.values())) > most:
            raise ValueError(
                f"{n} pairs of links do not collide because self_collide is not true in their "
                f"models, expected at most {most}"
            )
        pairs = [pair for apart in links.values() for pair in combinations(apart, 2)]
        pairs += [(one, other) for one in self.links.values() for other in one.children]
        known = set[frozenset[str]]()
        for one, other in pairs:
            if (names := frozenset((one.name, other.name))) not in known:
                known.add(names)
                about = {"body1": one.name, "body2": other.name}
                yield Element("exclude", about, one.element.place)

    def _joint_in(self, link: _Link, scope: SdfScope, joint: Element) -> np.ndarray:
        """Return the pose of a joint in a link, shape (4, 4)."""
        return np.linalg.inv(link.at) @ scope.at @ scope.place_of(joint)

    def _body(self, link: _Link, parent: np.ndarray) -> Element:
        about = {"name": link.name, **placed(np.linalg.inv(parent) @ link.at)}
        body = Element("body", about, link.element.place)
        if text(link.element, "gravity").lower() in ("0", "false"):
            body.attributes["gravcomp"] = "1"
        self._folder = link.scope.folder

        def pose(one: Element) -> np.ndarray:
            to, raw = relative_to(one), pose_of(one)
            in_link = np.linalg.inv(link.at) @ link.scope.at
            return in_link @ link.scope.local(to) @ raw if to else raw

        if not link.is_static:
            body.children += self._joints_of(link)
            body.children.append(inertial(link.element, pose))
        body.children += self.shapes.of_link(link.element, pose, is_static=link.is_static)
        body.children += [self._body(other, link.at) for other in link.children]
        return body

    def _joints_of(self, link: _Link) -> Iterator[Element]:
        """Yield the joints of a body."""
        if link.joint is None:
            yield Element("freejoint", {}, link.element.place)
            return
        scope, joint = link.joint
        kind, name = joint.get("type"), joint.get("name")
        here = self._joint_in(link, scope, joint)
        full = scope.prefix + name
        if kind == "ball":
            about = {"name": full, "type": "ball", "pos": written(here[:3, 3])}
            yield Element("joint", about, joint.place)
        for is_second in range(_AXES.get(kind, 0)):
            axis = child(joint, "axis2" if is_second else "axis")
            about = {"name": f"{full}_2" if is_second else full, "pos": written(here[:3, 3])}
            about["type"] = "slide" if kind == "prismatic" else "hinge"
            vector = numbers(axis, "xyz", default="0 0 1", n=(3,))
            about["axis"] = written(self._axis_frame(link, scope, here, axis) @ vector)
            for ours, path in (
                ("damping", ("dynamics", "damping")),
                ("frictionloss", ("dynamics", "friction")),
                ("stiffness", ("dynamics", "spring_stiffness")),
                ("springref", ("dynamics", "spring_reference")),
            ):
                if value := number(axis, *path, default="0"):
                    about[ours] = f"{value:.12g}"
            low, high = (
                number(axis, "limit", end, default=default, finite=False)
                for end, default in (("lower", "-inf"), ("upper", "inf"))
            )
            if kind != "continuous" and max(-low, high) < _UNLIMITED and low < high:
                about["range"] = written(np.array([low, high]))
            yield Element("joint", about, joint.place)
            if kind == "screw":
                follower = {"name": f"{full}_slide", "type": "slide"} | {
                    key: about[key] for key in ("pos", "axis")
                }
                yield Element("joint", follower, joint.place)
                per_turn = number(joint, "screw_thread_pitch", default="0")
                per_metre = number(joint, "thread_pitch", default="1")
                if not (per_turn or per_metre):
                    raise ValueError(f"thread_pitch of the joint in {joint.place}: got 0")
                ratio = per_turn / (2 * np.pi) if per_turn else -1 / per_metre
                self._couple(follower["name"], about["name"], 0.0, ratio, joint)
            if (mimic := child(axis, "mimic")) is not None:
                ratio, offset, reference = (
                    number(mimic, key, default=default)
                    for key, default in (("multiplier", "1"), ("offset", "0"), ("reference", "0"))
                )
                leader = scope.prefix + mimic.get("joint")
                leader += "_2" if mimic.get("axis") == "axis2" else ""
                self._couple(about["name"], leader, offset - ratio * reference, ratio, mimic)

    def _couple(self, follower: str, leader: str, offset: float, ratio: float, of: Element) -> None:
        about = {"joint1": follower, "joint2": leader, "polycoef": f"{offset} {ratio} 0 0 0"}
        self._rest["equality"].append(Element("joint", about, of.place))

    @staticmethod
    def _axis_frame(
        link: _Link, scope: SdfScope, here: np.ndarray, axis: Element | None
    ) -> np.ndarray:
        """Return the axes, shape (3, 3) in the link, in which that of a joint is given."""
        to = "" if (xyz := child(axis, "xyz")) is None else xyz.get("expressed_in")
        is_old = is_true(axis, "use_parent_model_frame") or scope.version < _OLD_AXES
        if not to and not is_old:
            return here[:3, :3]
        return (np.linalg.inv(link.at) @ scope.at @ scope.local(to))[:3, :3]
