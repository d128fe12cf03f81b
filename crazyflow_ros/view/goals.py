"""The goal of the selected drone, which users drag: a ring on the floor, an arrow for height."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import viser

from crazyflow_ros.view.controls import User
from crazyflow_ros.view.glb import GlbPart, band, circle, glb_of, unlit
from crazyflow_ros.view.shadows import ABOVE
from crazyflow_ros.view.viewer import Viewer, floor_at

HEIGHTS = 0.1, 5.0
"""Lowest and highest goal above the floor [m]."""
_RING = 1.5, 2.0  # inner and outer radius of the ring, in drawn radii of a drone
_GAP, _HEAD, _WIDTH, _SHAFT = 0.9, 0.8, 0.45, 0.13  # of the arrow, in drawn radii of a drone
_TOP, _LABEL = 2.0, 2.3  # of the arrow, and where the height is written above its foot
_UP = np.array([0.0, 0.0, 1.0])
_COLOR, _RIM_COLOR = (0.0, 0.55, 0.95, 1.0), (1.0, 1.0, 1.0, 1.0)
_LINE = 0, 140, 242
_SECTIONS = 32
_MOVED = 2e-3  # m, the smallest change that is drawn
_STEEP = 1e-3  # of a ray, below which it says nothing about height

Send = Callable[[User | None, float, float, float], None]
"""Sends the selected drone to a place [m]."""


class Goals:
    """Draws the goal of one drone, and sends the drone to where a user has dragged it.

    Args:
        viewer: The page.
        send: See `Send`.
    """

    def __init__(self, viewer: Viewer, send: Send) -> None:
        self._viewer, self._send = viewer, send
        self._nodes: dict[str, Any] = {}
        self._drawn: tuple[np.ndarray, float] | None = None
        self._dragged: np.ndarray | None = None  # while a user drags it
        self._grip = np.zeros(3)  # from where the pointer is to the goal

    def show(self, goal: np.ndarray | None, radius: float) -> None:
        """Show a goal, unless a user drags it.

        Args:
            goal: Where the drone flies to [m], shape (3,); None for nowhere.
            radius: Its drawn radius [m].
        """
        if self._dragged is not None:
            return
        if goal is None:
            self._remove()
        else:
            self._draw(goal, radius)

    def _remove(self) -> None:
        for node in self._nodes.values():
            node.remove()
        self._nodes, self._drawn = {}, None

    def _draw(self, goal: np.ndarray, radius: float) -> None:
        before = self._drawn
        if before and before[1] == radius and np.abs(goal - before[0]).max() < _MOVED:
            return
        floor = self._viewer.drawing.ground.floor
        if not self._nodes:
            self._begin()
        foot, tip = np.array([*goal[:2], floor + ABOVE]), goal + _GAP * radius * _UP
        ends = np.array([[foot, goal]], np.float32)
        with self._viewer.server.atomic():
            self._drawn = goal.copy(), radius
            for name, place in (("ring", foot), ("arrow", tip)):
                self._nodes[name].position, self._nodes[name].scale = place, radius
            self._nodes["line"].points = ends
            label = self._nodes["height"]
            label.position = tip + _LABEL * radius * _UP
            label.text = f"{goal[2] - floor:.2f} m"

    def _begin(self) -> None:
        scene = self._viewer.server.scene
        for name, content in (("ring", ring_glb()), ("arrow", arrow_glb())):
            node: Any = scene.add_glb(
                f"/goal/{name}", content, cast_shadow=False, receive_shadow=False
            )
            for modifier in (None, "shift"):
                rises = name == "arrow" or modifier is not None
                node.on_drag("left", modifier=modifier)(partial(self._drag, rises))
            self._nodes[name] = node
        self._nodes["line"] = scene.add_line_segments(
            "/goal/line",
            np.zeros((1, 2, 3), np.float32),
            np.tile(np.array(_LINE, np.uint8), (1, 2, 1)),
            thickness=2.0,
            thickness_units="screen",
        )
        self._nodes["height"] = scene.add_label(
            "/goal/height", "", font_screen_scale=0.8, anchor="bottom-center"
        )

    # In the server's thread.

    async def _drag(self, rises: bool, event: viser.SceneNodeDragEvent[Any]) -> None:
        """Move the goal along the floor, or up and down, and send the drone there at the end."""
        if self._drawn is None:
            return
        goal, radius = self._drawn
        camera = event.client.camera
        origin = np.asarray(camera.position)
        ray = np.asarray(event.end_position) - origin
        there = self._pointed(goal, origin, ray, rises=rises)
        self._viewer.cameras.hold(event.client, is_held=event.phase != "end")
        if event.phase == "start":
            self._dragged, self._grip = goal, goal - there
        elif self._dragged is not None:
            floor = self._viewer.drawing.ground.floor
            low, high = floor + HEIGHTS[0], floor + HEIGHTS[1]
            moved = np.round(there + self._grip, 2)
            moved[2] = min(max(moved[2], low), high)
            self._draw(moved, radius)
            if event.phase == "end":
                self._dragged = None
                self._send(self._viewer.tabs.user(event.client), *moved.tolist())

    def _pointed(
        self, goal: np.ndarray, origin: np.ndarray, ray: np.ndarray, *, rises: bool
    ) -> np.ndarray:
        """Return where a ray points to: above or below the goal, or at its height, (3,) [m]."""
        if not rises:
            floor = self._viewer.drawing.ground.floor
            place = floor_at(origin, ray, floor)
            return goal if place is None else np.append(place[:2], goal[2])
        ray = ray / np.linalg.norm(ray)
        away, flat = origin - goal, 1 - ray[2] ** 2
        if flat < _STEEP:
            return goal
        return goal + (away[2] - ray[2] * (ray @ away)) / flat * _UP


@cache
def ring_glb() -> bytes:
    """Return the ring on the floor below the goal of a drone of radius 1."""
    rim, ring = circle(_SECTIONS), (_RING[0], *np.add(_RING[0], [0.08, 0.42]), _RING[1])
    corners = np.concatenate([np.column_stack([r * rim, np.zeros(_SECTIONS)]) for r in ring])
    colors = np.repeat([_RIM_COLOR, _COLOR, _COLOR, _RIM_COLOR], _SECTIONS, axis=0)
    faces = [face for k in range(3) for face in band(k * _SECTIONS, _SECTIONS)]
    return glb_of([unlit(corners, colors, np.concatenate(faces))])


@cache
def arrow_glb() -> bytes:
    """Return the arrow up and down above the goal of a drone of radius 1."""
    return glb_of([_turned(0.09, _RIM_COLOR, inside=True), _turned(0.0, _COLOR)])


def _turned(extra: float, color: tuple[float, ...], *, inside: bool = False) -> GlbPart:
    """Return an arrow with two heads, `extra` larger, of which the inside may be seen."""
    wide, thin = _WIDTH + 1.4 * extra, _SHAFT + extra
    low, high = _HEAD + extra, _TOP - _HEAD - extra
    ends = ((0.0, -2 * extra), (wide, low), (thin, low)), ((thin, high), (wide, high))
    profile = (*ends[0], *ends[1], (0.0, _TOP + 2 * extra))
    rim = circle(_SECTIONS)
    corners = [np.column_stack([r * rim, np.full(_SECTIONS, z)]) for r, z in profile]
    faces = [face for k in range(len(profile) - 1) for face in band(k * _SECTIONS, _SECTIONS)]
    every = np.concatenate(faces)
    colors = np.tile(color, (_SECTIONS * len(profile), 1))  # by corners, as the stage has them
    return unlit(np.concatenate(corners), colors, every if inside else every[:, ::-1])
