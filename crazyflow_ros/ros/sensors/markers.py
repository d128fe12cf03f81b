"""Drawings of sensors as markers for RViz."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import point
from crazyflow_ros.ros.messages.times import duration_of, time_of
from crazyflow_ros.ros.sensors.devices import Topic
from crazyflow_ros.sensors import ShapeRecorder

MARKERS = Topic(MarkerArray, "/markers", "MarkerArray")
"""The topic of the drawings of a sensor."""
_SHORTEST = 0.5  # s, minimum lifetime of markers


def marker_array(shapes: ShapeRecorder, time_ns: int, rate: int) -> MarkerArray:
    """Return spheres and arrows in the map, one marker for all spheres and one for all arrows.

    Args:
        shapes: The drawing.
        time_ns: Time of the readings [ns].
        rate: Rate of the sensor [Hz]; markers stay for two periods.
    """
    spheres, arrows = shapes.spheres, shapes.arrows
    points = _marker(
        Marker.SPHERE_LIST, time_ns, [s.center for s in spheres], [s.color for s in spheres]
    )
    ends = [end for arrow in arrows for end in (arrow.start, arrow.end)]
    colors = [color for arrow in arrows for color in (arrow.color, arrow.color)]
    lines = _marker(Marker.LINE_LIST, time_ns, ends, colors)
    lifetime = duration_of(max(_SHORTEST, 2 / rate))
    for marker, size in (
        (points, max((2 * sphere.radius for sphere in spheres), default=0.0)),
        (lines, max((arrow.width for arrow in arrows), default=0.0)),
    ):
        marker.scale.x = marker.scale.y = marker.scale.z = size
        marker.lifetime = lifetime
    return MarkerArray(markers=[points, lines])


def _marker(
    kind: int, time_ns: int, points: Iterable[np.ndarray], colors: Iterable[tuple[float, ...]]
) -> Marker:
    marker = Marker(type=kind, id=kind, action=Marker.ADD)
    marker.header.frame_id = frame_ids.MAP
    marker.header.stamp = time_of(time_ns)
    marker.points = list(map(point, points))
    marker.colors = [ColorRGBA(r=r, g=g, b=b, a=a) for r, g, b, a in colors]
    if not marker.points:
        marker.action = Marker.DELETE
    return marker
