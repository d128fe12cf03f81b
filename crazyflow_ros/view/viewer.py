"""The common parts of all pages: drones in their world, cameras and switches."""

from __future__ import annotations

import viser

from crazyflow_ros.view import server
from crazyflow_ros.view.access import is_loopback, new_token
from crazyflow_ros.view.cameras import Cameras
from crazyflow_ros.view.drawing import Drawing
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.shown import Shown

ADDRESS, PORT = "127.0.0.1", 8080


class Viewer:
    """A page with drones.

    Args:
        address: Address to listen on. If other machines can reach it, a browser needs a token.
        port: Port to listen on; the next free one if it is taken.
        shell: What the page has beside the scene and the panel.

    Attributes:
        server: The page's server.
        shell: As given; by default one that only follows the browser's choice of dark or light.
        url: Address of the page for a browser, with the token if one is needed.
        drawing: The scene.
        shown: The switches that select what is shown.
        selected: Name of the drone that cameras follow.

    Raises:
        OSError: The address does not belong to this machine.
    """

    def __init__(
        self,
        address: str = ADDRESS,
        port: int = PORT,
        shell: Shell | None = None,
    ) -> None:
        token = "" if is_loopback(address) else new_token()
        self.shell = shell or Shell()
        self.server: viser.ViserServer = server.start(
            address, port, "crazyflow_ros", token, self.shell
        )
        query = f"?token={token}" if token else ""
        self.url = f"http://{address}:{self.server.get_port()}/{query}"
        self.drawing = Drawing(self.server)
        self.shown = Shown(self.server)
        self.selected = ""
        self._cameras = Cameras(self.server)
        self._last_ns = 0

    def show(self, frame: Frame, seconds: float) -> None:
        """Show the drones.

        Args:
            frame: The drones.
            seconds: Time since the last frame, for which rotors turn unless time stands still [s].
        """
        if self.selected not in frame.names:
            self.selected = frame.names[0]
        moves = frame.time_ns != self._last_ns
        self._last_ns = frame.time_ns
        names, trails = bool(self.shown.names.value), bool(self.shown.trails.value)
        size = float(self.shown.size.value)
        self.drawing.show(frame, seconds if moves else 0.0, size=size, names=names, trails=trails)
        self._cameras.move(frame, self.selected, size)

    def follow(self) -> None:
        """Let free cameras follow the selected drone."""
        self._cameras.follow()

    def close(self) -> None:
        """Stop the server."""
        self.server.stop()
