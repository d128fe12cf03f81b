"""The common parts of all pages: drones in their world, cameras and switches."""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable

import numpy as np
import viser

from crazyflow_ros.view import page_server
from crazyflow_ros.view.access import is_loopback, new_token
from crazyflow_ros.view.cameras import Cameras
from crazyflow_ros.view.controls import PageControls
from crazyflow_ros.view.drawing import Drawing
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.names import Names
from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.shown import Shown
from crazyflow_ros.view.stage import Stage
from crazyflow_ros.view.tabs import Tabs, Theme

ADDRESS, PORT = "127.0.0.1", 8080
PERIOD = 1 / 30  # s of wall time between two frames
_UNSEEN = 1.0  # s between two frames that no tab shows
_NEAR = 0.08  # m, largest distance between a drone and the ray
_ANGLE = 0.015  # rad, the same as an angle from the start of the ray, for distant drones
_FARTHEST = 50.0  # m


class Viewer:
    """A page with drones.

    Args:
        address: Address to listen on. If other machines can reach it, a browser needs a token.
        port: Port to listen on; the next free one if it is taken.
        shell: The page's shell; by default one that only follows the browser's theme.

    Attributes:
        server: The page's server.
        shell: The page's shell.
        panel: What the panel consists of.
        tabs: The tabs of the shell as viser's clients.
        theme: Tells which tabs are dark.
        url: Address of the page for a browser, with the token if one is needed.
        stage: What the world stands in.
        drawing: The scene.
        names: Names of the drones in it.
        shown: The switches that select what is shown.
        cameras: The cameras of the tabs.
        selected: Name of the drone that cameras follow.

    Raises:
        OSError: The address does not belong to this machine.
    """

    def __init__(
        self, address: str = ADDRESS, port: int = PORT, shell: Shell | None = None
    ) -> None:
        token = "" if is_loopback(address) else new_token()
        self.shell = shell or Shell()
        self.server: viser.ViserServer = page_server.start(
            address, port, "crazyflow_ros", token, self.shell
        )
        self.shell.show("version", self.shell.version)
        query = f"?token={token}" if token else ""
        self.url = f"http://{address}:{self.server.get_port()}/{query}"
        self._lock = threading.RLock()
        self._frame: Frame | None = None
        self._last = time.monotonic()
        self.panel = PageControls(self.shell)
        self.stage = Stage(self.server)
        self.drawing = Drawing(self.server, self.stage)
        self.names = Names(self.server)
        self.shown = Shown(self.panel, self._show_again)
        self.tabs = Tabs(self.server, self.shell)
        self.theme = Theme(self.server, self.shell, self.tabs, self.shown.dark)
        self.theme.on_change(self.stage.set_dark)
        self.selected = ""
        self.cameras = Cameras(self.server, self.panel, self.tabs)
        self.tabs.on("picture", lambda *_: self._show_again())

    def run(
        self,
        show: Callable[[], object],
        ended: threading.Event,
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Show frame after frame; after a failed frame, print why, and continue.

        Args:
            show: Shows the present frame.
            ended: Ends the method.
            report: Called with each error.
        """
        due, latest = time.monotonic(), ""
        while not ended.wait(max(due - time.monotonic(), 0.0)):
            due = max(due + PERIOD, time.monotonic())
            try:
                show()
            except Exception as error:  # the next frame may succeed
                if page_server.is_race_of_viser(error):
                    continue
                if repr(error) != latest:
                    latest = repr(error)
                    traceback.print_exc()
                report(repr(error))

    @property
    def is_due(self) -> bool:
        """Whether to show the next frame: always while a tab is open, otherwise once a second.

        The first message to a new tab has the latest frame.
        """
        is_old = self._frame is None or time.monotonic() > self._last + _UNSEEN
        return is_old or bool(self.server.get_clients())

    def show(self, frame: Frame, seconds: float) -> None:
        """Show the drones.

        Args:
            frame: The drones.
            seconds: Time by which the rotors turn, unless simulated time stands still [s].
        """
        with self._lock:
            if self.selected not in frame.names:
                self.selected = frame.names[0]
            moves = self._frame is None or frame.time_ns != self._frame.time_ns
            self._frame = frame
            now = time.monotonic()
            elapsed, self._last = now - self._last, now
            self._show(frame, seconds if moves else 0.0, elapsed)

    def _show_again(self) -> None:
        """Show a change at once, because no frame may follow, as between the steps of a `Sim`."""
        with self._lock:
            if self._frame is not None:
                self._show(self._frame, 0.0, math.inf)

    def _show(self, frame: Frame, seconds: float, elapsed: float) -> None:
        drawing, cameras, shown = self.drawing, self.cameras, self.shown
        radii = drawing.radii_of(frame)
        cameras.look(frame, self.selected, radii, drawing.ground)
        shown.choose_size(cameras.needed_sizes(shown.size.value), elapsed)
        drawing.show(frame, seconds, shown.size.value, shown.switches)
        cameras.move(shown.size.value)
        drawn = shown.size.value * radii
        for client, look in cameras.looks():
            self.stage.centre(client, *look.view.look_at[:2].tolist())
            self.names.show(
                client, look, frame.names, frame.position, drawn, visible=bool(shown.names.value)
            )

    def select_under(self, event: viser.SceneClickEvent) -> bool:
        """Select the drone under the pointer, and return whether there is one."""
        frame, size = self._frame, float(self.shown.size.value)
        if frame is None:
            return False
        hit = drone_at(frame, np.array(event.ray_origin), np.array(event.ray_direction), size)
        self.selected = hit or self.selected
        return hit is not None

    def close(self) -> None:
        """Stop the server."""
        page_server.stop(self.server)


def drone_at(
    frame: Frame, origin: np.ndarray, direction: np.ndarray, size: float = 1.0
) -> str | None:
    """Return the nearest drone on a ray, or None.

    Args:
        frame: The drones.
        origin: Start of the ray [m], shape (3,).
        direction: Its direction, shape (3,).
        size: Drawn size of the drones as a multiple of their real size.
    """
    row = nearest_on_ray(frame.position, origin, direction, size * _NEAR)
    return None if row is None else frame.names[row]


def nearest_on_ray(
    places: np.ndarray, origin: np.ndarray, direction: np.ndarray, reach: float
) -> int | None:
    """Return the number of the nearest place (M, 3) that a ray passes within `reach` [m]."""
    direction = direction / np.linalg.norm(direction)
    away = places - origin
    along = away @ direction
    beside = np.linalg.norm(away - along[:, None] * direction, axis=1)
    is_hit = (along > 0) & (beside < np.maximum(reach, _ANGLE * along))
    return int(np.argmin(np.where(is_hit, along, np.inf))) if is_hit.any() else None


def floor_at(origin: np.ndarray, direction: np.ndarray, floor: float = 0.0) -> np.ndarray | None:
    """Return where a ray meets the floor at a height [m], shape (3,); None if it is too far."""
    if direction[2] >= 0 or origin[2] <= floor:
        return None
    place = origin - direction * ((origin[2] - floor) / direction[2])
    return place if np.linalg.norm(place - origin) < _FARTHEST else None
