"""What moves in the world besides drones: bodies, those that look alike in one node, and cables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crazyflow_ros.scene.frames import xyzw_to_wxyz
from crazyflow_ros.scene.moving_frames import Poses
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.meshes import glb

_CABLE = (70, 74, 82)  # red, green and blue
_THICKNESS = 2.0  # CSS pixels


class ShownBodies:
    """The bodies of a world, which a frame places.

    Args:
        scene: The scene.
        shapes: Shapes in the frames of their bodies, see `VisibleShape.frame`.
    """

    def __init__(self, scene: Any, shapes: Sequence[VisibleShape]) -> None:
        self._scene, self._cables = scene, None  # type: Any, Any
        of_each: dict[str, list[VisibleShape]] = {}
        for shape in shapes:
            of_each.setdefault(shape.frame, []).append(shape)
        self._alike: dict[bytes, list[str]] = {}
        for name, own in of_each.items():
            self._alike.setdefault(glb(own), []).append(name)
        self._nodes: list[tuple[list[str], Any]] = []

    def remove(self) -> None:
        """Remove what is drawn."""
        for _, handle in self._nodes:
            handle.remove()
        if self._cables is not None:
            self._cables.remove()
        self._nodes, self._cables = [], None

    def show(self, frame: Frame) -> None:
        """Place the bodies; without their poses, nothing changes."""
        if frame.bodies is not None:
            self._place(frame.bodies)
        if frame.cables is not None:
            self._draw(frame.cables)

    def _place(self, poses: Poses) -> None:
        rows = {name: row for row, name in enumerate(poses.names)}
        if not self._nodes:
            self._begin(rows)
        for names, handle in self._nodes:
            if all(name in rows for name in names):  # else of a world that comes or goes
                own = [rows[name] for name in names]
                handle.batched_positions = poses.pos[own].astype(np.float32)
                handle.batched_wxyzs = xyzw_to_wxyz(poses.quat[own]).astype(np.float32)

    def _begin(self, known: dict[str, int]) -> None:
        """Add the bodies, once it is known where they are."""
        if not all(name in known for names in self._alike.values() for name in names):
            return
        for number, (content, names) in enumerate(self._alike.items()):
            places = np.zeros((len(names), 3), np.float32)
            turns = np.tile(np.array([1, 0, 0, 0], np.float32), (len(names), 1))
            handle = self._scene.add_batched_glb(
                f"/bodies{number}", content, turns, places, lod="off"
            )
            self._nodes.append((names, handle))

    def _draw(self, cables: np.ndarray) -> None:
        if self._cables is None or len(self._cables.points) != len(cables):
            if self._cables is not None:
                self._cables.remove()
            self._cables = self._scene.add_line_segments(
                "/cables",
                cables.astype(np.float32),
                _CABLE,
                thickness=_THICKNESS,
                thickness_units="screen",
            )
        self._cables.points = cables.astype(np.float32)
