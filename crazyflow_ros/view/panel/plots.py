"""Live plots of a drone, of all drones, and of sensors."""

from __future__ import annotations

import re
import time
from collections import deque
from typing import Any

import numpy as np

from crazyflow_ros.ros.messages import nanoseconds
from crazyflow_ros.view.follower import Inbox
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.names import MOST_NAMES
from crazyflow_ros.view.panel.inputs import set_options
from crazyflow_ros.view.panel.quantities import (
    KINDS,
    OF_ALL,
    OF_SENSORS,
    OF_STATE,
    SwarmFrame,
    labels_of,
)
from crazyflow_ros.view.panel.series import Series
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.plans import Plans
from crazyflow_ros.view.shell import Feed
from crazyflow_ros.view.swarm import color_of
from crazyflow_ros.view.viewer import Viewer

_PERIOD = 0.1  # s of wall time between two points
_GAP = 1.0  # s of wall time without a point, after which a line is interrupted
_LOOK = 1.0  # s of wall time between two searches for sensor topics
_COLORS = ("#3b82d6", "#d9483b", "#2f9e4f", "#9a5fd0")
_FIRST = ("position", "attitude")  # initial contents of the plots
_INPUTS = ("cmd_", "wrench")  # topics by which a drone is commanded
_MOST_FILES = 8  # asked for at a time


class Plots:
    """The tab with the plots. Nothing is collected while no page is open."""

    def __init__(self, viewer: Viewer, state: SimulatorState, plans: Plans) -> None:
        self._server, self._shell, self._follower = viewer.server, viewer.shell, state.follower
        self._plans = plans
        self._due = self._look_due = 0.0
        self._drone, self._sensors = "", dict[str, Any]()
        self._plots = [Plot(viewer, k, state, plans) for k in range(len(_FIRST))]
        self._asked: deque[tuple[int, int]] = deque(maxlen=_MOST_FILES)
        self._shell.on("csv", self._ask)

    def _ask(self, tab: int, content: Any) -> None:
        if type(content) is int and 0 <= content < len(self._plots):
            self._asked.append((tab, content))

    def update(self, frame: Frame, drone: str) -> None:
        """Add the present state of a drone, if it is time."""
        while self._asked:
            tab, number = self._asked.popleft()
            self._shell.send("file", self._plots[number].file(), [tab])
        if not self._server.get_clients() or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _PERIOD
        if drone != self._drone or time.monotonic() > self._look_due:
            self._drone, self._look_due = drone, time.monotonic() + _LOOK
            self._sensors = self._find_sensors(drone)
        used = [plot.needs_plans(frame, drone) for plot in self._plots]
        self._plans.use("plots", tuple(dict.fromkeys(name for names in used for name in names)))
        for plot in self._plots:
            plot.update(frame, drone, self._sensors)

    def end(self) -> None:
        """Unsubscribe, because there is no simulator."""
        self._plans.use("plots", ())
        for plot in self._plots:
            plot.end()

    def _find_sensors(self, drone: str) -> dict[str, Any]:
        """Return the types of the drone's topics that can be plotted, by topic."""
        return {
            name: KINDS[kind]
            for name, kind in self._follower.topics_of(drone).items()
            if kind in KINDS and not name.startswith(_INPUTS)
        }


