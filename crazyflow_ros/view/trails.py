"""The paths that drones have flown."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.swarm import color_of

_TRAIL, _ALL_TRAILS = 240, 6000  # points of one trail, and of all trails together
_TRAIL_STEP = 0.02  # m between two points of a trail
_JUMP = 1.0  # m between two frames, above which the drone was reset and did not fly
_TRAIL_PERIOD = 6  # frames between two drawings of the trails, which are the largest messages


class Trails:
    """Lines behind the drones, in one node of the scene.

    Attributes:
        is_late: Whether there are points that are not drawn yet.
    """

    def __init__(self, scene: Any, names: Sequence[str]) -> None:
        length = min(_TRAIL, _ALL_TRAILS // max(len(names), 1))
        self._points: list[deque[np.ndarray]] = [deque(maxlen=length) for _ in names]
        self._colors = np.array([color_of(number) for number in range(len(names))])
        self._scene, self._wait = scene, 0
        self._handle: Any = None
        self.is_late = False

    def remove(self) -> None:
        """Remove the lines."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def show(self, frame: Frame, *, visible: bool) -> None:
        """Add the positions of a frame, and show the lines."""
        for points, position in zip(self._points, frame.position):
            step = float(np.linalg.norm(position - points[-1])) if points else math.inf
            if step > _JUMP:
                points.clear()
            if step > _TRAIL_STEP:
                points.append(position)
                self.is_late = True
        self._wait = max(self._wait - 1, 0)
        if not visible:
            self.remove()
            self.is_late = False
        elif self._wait == 0:
            self._wait = _TRAIL_PERIOD
            self._draw()
            self.is_late = False

    def _draw(self) -> None:
        lines, colors = [], []
        for points, color in zip(self._points, self._colors):
            if len(points) > 1:
                line = np.array(points, np.float32)
                lines.append(np.stack([line[:-1], line[1:]], axis=1))
                colors.append(np.tile(color, (len(line) - 1, 2, 1)))
        self.remove()
        if lines:
            self._handle = self._scene.add_line_segments(
                "/trails",
                np.concatenate(lines),
                np.concatenate(colors),
                thickness=2.0,
                thickness_units="screen",
            )
