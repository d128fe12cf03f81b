"""Live plots of a drone."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
import viser

from crazyflow_ros.view.follower import Follower, Inbox
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.options import set_options
from crazyflow_ros.view.panel.quantities import KINDS, OF_SENSORS, OF_STATE, Quantity

_PERIOD = 0.2  # s of wall time between two points
_LOOK = 1.0  # s of wall time between two searches for sensor topics
_POINTS = 300
_COLORS = ("#4a90e2", "#e2574a", "#3fae5a", "#b07cd8")
_FIRST = ("position", "attitude")  # initial contents of the plots
_HEIGHT = 170  # pixels
_PADDING = 10, 10, 0, 0  # pixels above, right, below, left: room for the last tick labels
_INPUTS = ("cmd_", "wrench")  # topics by which a drone is commanded


class Plots:
    """The tab with the plots. Nothing is collected while no page is open.

    Args:
        server: The page's server.
        follower: The connection to the simulator.
    """

    def __init__(self, server: viser.ViserServer, follower: Follower) -> None:
        self._server, self._follower = server, follower
        self._due = self._look_due = 0.0
        self._drone, self._sensors = "", dict[str, Any]()
        self._plots = [Plot(server, follower, first) for first in _FIRST]

    def update(self, frame: Frame, drone: str) -> None:
        """Add the present state of a drone, if it is time."""
        if not self._server.get_clients() or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _PERIOD
        if drone != self._drone or time.monotonic() > self._look_due:
            self._drone, self._look_due = drone, time.monotonic() + _LOOK
            self._sensors = self._find_sensors(drone)
        for plot in self._plots:
            plot.update(frame, drone, self._sensors)

    def end(self) -> None:
        """Stop listening: there is no simulator."""
        for plot in self._plots:
            plot.end()

    def _find_sensors(self, drone: str) -> dict[str, Any]:
        """Return the types of the drone's topics that can be plotted, by their short names."""
        prefix = self._follower.topic(drone) + "/"
        return {
            topic.removeprefix(prefix): KINDS[kind]
            for topic, kind in sorted(self._follower.types_of_topics().items())
            if kind in KINDS and topic.startswith(prefix)
            if not topic.removeprefix(prefix).startswith(_INPUTS)
        }


class Plot:
    """One plot with a dropdown for its content."""

    def __init__(self, server: viser.ViserServer, follower: Follower, first: str) -> None:
        self._server, self._follower = server, follower
        gui = server.gui
        self._choice = gui.add_dropdown("Plot", tuple(OF_STATE), initial_value=first)
        self._folder = gui.add_folder(None)
        self._handle: Any = None
        self._inbox: Inbox | None = None
        self._shown = ("", "")
        self._points: deque[tuple[float, ...]] = deque(maxlen=_POINTS)

    def update(self, frame: Frame, drone: str, sensors: dict[str, Any]) -> None:
        """Add a point and draw, if there is a new one."""
        set_options(self._choice, (*OF_STATE, *sensors))
        name = self._choice.value
        kind = sensors.get(name)
        quantity = OF_STATE[name] if kind is None else OF_SENSORS[kind]
        if (drone, name) != self._shown:
            self._begin(drone, name, kind, quantity)
        values = (
            quantity.of(frame, frame.names.index(drone)) if kind is None else self._sample(quantity)
        )
        now = frame.time_ns * 1e-9
        if values is None or (self._points and now == self._points[-1][0]):
            return
        if self._points and now < self._points[-1][0]:
            self._points.clear()
        self._points.append((now, *values))
        points = np.array(self._points, np.float64)
        points[~np.isfinite(points)] = np.nan  # a gap; a plot to infinity shows nothing
        self._handle.data = tuple(points.T)

    def end(self) -> None:
        """Stop listening."""
        if self._inbox is not None:
            self._follower.hang_up(self._inbox)
            self._inbox = None
        self._shown = ("", "")

    def _begin(self, drone: str, name: str, kind: Any, quantity: Quantity) -> None:
        self.end()
        self._shown = drone, name
        self._points.clear()
        if kind is not None:
            topic = self._follower.topic(f"{drone}/{name}")
            self._inbox = self._follower.listen({topic: kind})
        if self._handle is not None:
            self._handle.remove()
        lines: Any = [
            {"label": label, "stroke": color, "width": 1.5}
            for label, color in zip(quantity.labels, _COLORS)
        ]
        with self._folder:
            self._handle = self._server.gui.add_uplot(
                tuple(np.zeros((len(quantity.labels) + 1, 0))),
                ({"label": "time [s]"}, *lines),
                scales=_scales(quantity.least),
                height=_HEIGHT,
                padding=_PADDING,
            )

    def _sample(self, quantity: Quantity) -> Any | None:
        assert self._inbox is not None
        (topic,) = self._inbox.topics
        message = self._inbox.take(topic)
        return None if message is None else quantity.of(message)


def _scales(least: float) -> Any:
    """Return uPlot's scales; y reaches at least from -`least` to `least`."""
    limits = {"min": -least, "max": least}
    sides = {side: {"pad": 0.1, "soft": limit, "mode": 1} for side, limit in limits.items()}
    return {"x": {"time": False}} | ({"y": {"range": sides}} if least else {})
