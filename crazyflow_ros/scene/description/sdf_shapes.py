"""Shapes, colours and lights of SDF as elements of MJCF."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.scene import frames
from crazyflow_ros.scene.description.elements import Element
from crazyflow_ros.scene.groups import COLLISION_GROUP

Find = Callable[[Element, str], list[tuple[str, str]]]
"""Takes an element with a URI and the kind of its file: `mesh`, `hfield`, or `drawing` for a mesh
in the colours of the file. Returns names as assets, and colours if there are any."""

_VISUAL_GROUP = 1  # as of the visuals of a URDF in MuJoCo
_THIN = 5e-4  # m, half of what draws a plane on something that moves
_MOST_FRICTION = 1e6
_GREY = (0.7, 0.7, 0.7, 1.0)
_SCRIPTS = {
    "white": (1, 1, 1, 1), "grey": _GREY, "gray": _GREY, "black": (0.1, 0.1, 0.1, 1),
    "darkgrey": (0.3, 0.3, 0.3, 1), "red": (1, 0, 0, 1), "green": (0, 1, 0, 1),
    "blue": (0, 0, 1, 1), "yellow": (1, 1, 0, 1), "orange": (1, 0.5, 0, 1),
    "purple": (1, 0, 1, 1), "turquoise": (0, 1, 1, 1), "gold": (0.8, 0.65, 0.2, 1),
    "wood": (0.6, 0.45, 0.3, 1),
}  # fmt: skip
"""Colours of Gazebo's scripts `Gazebo/<name>`."""


def child(element: Element | None, *path: str) -> Element | None:
    """Return the first element at a path below another one."""
    for tag in path:
        children = [] if element is None else element.children
        element = next((one for one in children if one.tag == tag), None)
    return element


def text(element: Element | None, *path: str, default: str = "") -> str:
    """Return the text of the element at a path."""
    found = child(element, *path)
    return default if found is None else found.text.strip() or default


def numbers(
    element: Element | None,
    *path: str,
    default: str = "",
    n: tuple[int, ...] = (),
    finite: bool = True,
) -> np.ndarray:
    """Return the numbers in the text of the element at a path.

    Args:
        element: The element where the path begins.
        path: Tags.
        default: The text if there is none.
        n: How many there may be; empty for any number.
        finite: Whether infinity is refused; NaN always is.

    Raises:
        ValueError: There are others.
    """
    words, found = text(element, *path, default=default), child(element, *path)
    try:
        values = np.array(words.split(), float)
    except ValueError:
        values = np.array([np.nan])
    is_wrong = np.isnan(values) | (finite & np.isinf(values))
    if is_wrong.any() or (n and len(values) not in n):
        place = "" if found is None else f" in {found.place}"
        expected = " or ".join(str(one) for one in n if one)
        expected = "a number" if expected == "1" else f"{expected} numbers".strip()
        raise ValueError(f"{path[-1]}{place}: expected {expected}, got {limits.shown(words)!r}")
    return values


def number(element: Element | None, *path: str, default: str, finite: bool = True) -> float:
    """Return the number in the text of the element at a path; see `numbers`."""
    return float(numbers(element, *path, default=default, n=(1,), finite=finite)[0])


def is_true(element: Element | None, *path: str) -> bool:
    """Return whether the text of the element at a path is true."""
    return text(element, *path).lower() in ("1", "true")


def written(values: np.ndarray) -> str:
    """Return numbers for an attribute."""
    return " ".join(f"{value:.12g}" for value in np.ravel(values))


def placed(matrix: np.ndarray) -> dict[str, str]:
    """Return a transform, shape (4, 4), as attributes `pos` and `quat` of MJCF."""
    quat = frames.xyzw_to_wxyz(frames.quat_from_matrix(matrix[:3, :3]))
    return {"pos": written(matrix[:3, 3]), "quat": written(quat)}


