"""The map: the world and the drones from above, over the scene."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from crazyflow_ros.scene.frames import yaw as yaw_of
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.drawing import color_of
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.footprints import footprints
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.names import MOST_NAMES
from crazyflow_ros.view.panel.state import CRASHED, SimulatorState
from crazyflow_ros.view.plans import Plans
from crazyflow_ros.view.shell import Feed, Shell
from crazyflow_ros.view.viewer import Viewer

_FARTHEST = 50.0  # m, from the origin to where a click may send a drone
_DIGITS, _YAW_DIGITS = 2, 1  # after the point [m, rad]

Send = Callable[[Any, float, float], None]
"""Sends the selected drone to a place [m] for the user of a tab."""


class Map:
    """The map. Nothing is sent while no tab shows it, and then only what changes.

    Args:
        viewer: The page, whose shell draws the map: `map.js`.
        follower: The connection to the simulator.
        state: Says which drones have crashed.
        plans: Where the drones fly to.
        send: Carries out a click.
    """

    def __init__(
        self,
        viewer: Viewer,
        follower: Follower,
        state: SimulatorState,
        plans: Plans,
        send: Send,
    ) -> None:
        self._viewer, self._follower = viewer, follower
        self._state, self._plans, self._send = state, plans, send
        self._feed = Feed(viewer.shell, "map")
        self._names: tuple[str, ...] = ()
        self._world: list[VisibleShape] | None = None
        self._outlines: list[Any] = []
        self._sent: dict[str, Any] = {}
        viewer.shell.on("map_select", self._select)
        viewer.shell.on("map_send", self._go)

    # In the server's thread.

    def _select(self, _: int, name: Any) -> None:
        if isinstance(name, str) and name in self._names:
            self._viewer.selected = name

    def _go(self, tab: int, place: Any) -> None:
        if not (isinstance(place, list) and len(place) == 2 and all(map(_is_number, place))):
            return
        x, y = map(float, place)
        user = _User(self._viewer.shell, tab)
        if math.hypot(x, y) > _FARTHEST:
            user.add_notification("Fly there", f"it is more than {_FARTHEST:g} m from the origin")
        else:
            self._send(user, x, y)

    # In the page's thread.

    def update(self, frame: Frame | None) -> None:
        """Show the drones; None without a simulator."""
        if frame is None or not self._feed.is_wanted:
            self._plans.use("map", ())
            self._names = ()  # so that everything is new later
            self._feed.send(None, dict)
            return
        self._plans.use("map", frame.names[:MOST_NAMES])
        is_new = frame.names != self._names or self._follower.world is not self._world
        self._names = frame.names
        if self._follower.world is not self._world:
            self._world = self._follower.world
            self._outlines = [_plain(*one) for one in footprints(self._world or ())]
        now = self._content(frame)
        changed = {} if is_new else _changes(self._sent, now)
        self._sent = now
        everything = {"outlines": self._outlines, "names": frame.names} | now
        everything["colors"] = [f"rgb{color_of(number)}" for number in range(len(frame.names))]
        self._feed.send(everything if is_new else changed or None, lambda: everything)

    def _content(self, frame: Frame) -> dict[str, Any]:
        """Return what changes: places, headings and goals by the drones' numbers."""
        rows = np.column_stack([frame.position[:, :2], yaw_of(frame.attitude)])
        rows[~np.isfinite(rows)] = 0.0  # a lost drone is in no place
        drones = [
            [round(x, _DIGITS) + 0.0, round(y, _DIGITS) + 0.0, round(yaw, _YAW_DIGITS) + 0.0]
            for x, y, yaw in rows.tolist()
        ]
        under_way = self._plans.under_way
        goals = [under_way.get(name) for name in frame.names]
        selected, flight = self._viewer.selected, self._state.flight
        return {
            "drones": dict(enumerate(drones)),
            "goals": {
                number: None if plan is None else plan.poses[-1, :2].round(_DIGITS).tolist()
                for number, plan in enumerate(goals)
            },
            "selected": frame.names.index(selected) if selected in frame.names else -1,
            "down": [n for n, name in enumerate(frame.names) if flight.get(name) == CRASHED],
        }


class _User:
    """The user of a tab, who is told on the map what is refused."""

    def __init__(self, shell: Shell, tab: int) -> None:
        self._shell, self._tab = shell, tab

    def add_notification(self, title: str, text: str, **_: Any) -> None:
        self._shell.send("map_note", f"{title}: {text}", [self._tab])


def _plain(corners: np.ndarray, color: str, is_floor: bool) -> Any:
    return {"corners": corners.round(_DIGITS).tolist(), "color": color, "floor": is_floor}


def _changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what differs; of what is by number, only the numbers that do."""
    changed: dict[str, Any] = {}
    for name, value in now.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if different := {key: one for key, one in value.items() if old.get(key) != one}:
                changed[name] = different
        elif value != old:
            changed[name] = value
    return changed


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
