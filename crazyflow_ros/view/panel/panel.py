"""The panel: everything on the page that controls a simulation."""

from __future__ import annotations

import time
from pathlib import Path

import viser

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
    *("cards.css", "cards.js", "files.js", "chart.js"),
    *("plots.js", "map.js", "picture.js", "sensors.js"),
)
"""Scripts and styles of the shell that the panel needs; each uses those before it."""

_PERIOD = 0.1  # s of wall time between two updates
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
        panel, shell = viewer.panel, viewer.shell
        self._time = SimulationPanel(panel, self.state)
        with panel.inside(panel.add("tabs", order=3, visible=False)) as self._tabs:
            with panel.tab("Fly"):
                self._drone = DronePanel(viewer, self.state, sticks, plans)
            with panel.tab("World"):
                self._world = WorldPanel(viewer, self.state)
            with panel.tab("Air"):
                self._air = AirPanel(panel, self.state)
            with panel.tab("Sensors"):
                self.sensors = SensorsPanel(panel, shell, follower)
            with panel.tab("Plots"):
                self._plots = Plots(viewer, self.state, plans)
        self._map = Map(viewer, self.state, plans, self._drone.send)
        self._pictures = CameraPictures(shell, follower)
        self._recording = RecordingPanel(panel, follower, folder)
        with panel.section("Log", order=80, is_open=False):
            self._lines = panel.add("text", content="")
        self._seen = -1
        viewer.server.scene.on_click()(self._click)  # type: ignore[arg-type]

    async def _click(self, event: viser.SceneClickEvent) -> None:
        if not self._world.click(event):
            self._drone.click(event)

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
        self._world.update(frame)
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
            self._lines.content = as_html(self.log.lines()[:_LINES])