class SdfShapes:
    """Converts shapes; meshes and height fields become assets.

    Args:
        find: Finds files.

    Attributes:
        assets: The elements of `<asset>`.
        left_out: What was not converted.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._names: dict[tuple[str, ...], str] = {}
        self.assets: list[Element] = []
        self.left_out: set[str] = set()

    def of_link(
        self, link: Element, pose: Callable[[Element], np.ndarray], *, is_static: bool
    ) -> Iterator[Element]:
        """Yield the geoms of a link.

        Args:
            link: The element.
            pose: Returns the pose of a visual or a collision in the link, shape (4, 4).
            is_static: Whether it never moves.
        """
        shapes = [one for one in link.children if one.tag in ("visual", "collision")]
        has_visuals = any(one.tag == "visual" for one in shapes)
        for shape in shapes:
            geometry = next(iter(getattr(child(shape, "geometry"), "children", [])), None)
            about = placed(pose(shape))
            if shape.tag == "visual":
                about |= {"contype": "0", "conaffinity": "0", "mass": "0"}
                about |= {"group": str(_VISUAL_GROUP), "rgba": written(_colour(shape))}
            else:
                if has_visuals:
                    about["group"] = str(COLLISION_GROUP)
                mu = "surface", "friction", "ode", "mu"
                if child(shape, *mu) is not None:
                    friction = min(number(shape, *mu, default="1"), _MOST_FRICTION)
                    about["friction"] = f"{friction:.12g}"
            is_drawn = shape.tag == "visual" and child(shape, "material") is None
            kind = "drawing" if is_drawn else "mesh"
            for part in [] if geometry is None else self._geometries(geometry, kind, is_static):
                yield Element("geom", _combined(about, part), shape.place)

    def _geometries(self, given: Element, mesh: str, is_static: bool) -> Iterator[dict[str, str]]:
        """Yield the attributes of geoms for a shape; poses are in that of the shape.

        Args:
            given: The shape.
            mesh: Kind of the file of a mesh, see `Find`.
            is_static: Whether it never moves.
        """
        kind = given.tag
        radius, length = (number(given, name, default="1") for name in ("radius", "length"))
        match kind:
            case "box":
                yield {
                    "type": kind,
                    "size": written(numbers(given, "size", default="1 1 1", n=(3,)) / 2),
                }
            case "sphere":
                yield {"type": kind, "size": written(np.array(radius))}
            case "cylinder" | "capsule":
                yield {"type": kind, "size": written(np.array([radius, length / 2]))}
            case "ellipsoid":
                radii = numbers(given, "radii", default="1 1 1", n=(3,))
                yield {"type": kind, "size": written(radii)}
            case "plane":
                size = written(numbers(given, "size", default="1 1", n=(2,)) / 2)
                turned = np.eye(4)
                turned[:3, :3] = _towards(numbers(given, "normal", default="0 0 1", n=(3,)))
                kind, height = ("plane", 1) if is_static else ("box", _THIN)
                yield {"type": kind, "size": f"{size} {height}", **placed(turned)}
            case "mesh":
                if (uri := child(given, "uri")) is None:
                    raise ValueError(f"mesh in {given.place} has no uri")
                if child(given, "submesh") is not None:
                    self.left_out.add("submesh")
                scale = written(numbers(given, "scale", default="1 1 1", n=(3,)))
                for file, rgba in self._find(uri, mesh):
                    name = self._asset(uri, "mesh", file, scale=scale, inertia="shell")
                    yield {"type": "mesh", "mesh": name} | ({"rgba": rgba} if rgba else {})
            case "heightmap" if is_static and (uri := child(given, "uri")) is not None:
                x, y, z = numbers(given, "size", default="1 1 1", n=(3,))
                spans = written(np.array([x / 2, y / 2, z, 0.1]))
                ((file, _),) = self._find(uri, "hfield")
                yield {"type": "hfield", "hfield": self._asset(uri, "hfield", file, size=spans)}
            case "empty":
                return
            case _:
                self.left_out.add(kind)

    def _asset(self, uri: Element, kind: str, file: str, **settings: str) -> str:
        key = kind, file, *settings.values()
        if key not in self._names:
            self._names[key] = f"{kind}{len(self._names)}"
            about = {"name": self._names[key], "file": file, **settings}
            self.assets.append(Element(kind, about, uri.place))
        return self._names[key]


def light(given: Element, matrix: np.ndarray) -> Element:
    """Return a light at a pose, shape (4, 4)."""
    kind = given.get("type", "point")
    direction = matrix[:3, :3] @ numbers(given, "direction", default="0 0 -1", n=(3,))
    about = {
        "pos": written(matrix[:3, 3]),
        "dir": written(direction),
        "type": kind if kind in ("directional", "spot") else "point",
        "diffuse": written(numbers(given, "diffuse", default="1 1 1", n=(3, 4))[:3]),
        "specular": written(numbers(given, "specular", default=".1 .1 .1", n=(3, 4))[:3]),
        "castshadow": "true" if is_true(given, "cast_shadows") else "false",
    }
    return Element("light", about, given.place)


def inertial(link: Element, pose: Callable[[Element], np.ndarray]) -> Element:
    """Return mass and inertia of a link, by default 1 kg and 1 kg m^2."""
    given = child(link, "inertial")
    at = np.eye(4) if given is None else pose(given)
    xx, yy, zz, xy, xz, yz = (
        number(given, "inertia", key, default="1" if key[1] == key[2] else "0")
        for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    tensor = at[:3, :3] @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ at[:3, :3].T
    rows, columns = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
    about = {
        "pos": written(at[:3, 3]),
        "mass": written(np.array(number(given, "mass", default="1"))),
        "fullinertia": written(tensor[rows, columns]),
    }
    return Element("inertial", about, link.place if given is None else given.place)


def _colour(visual: Element) -> np.ndarray:
    material = child(visual, "material")
    found = numbers(material, "diffuse", n=(0, 3, 4))
    if not len(found):
        found = numbers(material, "ambient", n=(0, 3, 4))
    if not len(found):
        script = text(material, "script", "name").rpartition("/")[2].lower()
        found = np.array(_SCRIPTS.get(script, _GREY), float)
    rgba = np.append(found, 1.0)[:4] if len(found) == 3 else found[:4].copy()
    rgba[3] *= 1 - number(visual, "transparency", default="0")
    return np.clip(rgba, 0, 1)


def _combined(about: dict[str, str], part: dict[str, str]) -> dict[str, str]:
    """Return the attributes of a shape with those of its geometry, which may be turned in it."""
    if "quat" in part:
        turn, inside = (
            frames.wxyz_to_xyzw(np.array(one["quat"].split(), float)) for one in (about, part)
        )
        quat = frames.xyzw_to_wxyz(frames.multiply(turn, inside))
        return about | part | {"pos": about["pos"], "quat": written(quat)}
    return about | part


def _towards(normal: np.ndarray) -> np.ndarray:
    """Return a rotation, shape (3, 3), of the z axis towards a vector."""
    if not (norm := np.linalg.norm(normal)):
        raise ValueError("the normal of a plane must have a length, got 0 0 0")
    z = normal / norm
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack((x, np.cross(z, x), z))
