"""The page of a running simulator."""

from __future__ import annotations

import threading
from pathlib import Path

from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.overlays import Overlays
from crazyflow_ros.view.panel import panel
from crazyflow_ros.view.panel.page_log import ERROR
from crazyflow_ros.view.panel.sticks import KEYS, Sticks
from crazyflow_ros.view.plans import Plans
from crazyflow_ros.view.sensor_drawings import SensorDrawings
from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.status_line import StatusLine
from crazyflow_ros.view.viewer import ADDRESS, PERIOD, PORT, Viewer

SCRIPTS = (
    *("keys.js", "touch.css", "touch.js"),
    *("status.css", "status.js", "start.css", "start.js"),
    *("help.css", "help.js"),
)
"""Scripts and styles of the shell that this page has, beside those of the panel."""


class Page:
    """A page that follows a simulator.

    Args:
        follower: The connection to the simulator.
        address: Address to listen on.
        port: Port to listen on; the next free one if it is taken.
        folder: Folder for recordings that users of the page make.

    Attributes:
        viewer: The page.

    Raises:
        OSError: The address does not belong to this machine.
    """

    def __init__(
        self, follower: Follower, address: str = ADDRESS, port: int = PORT, folder: Path = Path()
    ) -> None:
        self._follower = follower
        self._sticks, shell = Sticks(), Shell((*SCRIPTS, *panel.SCRIPTS))
        shell.on("sticks", self._sticks.take)
        shell.show("keys", KEYS)
        self.viewer = Viewer(address, port, shell)
        server, shown = self.viewer.server, self.viewer.shown
        self._plans = Plans(follower)
        self._panel = panel.Panel(self.viewer, follower, self._sticks, folder, self._plans)
        self._status = StatusLine(
            shell, follower, self._panel.state, self._panel.log, lambda: self._panel.records
        )
        forces = self._panel.sensors.forces
        self._overlays = Overlays(server, shown, follower, self._plans, self.viewer.panel, forces)
        self._sensors = SensorDrawings(server, follower)
        self._ended = threading.Event()

    def run(self) -> None:
        """Show the simulation until `close`."""
        self.viewer.run(self._show, self._ended, self._report)
        self._panel.close()
        self.viewer.close()

    def close(self) -> None:
        """End `run`."""
        self._ended.set()

    def _report(self, error: str) -> None:
        self._panel.log.add(f"the page: {error}", ERROR)

    def _show(self) -> None:
        follower, viewer = self._follower, self.viewer
        if follower.world is not None:
            viewer.drawing.set_world(follower.world)
        if follower.looks is not None:
            viewer.drawing.set_looks([follower.looks])
        frame = follower.frame()
        if not follower.is_there:
            frame = None
        if frame is None or not frame.names:
            self._panel.update(None, "")
            self._status.update(frame, "")
            return
        self._plans.update(self._panel.state.resets)
        if viewer.is_due:
            viewer.cameras.goes_along = self._sticks.is_held
            viewer.show(frame, PERIOD)
        if viewer.server.get_clients():
            self._overlays.show(frame, viewer.selected)
        self._sensors.show(frame, viewer.selected, self._panel.sensors.drawn)
        self._panel.update(frame, viewer.selected)
        self._status.update(frame, viewer.selected)
