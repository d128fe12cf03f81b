"""The map of a page: the world and the drones from above, over the scene."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from crazyflow_ros.scene.frames import yaw as yaw_of
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.footprints import footprints
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.shell import Feed
from crazyflow_ros.view.swarm import color_of
from crazyflow_ros.view.viewer import Viewer

SCRIPTS = ("cards.css", "cards.js", "map.js")
"""Scripts and styles of the shell that draw the map."""

_DIGITS, _YAW_DIGITS = 2, 1  # after the point [m, rad]
_PERIOD = 0.1  # s of wall time between two updates


class MapFeed:
    """The content of the map: nothing while no tab shows it, then everything, then changes.

    Args:
        viewer: The page, whose shell draws the map: `map.js`. A click selects a drone.
        can_send: Whether a click may send a drone to a place.
    """

    def __init__(self, viewer: Viewer, *, can_send: bool) -> None:
        self._viewer, self._can_send = viewer, can_send
        self._feed = Feed(viewer.shell, "map")
        self._names: tuple[str, ...] = ()
        self._world: Sequence[VisibleShape] | None = None
        self._outlines: list[Any] = []
        self._sent: dict[str, Any] = {}
        self._due = 0.0
        viewer.shell.on("map_select", self._select)

    def _select(self, _: int, name: Any) -> None:
        """Select a drone, in the server's thread."""
        if isinstance(name, str) and name in self._names:
            self._viewer.selected = name

    @property
    def is_wanted(self) -> bool:
        """Whether a tab shows the map."""
        return self._feed.is_wanted

    @property
    def is_due(self) -> bool:
        """Whether a tab shows the map, and its last update is long enough ago."""
        return self.is_wanted and time.monotonic() >= self._due

    def clear(self) -> None:
        """Show nothing; the next update sends everything."""
        self._names = ()
        self._feed.send(None, dict)

    def update(
        self,
        frame: Frame,
        world: Sequence[VisibleShape] | None,
        goals: Mapping[str, np.ndarray],
        down: Collection[str],
    ) -> None:
        """Show the drones.

        Args:
            frame: The drones.
            world: The shapes of the world; the same object as long as it is the same world.
            goals: Where drones fly to [m], shape (2,), by name.
            down: Names of drones that have crashed.
        """
        self._due = time.monotonic() + _PERIOD
        is_new = frame.names != self._names or world is not self._world
        self._names = frame.names
        if world is not self._world:
            self._world = world
            self._outlines = [_plain(*one) for one in footprints(_standing(world))]
        now = self._content(frame, goals, down)
        changed = {} if is_new else _changes(self._sent, now)
        self._sent = now
        everything = {"outlines": self._outlines, "names": frame.names} | now
        everything["colors"] = [f"rgb{color_of(number)}" for number in range(len(frame.names))]
        everything["canSend"] = self._can_send
        self._feed.send(everything if is_new else changed or None, lambda: everything)

    def _content(
        self, frame: Frame, goals: Mapping[str, np.ndarray], down: Collection[str]
    ) -> dict[str, Any]:
        """Return what changes: places, headings and goals by the drones' numbers."""
        rows = np.column_stack([frame.position[:, :2], yaw_of(frame.attitude)])
        rows[~np.isfinite(rows)] = 0.0  # a lost drone is in no place
        drones = [
            [round(x, _DIGITS) + 0.0, round(y, _DIGITS) + 0.0, round(yaw, _YAW_DIGITS) + 0.0]
            for x, y, yaw in rows.tolist()
        ]
        there = [goals.get(name) for name in frame.names]
        selected = self._viewer.selected
        return {
            "drones": dict(enumerate(drones)),
            "goals": {
                number: None if goal is None else goal.round(_DIGITS).tolist()
                for number, goal in enumerate(there)
            },
            "selected": frame.names.index(selected) if selected in frame.names else -1,
            "down": [number for number, name in enumerate(frame.names) if name in down],
        }


def _standing(world: Sequence[VisibleShape] | None) -> list[VisibleShape]:
    """Return the shapes that do not move."""
    return [shape for shape in world or () if not shape.frame]


def _plain(corners: np.ndarray, color: str, is_floor: bool) -> Any:
    return {"corners": corners.round(_DIGITS).tolist(), "color": color, "floor": is_floor}


def _changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the entries that differ, and of nested mappings only the keys that differ."""
    changed: dict[str, Any] = {}
    for name, value in now.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if different := {key: one for key, one in value.items() if old.get(key) != one}:
                changed[name] = different
        elif value != old:
            changed[name] = value
    return changed
