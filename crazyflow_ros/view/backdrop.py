"""Shapes of a world as they are drawn: solid, with edges, and with shade on the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape
from crazyflow_ros.view.glb import GlbPart, band, circle, glb_of, unlit
from crazyflow_ros.view.meshes import linear_rgba, mesh_of, parts_of

_VAST = 90.0  # m, of a plane that is drawn up to the horizon
_BELOW = 0.002  # m, the stage's floor below everything, where a world has none
_FLAT = 0.01  # m, thickness of a plane, and how far what stands on the floor may be above it
_UPRIGHT = 1 - 1e-6  # cosine, of what stands
_TALL, _THIN, _OUTER = 1.0, 0.35, 0.8  # m, m, and share of the world's extent: a wall around it
_SHADE, _WALL_SHADE, _SHADE_WIDTH, _SHADE_Z = 0.34, 0.16, 0.14, 0.004  # opacities, m, m
_FOOT, _DIM = 0.5, 0.3  # m above the floor up to which shapes are darker, and how much at most
_SUN = np.array([4.0, -7.0, 11.0])  # towards the sun of the stage
_CAST, _CAST_Z, _SOFT = 0.24, 0.0035, 0.05  # opacity of a shadow, m, m: its edge on the floor
_MOST_CORNERS = 20_000  # of a shape that casts a shadow
_EDGE = 0.6  # brightness of an edge, relative to its shape
_SECTIONS = 32  # of a circle
_MOST_EDGES = 20_000  # segments

_CORNERS = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_BOX_EDGES = np.array(
    [(a, b) for a in range(8) for b in range(a) if np.abs(_CORNERS[a] - _CORNERS[b]).sum() == 1]
)


class Backdrop(NamedTuple):
    """A world, ready to be drawn."""

    floor: float
    """Height of its floor [m], which the stage draws; without one, of what is below everything."""
    shapes: list[VisibleShape]
    """Its other shapes."""
    glb: bytes
    """These as a GLB file; empty if there are none."""
    edges: np.ndarray
    """Their edges as segments [m], shape (k, 2, 3)."""
    edge_colors: np.ndarray
    """Red, green and blue from 0 to 255, shape (k, 2, 3)."""


def scenery_of(shapes: Sequence[VisibleShape]) -> Backdrop:
    """Return how a world is drawn.

    The walls around it are not seen from outside: cameras look into the room over them.
    """
    planes = [shape for shape in shapes if _is_vast(shape)]
    rest = [shape for shape in shapes if not _is_vast(shape)]
    lowest = min((_lowest(shape) for shape in rest), default=0.0)
    floor = max((_top(plane) for plane in planes), default=min(lowest, 0.0) - _BELOW)
    if not rest:
        return Backdrop(floor, [], b"", np.empty((0, 2, 3)), np.empty((0, 2, 3), np.uint8))
    outward = outward_of(rest)
    pieces = [(own, wall) for shape, wall in zip(rest, outward) for own in _cut(shape, floor)]
    parts = parts_of([own for own, wall in pieces if wall is None])
    parts += [_wall(own, wall) for own, wall in pieces if wall is not None]
    parts = [_dimmed(part, floor) for part in parts]
    parts += _cast([shape for shape, wall in zip(rest, outward) if wall is None], floor)
    parts += _shades(rest, outward, floor)
    edges = [_edges(shape, wall) for shape, wall in zip(rest, outward)]
    colors = [
        np.broadcast_to(np.uint8(255 * _EDGE * shape.rgba[:3]), own.shape)
        for shape, own in zip(rest, edges)
    ]
    every, of_each = np.concatenate(edges), np.concatenate(colors)
    return Backdrop(floor, rest, glb_of(parts), every[:_MOST_EDGES], of_each[:_MOST_EDGES])


def _is_vast(shape: VisibleShape) -> bool:
    return (
        shape.form is ShapeForm.BOX
        and shape.size[2] < _FLAT
        and float(shape.size[:2].min()) > _VAST
        and _is_upright(shape)
    )


def _is_upright(shape: VisibleShape) -> bool:
    return bool(abs(rotation_matrix(shape.attitude)[2, 2]) > _UPRIGHT)


def _top(shape: VisibleShape) -> float:
    return float(shape.position[2] + shape.size[2] / 2)


def _lowest(shape: VisibleShape) -> float:
    corners = _CORNERS * shape.size if shape.triangles is None else shape.triangles.reshape(-1, 3)
    return float((shape.position + corners @ rotation_matrix(shape.attitude).T)[:, 2].min())


def outward_of(shapes: Sequence[VisibleShape]) -> list[np.ndarray | None]:
    """Return the axis and sign of the outer side (3,) of each wall around the world."""
    if not shapes:
        return []
    places = np.array([shape.position[:2] for shape in shapes])
    middle = (places.min(axis=0) + places.max(axis=0)) / 2
    reach = np.abs(places - middle).max(axis=0)
    return [_outward(shape, middle, reach) for shape in shapes]


def _outward(shape: VisibleShape, middle: np.ndarray, reach: np.ndarray) -> np.ndarray | None:
    if shape.form is not ShapeForm.BOX or not _is_upright(shape):
        return None
    thin = int(np.argmin(shape.size))
    wide = max(shape.size[axis] for axis in (0, 1) if axis != thin)
    if thin == 2 or shape.size[thin] > _THIN or wide < _TALL:
        return None
    normal = rotation_matrix(shape.attitude)[:2, thin]
    away = float(normal @ (shape.position[:2] - middle))
    if abs(away) < _OUTER * float(np.abs(normal) @ reach) or abs(away) < _TALL:
        return None
    outward = np.zeros(3)
    outward[thin] = np.sign(away)
    return outward


def _wall(shape: VisibleShape, outward: np.ndarray) -> GlbPart:
    """Return the inner face of a wall, which is visible only from inside."""
    mesh = mesh_of(shape)
    normal = rotation_matrix(shape.attitude) @ outward
    faces = mesh.faces[mesh.face_normals @ normal < -0.5]
    return GlbPart(mesh.vertices, faces, linear_rgba(shape.rgba))


def _cut(shape: VisibleShape, floor: float) -> list[VisibleShape]:
    """Return a shape, in two pieces if it stands on the floor, so that its foot can be darker."""
    low = float(shape.position[2] - shape.size[2] / 2)
    is_solid = shape.form in (ShapeForm.BOX, ShapeForm.CYLINDER)
    if not (is_solid and _is_upright(shape) and abs(low - floor) < _FLAT):
        return [shape]
    if shape.size[2] < 1.5 * _FOOT:
        return [shape]
    pieces = []
    for begin, end in ((low, low + _FOOT), (low + _FOOT, low + float(shape.size[2]))):
        position = np.array([*shape.position[:2], (begin + end) / 2])
        size = np.array([*shape.size[:2], end - begin])
        pieces.append(replace(shape, position=position, size=size))
    return pieces


def _dimmed(part: GlbPart, floor: float) -> GlbPart:
    """Return a part that is darker near the floor, where less light comes from the sky."""
    height = np.clip((part.corners[:, 2] - floor) / _FOOT, 0.0, 1.0)
    share = 1 - _DIM * (1 - height) ** 2
    return replace(part, rgba=part.rgba * np.column_stack([*[share] * 3, np.ones(len(share))]))


def _cast(shapes: Sequence[VisibleShape], floor: float) -> list[GlbPart]:
    """Return the shadows of shapes in the light of the sun, on the floor, soft far from it."""
    corners: list[np.ndarray] = []
    opacities: list[float] = []
    faces: list[np.ndarray] = []
    for shape in shapes:
        mesh = mesh_of(shape)
        height = mesh.vertices[:, 2] - floor
        if shape.rgba[3] < 1 or len(height) > _MOST_CORNERS or height.max() < _FLAT:
            continue
        flat = mesh.vertices[:, :2] - np.maximum(height, 0)[:, None] * _SUN[:2] / _SUN[2]
        rim = flat[ConvexHull(flat).vertices]  # counter-clockwise
        middle, first = rim.mean(axis=0), sum(map(len, corners))
        soft = _SOFT * (1 + float(height.mean()))
        away = (rim - middle) / np.linalg.norm(rim - middle, axis=1)[:, None]
        corners += [rim - soft * away / 2, rim + soft * away / 2]
        opacities += [_CAST] * len(rim) + [0.0] * len(rim)
        faces += band(first, len(rim))
        fan = first + np.arange(1, len(rim) - 1)
        faces.append(np.column_stack([np.full(len(fan), first), fan, fan + 1]))
    return _on_floor(corners, opacities, faces, floor + _CAST_Z)


def _on_floor(
    corners: list[np.ndarray], opacities: list[float], faces: list[np.ndarray], height: float
) -> list[GlbPart]:
    if not corners:
        return []
    flat = np.concatenate(corners)
    places = np.column_stack([flat, np.full(len(flat), height)])
    seen = np.column_stack([np.zeros((len(flat), 3)), opacities])
    return [unlit(places, seen, np.concatenate(faces))]


def _edges(shape: VisibleShape, outward: np.ndarray | None) -> np.ndarray:
    """Return the edges of a shape, (k, 2, 3) [m]; of a wall those of its inner face."""
    if shape.form is ShapeForm.BOX:
        pairs = _CORNERS[_BOX_EDGES]
        if outward is not None:
            pairs = pairs[((pairs @ outward) < 0).all(axis=1)]
    elif shape.form is ShapeForm.CYLINDER:
        ring = np.column_stack([circle(_SECTIONS), np.ones(_SECTIONS)]) / 2
        segments = np.stack([ring, np.roll(ring, -1, axis=0)], axis=1)
        pairs = np.concatenate([segments, segments * [1, 1, -1]])
    else:
        return np.empty((0, 2, 3))
    return shape.position + (pairs * shape.size) @ rotation_matrix(shape.attitude).T


def _shades(
    shapes: Sequence[VisibleShape], outward: Sequence[np.ndarray | None], floor: float
) -> list[GlbPart]:
    """Return the soft shade around what stands on the floor."""
    corners: list[np.ndarray] = []
    opacities: list[float] = []
    faces: list[np.ndarray] = []
    for shape, wall in zip(shapes, outward):
        standing = _footprint(shape, wall)
        if standing is None or abs(shape.position[2] - shape.size[2] / 2 - floor) > _FLAT:
            continue
        inner, outer = standing
        faces += band(sum(map(len, corners)), len(inner))
        corners.append(np.concatenate([inner, outer]))
        shade = _SHADE if wall is None else _WALL_SHADE
        opacities += [shade] * len(inner) + [0.0] * len(outer)
    return _on_floor(corners, opacities, faces, floor + _SHADE_Z)


def _footprint(
    shape: VisibleShape, outward: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return where an upright shape stands and where its shade ends, each (n, 2) [m]."""
    if not _is_upright(shape):
        return None
    half = shape.size[:2] / 2
    if shape.form is ShapeForm.BOX:
        shown = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)
    elif shape.form is ShapeForm.CYLINDER:
        shown = circle(_SECTIONS)
    else:
        return None
    turn = rotation_matrix(shape.attitude)[:2, :2]
    away = shown * _SHADE_WIDTH
    if outward is not None:  # none outside
        away[shown @ outward[:2] > 0] = 0.0
    inner, outer = (own @ turn.T for own in (shown * half, shown * half + away))
    return shape.position[:2] + inner, shape.position[:2] + outer
