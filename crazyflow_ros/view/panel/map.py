"""The map of a simulator's page, on which a click sends a drone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from crazyflow_ros.view.access import is_number
from crazyflow_ros.view.controls import User
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.map_feed import MapFeed
from crazyflow_ros.view.names import MOST_NAMES
from crazyflow_ros.view.panel.state import CRASHED, SimulatorState
from crazyflow_ros.view.plans import Plans
from crazyflow_ros.view.viewer import Viewer

_FARTHEST = 50.0  # m, from the origin to where a click may send a drone


class Map:
    """The map.

    Args:
        viewer: The page.
        state: The simulator.
        plans: Where the drones fly to.
        send: Sends the selected drone to a place x, y [m] for the user of a tab.
    """

    def __init__(
        self,
        viewer: Viewer,
        state: SimulatorState,
        plans: Plans,
        send: Callable[[User, float, float], None],
    ) -> None:
        self._viewer, self._state, self._plans, self._send = viewer, state, plans, send
        self._feed = MapFeed(viewer, can_send=True)
        viewer.shell.on("map_send", self._go)

    def _go(self, tab: int, place: Any) -> None:
        """Send the selected drone to a place, in the server's thread."""
        if not (isinstance(place, list) and len(place) == 2 and all(map(is_number, place))):
            return
        x, y = map(float, place)
        user = User(self._viewer.shell, tab)
        if math.hypot(x, y) > _FARTHEST:
            user.tell("Fly there", f"it is more than {_FARTHEST:g} m from the origin")
        else:
            self._send(user, x, y)

    def update(self, frame: Frame | None) -> None:
        """Show the drones; None without a simulator."""
        if frame is None or not self._feed.is_wanted:
            self._plans.use("map", ())
            self._feed.clear()
            return
        self._plans.use("map", frame.names[:MOST_NAMES])
        goals = {name: plan.poses[-1, :2] for name, plan in self._plans.under_way.items()}
        flight, world = self._state.flight, self._state.follower.world
        down = {name for name in frame.names if flight.get(name) == CRASHED}
        self._feed.update(frame, world, goals, down)
