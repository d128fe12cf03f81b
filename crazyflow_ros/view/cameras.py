"""Cameras of the tabs: free, following a drone, or in its nose."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser

from crazyflow_ros.scene.frames import body_to_world
from crazyflow_ros.view.frame import Frame

FREE, FOLLOW, NOSE = "free", "follow the drone", "in its nose"
_NOSE = np.array([0.035, 0.0, 0.005])  # m, in the drone's frame
_AHEAD, _UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
_NEAR, _FAR = 0.4, 4.0  # m, the first distance from a drone that is followed


class Cameras:
    """Moves the cameras of the tabs with a drone.

    Args:
        server: The page's server.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._choices: dict[int, Any] = {}  # by tab number
        self._before: dict[int, str] = {}
        server.on_client_connect(self._add)
        server.on_client_disconnect(self._remove)

    def _add(self, client: viser.ClientHandle) -> None:
        choice = client.gui.add_dropdown(
            "Camera", (FREE, FOLLOW, NOSE), hint="Of this tab; the drone is the selected one"
        )
        self._choices[client.client_id] = choice

    def _remove(self, client: viser.ClientHandle) -> None:
        self._choices.pop(client.client_id, None)
        self._before.pop(client.client_id, None)

    def follow(self) -> None:
        """Let the free cameras of all tabs follow the selected drone from now on."""
        for choice in list(self._choices.values()):
            if choice.value == FREE:
                choice.value = FOLLOW

    def move(self, frame: Frame, selected: str, size: float) -> None:
        """Move all cameras to the selected drone, which is drawn `size` times its real size."""
        if selected not in frame.names:
            return
        row = frame.names.index(selected)
        for number, client in self._server.get_clients().items():
            choice = self._choices.get(number)
            if choice is None:
                continue
            before, now = self._before.get(number, FREE), str(choice.value)
            self._before[number] = now
            with client.atomic():
                if now == NOSE:
                    _into_nose(client.camera, frame.position[row], frame.attitude[row], size)
                elif now == FOLLOW:
                    _beside(client.camera, frame.position[row], is_new=before != FOLLOW)
                if before == NOSE != now:
                    client.camera.up_direction = _UP


def _into_nose(camera: Any, position: np.ndarray, attitude: np.ndarray, size: float) -> None:
    place = position + body_to_world(attitude, size * _NOSE)
    camera.position = place
    camera.look_at = place + body_to_world(attitude, _AHEAD)
    camera.up_direction = body_to_world(attitude, _UP)


def _beside(camera: Any, position: np.ndarray, *, is_new: bool) -> None:
    """Keep the camera's distance and direction, which the user may change meanwhile."""
    offset = camera.position - camera.look_at
    if is_new:
        distance = float(np.linalg.norm(offset))
        offset *= np.clip(distance, _NEAR, _FAR) / max(distance, 1e-6)
    camera.position = position + offset
    camera.look_at = position
