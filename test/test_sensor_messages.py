"""What is in the messages of sensors, without a node."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from visualization_msgs.msg import Marker

from crazyflow_ros.ros.sensor_markers import marker_array
from crazyflow_ros.sensors import ShapeRecorder


@pytest.mark.parametrize(("rate", "seconds"), [(50, 0.5), (4, 0.5), (3, 2 / 3), (1, 2.0)])
def test_markers_stay_until_others_come(rate: int, seconds: float) -> None:
    shapes = ShapeRecorder(mujoco.MjModel.from_xml_string("<mujoco/>"))
    shapes.add_arrow(np.zeros(3), np.ones(3), (1, 0, 0, 1), 0.1)
    hits, rays = marker_array(shapes, 1_500_000_000, rate).markers
    for marker in (hits, rays):
        assert marker.lifetime.sec + marker.lifetime.nanosec * 1e-9 == pytest.approx(seconds)
        assert (marker.header.stamp.sec, marker.header.stamp.nanosec) == (1, 500_000_000)
    assert (hits.action, rays.action) == (Marker.DELETE, Marker.ADD)  # nothing was hit
    assert hits.id != rays.id and [p.x for p in rays.points] == [0.0, 1.0]
