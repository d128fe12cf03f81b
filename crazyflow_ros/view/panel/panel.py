"""The panel: everything on the page that controls a simulation."""

from __future__ import annotations

import time
from pathlib import Path

from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.air import AirPanel
from crazyflow_ros.view.panel.drone import DronePanel
from crazyflow_ros.view.panel.log import Log, as_html
from crazyflow_ros.view.panel.map import Map
from crazyflow_ros.view.panel.pictures import CameraPictures
from crazyflow_ros.view.panel.pilot import PanelPilot
from crazyflow_ros.view.panel.plots import Plots
from crazyflow_ros.view.panel.recording import RecordingPanel
from crazyflow_ros.view.panel.requests import ServiceRequests
from crazyflow_ros.view.panel.sensors import SensorsPanel
from crazyflow_ros.view.panel.simulation import SimulationPanel
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.panel.sticks import Sticks
from crazyflow_ros.view.panel.world import WorldPanel
from crazyflow_ros.view.plans import Plans
from crazyflow_ros.view.viewer import Viewer

SCRIPTS = (
    "panel.css",
    "cards.js",
    "files.js",
    "chart.js",
    "plots.js",
    "map.js",
    "picture.js",
    "sensors.js",
)
"""What the panel needs of the shell; each uses those before it."""

_PERIOD = 0.1  # s of wall time between two updates
_LOG_STYLE = "padding:0 0.7em;font-size:0.85em;line-height:1.4;overflow-wrap:anywhere"
_LINES = 20  # shown of the log


class Panel:
    """The controls, the same in all tabs.

    Args:
        viewer: The page.
        follower: The connection to the simulator.
        sticks: Keys and gamepads of the tabs.
        folder: Folder of recordings.
        plans: Where the drones fly.

    Attributes:
        log: The log of the page.
        sensors: The tab of the sensors.
        state: What the page knows of the simulator beside its drones.
    """

    def __init__(
        self,
        viewer: Viewer,
        follower: Follower,
        sticks: Sticks,
        folder: Path,
        plans: Plans,
    ) -> None:
        self._due = 0.0
        self.log = Log()
        self.log.listen(follower)
        self._requests = ServiceRequests(follower, self.log)
        self.state = SimulatorState(follower, self._requests)
        server = viewer.server
        gui = server.gui
        self._time = SimulationPanel(gui, follower, self.state, self._requests)
        self._tabs = gui.add_tab_group(order=3, visible=False)
        with self._tabs.add_tab("Fly"):
            pilot = PanelPilot(follower, sticks)
            self._drone = DronePanel(viewer, self.state, self._requests, pilot, sticks)
        with self._tabs.add_tab("World"):
            self._world = WorldPanel(gui, follower, self.state, self._requests)
        with self._tabs.add_tab("Air"):
            self._air = AirPanel(gui, follower, self.state, self._requests)
        with self._tabs.add_tab("Sensors"):
            self.sensors = SensorsPanel(gui, viewer.shell, follower)
        with self._tabs.add_tab("Plots"):
            self._plots = Plots(server, viewer.shell, follower, self.state, plans)
        self._map = Map(viewer, follower, self.state, plans, self._drone.send)
        self._pictures = CameraPictures(viewer.shell, follower)
        self._recording = RecordingPanel(gui, follower, folder)
        with gui.add_folder("Log", order=80, expand_by_default=False):
            self._lines = gui.add_html("")
        self._seen = -1

    def update(self, frame: Frame | None, drone: str) -> None:
        """Send the requests of users, and show the latest state.

        Args:
            frame: The drones; None without a simulator.
            drone: Name of the selected drone.
        """
        self._requests.send()
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _PERIOD
        self.state.update(frame)
        self._tabs.visible = frame is not None
        self._time.update(frame)
        self._drone.update(frame, drone)
        self._air.update(frame, drone)
        self._recording.update(frame)
        self._show_log()
        self._map.update(frame)
        self.sensors.update(drone if frame is not None else "")
        self._pictures.update(drone if frame is not None else "")
        if frame is None or drone not in frame.names:
            self._plots.end()
            return
        self._world.update()
        self._plots.update(frame, drone)

    @property
    def records(self) -> bool:
        """Whether the page records."""
        return self._recording.runs

    def close(self) -> None:
        """Complete files that are being written."""
        self._recording.close()

    def _show_log(self) -> None:
        if self.log.changes != self._seen:
            self._seen = self.log.changes
            content = as_html(self.log.lines()[:_LINES])
            self._lines.content = f'<div style="{_LOG_STYLE}">{content}</div>'
