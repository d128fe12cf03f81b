"""Shapes of the scene as markers, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import point, pose, vector, xyz, xyzw
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape

_TYPES = {
    ShapeForm.BOX: Marker.CUBE,
    ShapeForm.SPHERE: Marker.SPHERE,
    ShapeForm.CYLINDER: Marker.CYLINDER,
    ShapeForm.MESH: Marker.TRIANGLE_LIST,
}
_FORMS = {kind: form for form, kind in _TYPES.items()}


def markers_of(shapes: Sequence[VisibleShape]) -> MarkerArray:
    """Return markers that replace all earlier ones, one for each shape.

    Those of bodies that move are in the frames of their bodies, which TF moves, others in the map.
    """
    return MarkerArray(
        markers=[Marker(action=Marker.DELETEALL), *map(_marker, range(len(shapes)), shapes)]
    )


def shapes_of(markers: MarkerArray) -> list[VisibleShape]:
    """Return the shapes of markers made by `markers_of`; others are left out."""
    return [
        shape
        for marker in markers.markers
        if marker.action == Marker.ADD and marker.type in _FORMS
        if np.isfinite((shape := _shape(marker)).position).all()
    ]


def _marker(number: int, shape: VisibleShape) -> Marker:
    marker = Marker(ns="scene", id=number, type=_TYPES[shape.form], action=Marker.ADD)
    marker.header.frame_id = shape.frame or frame_ids.MAP
    marker.frame_locked = bool(shape.frame)
    marker.pose = pose(shape.position, shape.attitude)
    marker.scale = vector(shape.size)
    r, g, b, a = shape.rgba.tolist()
    marker.color = ColorRGBA(r=r, g=g, b=b, a=a)
    if shape.triangles is not None:
        marker.points = list(map(point, shape.triangles.reshape(-1, 3)))
    return marker


def _shape(marker: Marker) -> VisibleShape:
    color, triangles = marker.color, None
    if _FORMS[marker.type] is ShapeForm.MESH:
        corners = np.array(list(map(xyz, marker.points)))
        triangles = corners[: len(corners) // 3 * 3].reshape(-1, 3, 3)
    return VisibleShape(
        _FORMS[marker.type],
        xyz(marker.pose.position),
        xyzw(marker.pose.orientation),
        xyz(marker.scale),
        np.array([color.r, color.g, color.b, color.a]),
        triangles,
        "" if marker.header.frame_id == frame_ids.MAP else marker.header.frame_id,
    )
