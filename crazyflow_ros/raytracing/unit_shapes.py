"""The geoms of a scene as shapes of unit size.

Each shape has coordinates in which it has unit size: a box is the cube |x|, |y|, |z| < 1, an
ellipsoid the unit sphere. They are an affine map of the geom's frame, so that a ray is a straight
line in them, too, and has the same parameter along it. Meshes and height fields are triangles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.triangles import n_triangles, triangles_of
from crazyflow_ros.scene.renderers import FLOOR
from crazyflow_ros.xla.struct import Struct, static_field

WORD = 32
"""Shapes in a word of bits."""
MOST_SHAPES = 20_000
"""Greatest number of shapes, most of them triangles of meshes and height fields; a picture of
64 x 64 of so many takes milliseconds."""

CORNER_ROWS = 18
"""Numbers of the corners of a triangle, see `UnitShapes.corners`."""

_GEOM = mujoco.mjtGeom
_OPAQUE = 0.995  # from which on MuJoCo does not blend
_DEFAULT_COLOR = (0.5, 0.5, 0.5, 1.0)


class UnitShape(Enum):
    """Kinds of shapes of unit size."""

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
    """Selects geoms by their opacity."""

    any = auto()
    opaque = auto()
    transparent = auto()


class UnitShapes(Struct):
    """P shapes: those of a kind side by side, in whole words; the rest of a word is empty."""

    words: tuple[tuple[UnitShape, int], ...] = static_field()
    """The kinds, and the number of words of each."""
    geom: Array | np.ndarray
    """Ids of the geoms, shape (P,) int32; -1 where there is no shape."""
    rows: Array | np.ndarray
    """(31, P) float32, see `visibility`: unit vectors of the shape's coordinates in the geom's
    frame as columns [m] (3, 3), their origin [m] (3), the inverse of the vectors [1/m] (3, 3), half
    size of the box around the shape in its coordinates (3), zero along the axes of planes that have
    no end and are seen around the camera, else one (3), half length of the axis of a capsule or the
    two numbers before of planes (2), whether there is a shape, and the value of its kind."""
    corners: Array | np.ndarray | None
    """Of triangles, the normals at the three corners in the shape's coordinates, and the places of
    the corners in textures, see `Triangles`; (P, CORNER_ROWS) float32, None if there are none."""

    def with_room(self, words: Mapping[UnitShape, int]) -> UnitShapes:
        """Return the shapes with at least these numbers of words, of which some are empty."""
        own = dict(self.words)
        total = {kind: max(own.get(kind, 0), words.get(kind, 0)) for kind in UnitShape}
        total = {kind: n for kind, n in total.items() if n}
        geom, rows, corners = _packed(
            [_nothing(kind) for kind in total for _ in range(WORD * total[kind])]
        )
        start = place = 0
        for kind, n in total.items():
            end = start + WORD * own.get(kind, 0)
            here = slice(place, place + end - start)
            geom[here], rows[:, here] = self.geom[start:end], self.rows[:, start:end]
            if corners is not None and self.corners is not None:
                corners[here] = self.corners[start:end]
            start, place = end, place + WORD * n
        return UnitShapes(tuple(total.items()), geom, rows, corners)


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
            slots += own + [_nothing(kind)] * (WORD * n_words - len(own))
    return UnitShapes(tuple(words), *_packed(slots))


def _nothing(kind: UnitShape) -> _Shape:
    """Return what is in the rest of a word."""
    return _Shape(kind, -1, np.eye(3))


def _packed(slots: Sequence[_Shape]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return `UnitShapes.geom`, `rows` and `corners`."""
    axes, centre, extent, ends = (
        np.array([getattr(slot, name) for slot in slots])
        for name in ("axes", "centre", "extent", "ends")
    )
    kinds, geom = np.array([slot.kind.value for slot in slots]), np.array([s.geom for s in slots])
    length = np.stack([extent[:, 2] - 1.0, np.zeros(len(slots))])
    extra = np.where(kinds == UnitShape.plane.value, ends[:, :2].T, length)
    parts = [axes, centre, np.linalg.inv(axes), extent, ends]
    flat = [part.reshape(len(slots), -1).T for part in parts]
    rows = np.concatenate([*flat, extra, [geom >= 0], [kinds]]).astype(np.float32)
    corners = None
    if (kinds == UnitShape.triangle.value).any():
        corners = np.array([slot.corners for slot in slots], np.float32)
    return geom.astype(np.int32), rows, corners


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
