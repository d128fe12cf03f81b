"""The panel: everything on the page that controls a simulation."""

from __future__ import annotations

import time
from pathlib import Path

from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.air_panel import AirPanel
from crazyflow_ros.view.panel.camera_pictures import CameraPictures
from crazyflow_ros.view.panel.drone_panel import DronePanel
from crazyflow_ros.view.panel.map import Map
from crazyflow_ros.view.panel.page_log import Log, as_html
from crazyflow_ros.view.panel.plots import Plots
from crazyflow_ros.view.panel.recording_panel import RecordingPanel
from crazyflow_ros.view.panel.sensors_panel import SensorsPanel
from crazyflow_ros.view.panel.service_requests import ServiceRequests
from crazyflow_ros.view.panel.simulation_panel import SimulationPanel
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.panel.sticks import Sticks
from crazyflow_ros.view.panel.world_panel import WorldPanel
from crazyflow_ros.view.plans import Plans
from crazyflow_ros.view.viewer import Viewer

SCRIPTS = (
    *("panel.css", "cards.js", "files.js", "chart.js"),
    *("plots.js", "map.js", "picture.js", "sensors.js"),
)
"""Scripts and styles of the shell that the panel needs; each uses those before it."""

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
        state: What the page knows about the simulator.
    """

    def __init__(
        self, viewer: Viewer, follower: Follower, sticks: Sticks, folder: Path, plans: Plans
    ) -> None:
        self._due = 0.0
        self.log = Log()
        self.log.listen(follower)
        self.state = SimulatorState(follower, ServiceRequests(follower, self.log))
        server, gui = viewer.server, viewer.server.gui
        self._time = SimulationPanel(gui, self.state)
        self._tabs = gui.add_tab_group(order=3, visible=False)
        with self._tabs.add_tab("Fly"):
            self._drone = DronePanel(viewer, self.state, sticks)
        with self._tabs.add_tab("World"):
            self._world = WorldPanel(gui, self.state)
        with self._tabs.add_tab("Air"):
            self._air = AirPanel(gui, self.state)
        with self._tabs.add_tab("Sensors"):
            self.sensors = SensorsPanel(gui, viewer.shell, follower)
        with self._tabs.add_tab("Plots"):
            self._plots = Plots(server, viewer.shell, self.state, plans)
        self._map = Map(viewer, self.state, plans, self._drone.send)
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
        self.state.requests.send()
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
        """Finish the recording."""
        self._recording.close()

    def _show_log(self) -> None:
        if self.log.changes != self._seen:
            self._seen = self.log.changes
            content = as_html(self.log.lines()[:_LINES])
            self._lines.content = f'<div style="{_LOG_STYLE}">{content}</div>'
