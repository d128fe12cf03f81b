"""What moves in the world besides drones: bodies, those that look alike in one node, and cables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crazyflow_ros.scene.frames import xyzw_to_wxyz
from crazyflow_ros.scene.moving_frames import Poses
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.ground import Ground
from crazyflow_ros.view.meshes import glb
from crazyflow_ros.view.shadows import Shadows

_CABLE = (70, 74, 82)  # red, green and blue
_THICKNESS = 2.0  # CSS pixels
_LARGEST, _REACH = 0.5, 2.0  # m: radius of a shadow of a body; its height above it, in radii
_AROUND = 1.3  # size of a shadow, relative to its body


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
        self._shadows: Shadows | None = None
        self._with_shadows: list[str] = []

    def cast(self, shapes: Sequence[VisibleShape], ground: Ground) -> None:
        """Let bodies that are on the ground, or fall onto it, have shadows there."""
        radii: dict[str, float] = {}
        for shape in shapes:
            half = _AROUND * float(np.linalg.norm(shape.size[:2])) / 2
            reach = float(np.abs(shape.position[:2]).max()) + half
            radii[shape.frame] = max(reach, radii.get(shape.frame, 0.0))
        small = {name: radius for name, radius in radii.items() if radius < _LARGEST}
        if small:
            self._with_shadows = list(small)
            of_each = np.array(list(small.values()))
            self._shadows = Shadows(self._scene, of_each, ground, "/body_shadows")
            self._shadows.reach = _REACH

    def remove(self) -> None:
        """Remove what is drawn."""
        for _, handle in self._nodes:
            handle.remove()
        for node in (self._cables, self._shadows):
            if node is not None:
                node.remove()
        self._shadows = None
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
        names = self._with_shadows
        if self._shadows is not None and all(name in rows for name in names):
            self._shadows.show(poses.pos[[rows[name] for name in names]], 1.0, visible=True)
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