class Plot:
    """One plot, with a choice of its content."""

    def __init__(self, viewer: Viewer, number: int, state: SimulatorState, plans: Plans) -> None:
        self._state, self._plans, panel = state, plans, viewer.panel
        self._choice = panel.add("choice", "Plot", _FIRST[number], options=(*OF_STATE, *OF_ALL))
        panel.add("place", f"plot{number}")
        self._feed = Feed(viewer.shell, f"plot{number}")
        self._inbox = Inbox(state.follower)
        self._shown: tuple[object, ...] = ()
        self._resets: dict[str, int] = {}
        self._series = Series("", (), (), ())
        self._last = 0.0

    def needs_plans(self, frame: Frame, drone: str) -> tuple[str, ...]:
        """Return the drones whose plans the plot needs."""
        name = self._choice.value
        if name in OF_ALL:
            return frame.names[:MOST_NAMES] if OF_ALL[name].needs_plans else ()
        return (drone,) if name in OF_STATE and OF_STATE[name].setpoint else ()

    def update(self, frame: Frame, drone: str, sensors: dict[str, Any]) -> None:
        """Add a point if there is a new one, and send it to the tabs that show the plot."""
        set_options(self._choice, (*OF_STATE, *OF_ALL, *sensors))
        name = self._choice.value
        kind = sensors.get(name)
        drones = frame.names[:MOST_NAMES] if name in OF_ALL else (drone,)
        shown = name, kind, drones, frame.rotor_speed.shape[1]
        is_new = shown != self._shown
        if is_new:
            self._begin(name, kind, drones, frame)
            self._shown = shown
        resets = {one: self._state.resets[one] for one in drones}
        if resets != self._resets:
            self._resets, is_new = resets, True
            self._series.clear()
        point = self._measure(frame, drones[0], name, kind)
        last, self._last = self._last, time.monotonic()
        if self._last - last > _GAP:  # nobody has looked at the page
            self._series.interrupt()
        if point is not None:
            is_new |= self._series.time_ns > point[0]
            self._series.add(*point)
        change = self._series.change()
        everything = self._series.everything
        self._feed.send(everything() if is_new else change, everything)

    def end(self) -> None:
        """Unsubscribe."""
        self._inbox.subscribe({})
        self._shown = ()

    def file(self) -> dict[str, str]:
        """Return the plot as a file for the browser."""
        name = re.sub(r"[^\w-]+", "_", self._series.title) or "plot"
        return {"name": f"{name}.csv", "type": "text/csv", "text": self._series.as_csv()}

    def _begin(self, name: str, kind: Any, drones: tuple[str, ...], frame: Frame) -> None:
        self.end()
        if name in OF_ALL:
            self._series = Series(
                name,
                [f"{drone} [{OF_ALL[name].unit}]" for drone in drones],
                [f"rgb{color_of(number)}" for number in range(len(drones))],
                [False] * len(drones),
            )
            return
        quantity = OF_STATE[name] if kind is None else OF_SENSORS[kind]
        labels = labels_of(quantity, frame)
        measured = len(labels) - len(quantity.setpoint)
        colors = [_COLORS[i % len(_COLORS)] for i in range(measured)]
        self._series = Series(
            f"{name} of {drones[0]}",
            labels,
            [*colors, *(_COLORS[of] for of in quantity.setpoint)],
            [False] * measured + [True] * len(quantity.setpoint),
            quantity.least,
        )
        if kind is not None:
            topic = self._state.follower.topic(f"{drones[0]}/{name}")
            self._inbox.subscribe({topic: kind})

    def _measure(self, frame: Frame, drone: str, name: str, kind: Any) -> tuple[int, Any] | None:
        """Return a simulated time [ns] and the numbers at that time; None without new ones."""
        if name in OF_ALL:
            return frame.time_ns, OF_ALL[name].of(self._swarm(frame))[:MOST_NAMES]
        if kind is None:
            row, setpoint = frame.names.index(drone), self._setpoint(frame, drone)
            return frame.time_ns, OF_STATE[name].of(frame, row, setpoint)
        (topic,) = self._inbox.topics
        message = self._inbox.take(topic)
        if message is None:
            return None
        return nanoseconds(message.header.stamp), OF_SENSORS[kind].of(message)

    def _setpoint(self, frame: Frame, drone: str) -> np.ndarray:
        """Return where a drone should be, shape (4,); NaN if it follows no setpoint."""
        if not self._state.flies(frame, drone):
            return np.full(4, np.nan)
        return self._plans.reference(drone, frame.time_ns * 1e-9)

    def _swarm(self, frame: Frame) -> SwarmFrame:
        batteries = self._state.batteries
        charge = [b.charge if (b := batteries.get(name)) else np.nan for name in frame.names]
        setpoints = [self._setpoint(frame, name) for name in frame.names]
        return SwarmFrame(frame, np.array(setpoints), np.array(charge))
