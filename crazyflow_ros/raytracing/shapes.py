"""The geoms of a scene as shapes of unit size.

Each shape has coordinates in which it has unit size: a box is the cube |x|, |y|, |z| < 1, an
ellipsoid the unit sphere. They are an affine map of the geom's frame, so that a ray is a straight
line in them, too, and has the same parameter along it. Meshes and height fields are triangles.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.raytracing.triangles import n_triangles, triangles_of
from crazyflow_ros.scene.renderers import FLOOR

WORD = 32
"""UnitShapes in a word of bits."""
MOST_SHAPES = 20_000
"""Greatest number of shapes, most of them triangles of meshes and height fields; a picture of
64 x 64 of so many takes milliseconds."""

CORNER_ROWS = 18
"""Numbers of the corners of a triangle, see `UnitShapes.corners`."""

_GEOM = mujoco.mjtGeom
_OPAQUE = 0.995  # from which on MuJoCo does not blend
_DEFAULT_COLOR = (0.5, 0.5, 0.5, 1.0)


class UnitShape(Enum):
    """UnitShapes of unit size."""

    plane = auto()
    box = auto()
    ball = auto()
    cylinder = auto()
    capsule = auto()
    triangle = auto()


_KINDS = {
    _GEOM.mjGEOM_PLANE: UnitShape.plane,
    _GEOM.mjGEOM_SPHERE: UnitShape.ball,
    _GEOM.mjGEOM_ELLIPSOID: UnitShape.ball,
    _GEOM.mjGEOM_CAPSULE: UnitShape.capsule,
    _GEOM.mjGEOM_CYLINDER: UnitShape.cylinder,
    _GEOM.mjGEOM_BOX: UnitShape.box,
}
_TRIANGLES = (_GEOM.mjGEOM_MESH, _GEOM.mjGEOM_HFIELD)


class Opacity(Enum):
    """Which geoms are meant."""

    any = auto()
    opaque = auto()
    transparent = auto()


class UnitShapes(NamedTuple):
    """P shapes: those of a kind side by side, in whole words; the rest of a word is empty."""

    words: tuple[tuple[UnitShape, int], ...]
    """The kinds, and the number of words of each."""
    geom: np.ndarray
    """Ids of the geoms, shape (P,) int32; -1 where there is no shape."""
    axes: np.ndarray
    """Unit vectors of the shape's coordinates in the geom's frame as columns [m], (P, 3, 3)."""
    centre: np.ndarray
    """Origin of the shape's coordinates in the geom's frame [m], (P, 3)."""
    to_unit: np.ndarray
    """The inverse of `axes` [1/m], (P, 3, 3)."""
    extent: np.ndarray
    """Half size of the box around the shape in its coordinates, (P, 3)."""
    ends: np.ndarray
    """Zero along the axes of planes that have no end, and are seen around the camera; else one,
    (P, 3)."""
    corners: np.ndarray | None
    """Of triangles, the normals at the three corners in the shape's coordinates, and the places of
    the corners in textures, see `Triangles`; (P, CORNER_ROWS) float32, None if there are none."""

    @property
    def kinds(self) -> np.ndarray:
        """The kind of each shape as its value, (P,) int32."""
        return np.repeat(
            np.array([kind.value for kind, _ in self.words], np.int32),
            [WORD * n for _, n in self.words],
        )

    @property
    def rows(self) -> np.ndarray:
        """All numbers, whether there is a shape, and its kind, (31, P) float32; see `view`."""
        parts = [self.axes, self.centre, self.to_unit, self.extent, self.ends]
        flat = [part.reshape(len(self.geom), -1).T for part in parts]
        last = self.extra, [self.geom >= 0], [self.kinds]
        return np.concatenate([*flat, *last]).astype(np.float32)

    @property
    def extra(self) -> np.ndarray:
        """Half length of the axis of a capsule in its coordinates, or `ends` of planes, (2, P)."""
        length = np.stack([self.extent[:, 2] - 1.0, np.zeros(len(self.geom))])
        return np.where(self.kinds == UnitShape.plane.value, self.ends[:, :2].T, length)


class _Shape(NamedTuple):
    """One shape."""

    kind: UnitShape
    geom: int
    axes: np.ndarray
    centre: np.ndarray = np.zeros(3)
    extent: np.ndarray = np.ones(3)
    ends: np.ndarray = np.ones(3)
    corners: np.ndarray = np.zeros(CORNER_ROWS)


def shapes_of(
    model: mujoco.MjModel,
    groups: Sequence[int],
    opacity: Opacity = Opacity.any,
    without: int = -1,
) -> UnitShapes:
    """Return the shapes of the geoms that can be seen in a scene.

    Args:
        model: The scene.
        groups: Geom groups that are seen.
        opacity: Which of them are meant.
        without: Id of a geom that is left out, -1 for none.

    Raises:
        ValueError: The scene has nothing to see, or geoms that are not among the shapes.
    """
    geoms = np.flatnonzero(seen(model, groups, opacity, without)).tolist()
    _check(model, geoms)
    shapes = [shape for geom in geoms for shape in _of_geom(model, geom)]
    if not shapes:
        raise ValueError(f"no geom of the groups {tuple(groups)} can be seen")
    words, slots = [], []
    for kind in UnitShape:
        own = [shape for shape in shapes if shape.kind is kind]
        if own:
            n_words = -(-len(own) // WORD)
            words.append((kind, n_words))
            slots += own + [_Shape(kind, -1, np.eye(3))] * (WORD * n_words - len(own))
    axes = np.array([slot.axes for slot in slots])
    return UnitShapes(
        tuple(words),
        np.array([slot.geom for slot in slots], np.int32),
        axes,
        np.array([slot.centre for slot in slots]),
        np.linalg.inv(axes),
        np.array([slot.extent for slot in slots]),
        np.array([slot.ends for slot in slots]),
        np.array([slot.corners for slot in slots], np.float32)
        if any(kind is UnitShape.triangle for kind, _ in words) else None,
    )  # fmt: skip


def _check(model: mujoco.MjModel, geoms: Sequence[int]) -> None:
    """Refuse what rays would not see, and more shapes than there may be.

    Raises:
        ValueError: There is such a thing; the message names it.
    """
    for what, number in (("flexes", model.nflex), ("skins", model.nskin)):
        if number:
            raise ValueError(f"pictures by rays have no {what}, and the scene has {number}")
    number = 0
    for geom in geoms:
        type_ = _GEOM(model.geom_type[geom])
        name = model.geom(geom).name or f"number {geom}"
        if type_ not in _KINDS and type_ not in _TRIANGLES:
            what = type_.name.removeprefix("mjGEOM_").lower()
            raise ValueError(f"pictures by rays have no {what}, which the geom {name} is")
        number += n_triangles(model, geom) if type_ in _TRIANGLES else 1
        if number > MOST_SHAPES:
            raise ValueError(
                f"pictures by rays may have {MOST_SHAPES} shapes and triangles, and with the geom "
                f"{name} it would be {number}; leave its group out, or take a coarser mesh"
            )


def seen(
    model: mujoco.MjModel,
    groups: Sequence[int],
    opacity: Opacity = Opacity.any,
    without: int = -1,
) -> np.ndarray:
    """Return which geoms are seen, (ngeom,) bool: not those without opacity; see `shapes_of`."""
    share = colors_of(model)[:, 3]
    meant = {
        Opacity.any: share > 0.0,
        Opacity.opaque: share >= _OPAQUE,
        Opacity.transparent: (share > 0.0) & (share < _OPAQUE),
    }
    return (
        np.isin(model.geom_group, list(groups))
        & meant[opacity]
        & (np.arange(model.ngeom) != without)
    )


def colors_of(model: mujoco.MjModel) -> np.ndarray:
    """Return the colors of geoms: their own, or if it is the default that of their material.

    Returns:
        Red, green, blue and opacity, (ngeom, 4).
    """
    own = model.geom_rgba.astype(float)
    from_material = (model.geom_matid >= 0) & (own == _DEFAULT_COLOR).all(axis=1)
    own[from_material] = model.mat_rgba[model.geom_matid[from_material]]
    return own


def _of_geom(model: mujoco.MjModel, geom: int) -> list[_Shape]:
    size, type_ = model.geom_size[geom].astype(float), _GEOM(model.geom_type[geom])
    if type_ in _TRIANGLES:
        return [_triangle(geom, *each) for each in zip(*triangles_of(model, geom))]
    kind = _KINDS[type_]
    if kind is UnitShape.plane:
        endless = size[:2] <= 0.0
        half = np.array([*np.where(endless, FLOOR, size[:2]), 1.0])
        ends = np.array([*~endless, True], float)
        return [_Shape(kind, geom, np.diag(half), extent=np.array([1.0, 1.0, 0.0]), ends=ends)]
    if kind is UnitShape.capsule:
        radius, half = size[:2]
        extent = np.array([1.0, 1.0, 1.0 + half / radius])
        return [_Shape(kind, geom, radius * np.eye(3), extent=extent)]
    if type_ == _GEOM.mjGEOM_SPHERE:
        size = size[[0, 0, 0]]
    elif kind is UnitShape.cylinder:
        size = size[[0, 0, 1]]
    return [_Shape(kind, geom, np.diag(size))]


def _triangle(geom: int, corners: np.ndarray, normals: np.ndarray, place: np.ndarray) -> _Shape:
    """Return a triangle, see `Triangles`."""
    first, second = (corners[1] - corners[0]) / 2, (corners[2] - corners[0]) / 2
    normal = np.cross(first, second)
    axes = np.stack([first, second, normal / np.linalg.norm(normal)], axis=1)
    centre = (corners[1] + corners[2]) / 2
    of_corners = np.concatenate([(normals @ axes).ravel(), place.ravel()])
    extent = np.array([1.0, 1.0, 0.0])
    return _Shape(UnitShape.triangle, geom, axes, centre, extent, corners=of_corners)
