"""Cameras of the tabs, which follow all drones or one of them, or are moved by their users."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import viser

from crazyflow_ros.scene.frames import body_to_world
from crazyflow_ros.scene.frames import yaw as yaw_of
from crazyflow_ros.view.controls import PageControls
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.ground import Ground
from crazyflow_ros.view.lens import FOV, CameraView, Look, Picture, axes_of, depth, direction, fit
from crazyflow_ros.view.shown import needed_size
from crazyflow_ros.view.tabs import Tabs

ALL, BESIDE, BEHIND = "all drones", "beside the drone", "behind the drone"
NOSE, ABOVE, FREE = "in its nose", "from above", "free"
MODES = ALL, BESIDE, BEHIND, NOSE, ABOVE, FREE
_CHOICE = "camera mode"  # kind of the shell's messages
_UP, _AHEAD = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
_OBLIQUE = direction(math.radians(-78), math.radians(20))  # drones that look east are seen from
_OBLIQUE_MANY = direction(math.radians(-78), math.radians(40))  # so that rows hide none
_BESIDE = direction(math.radians(-50), math.radians(18))  # the front, x points to the right
_OVERHEAD = direction(math.radians(-90), math.radians(84))
_NOSE = np.array([0.035, 0.0, 0.005])  # m, in the drone's frame
_NEAR = 13.0  # drawn radii from a camera to its drone
_BEHIND = np.array([-11.0, 0.0, 4.0])  # drawn radii, in the heading frame
_AROUND, _LEAST = 1.6, 0.3  # drawn radii, and m, around a drone that are seen, too
_DEPTH = 1.5  # m below a drone that are seen, too, with what is there
_MANY, _APART = 10, 0.55  # drones; what is at most drawn of the distance between many
_MEMORY, _MEMORIES = 10.0, 20  # s for which a picture has room for where drones were; how often
_MOST_COMPARED = 2000  # drones, each with each other one
_MOST_POINTS = 20  # drones of which each is fitted into the picture
_CLOSE_UP = 0.5  # times the real size that drones need beside a camera
_SOFT, _CLOSE = 0.8, 0.25  # s, time constants of cameras far from and near a drone
_JUMP = 3.0  # m between two frames, above which the camera jumps with the drone
_STILL = 1e-3  # of its distance, the smallest movement of a camera
_PATIENCE = 5.0  # s for which a tab without a script is waited for
_TOUCHED = 0.4  # s for which a user moves a camera after each message of it
_INNER = 0.6  # of the free area, in which a drone that somebody flies is kept
_DEPTHS = 0.7, 1.4  # of its first distance, between which it is kept


class Sight(NamedTuple):
    """What the cameras have to show."""

    frame: Frame
    row: int
    """Of the selected drone in the frame."""
    radii: np.ndarray
    """Radii of the drones in their real size [m], shape (M,)."""
    points: np.ndarray
    """What is fitted into a picture of all drones [m], shape (K, 3)."""


class Cameras:
    """Moves the cameras of the tabs.

    Args:
        server: The page's server.
        panel: Where each tab chooses its camera.
        tabs: The page's tabs, which tell the sizes of their pictures, and when users turn cameras.

    Attributes:
        goes_along: Whether free cameras follow the selected drone, because somebody flies it.
    """

    def __init__(self, server: viser.ViserServer, panel: PageControls, tabs: Tabs) -> None:
        self._tabs = tabs
        self._cameras: dict[int, TabCamera] = {}  # by viser's number of the tab
        self._places: deque[tuple[float, np.ndarray]] = deque(maxlen=_MEMORIES)
        self._drones: tuple[str, ...] = ()
        self._scene: Sight | None = None
        self._largest = math.inf  # drawn size, at which many drones do not cover each other
        self.goes_along = False
        server.on_client_connect(self._add)
        server.on_client_disconnect(self._forget)
        tabs.on("picture", self._see)
        tabs.on("camera", self._release)
        tabs.on(_CHOICE, self._choose)
        hint = "Of this tab. It is free as soon as you turn or move it"
        panel.add("choice", "Camera", order=60, options=MODES, own=_CHOICE, hint=hint)

    def _add(self, client: viser.ClientHandle) -> None:
        tell = partial(self._tabs.tell, client, _CHOICE)
        self._cameras[client.client_id] = TabCamera(client, tell)

    def _forget(self, client: viser.ClientHandle) -> None:
        self._cameras.pop(client.client_id, None)

    def _see(self, client: viser.ClientHandle, content: Any) -> None:
        with suppress(KeyError, ValueError):  # a tab that has closed, a content that is no picture
            self._cameras[client.client_id].see(Picture.read(content))

    def _choose(self, client: viser.ClientHandle, mode: Any) -> None:
        camera = self._cameras.get(client.client_id)
        if camera is not None and mode in MODES:
            camera.mode = mode

    def _release(self, client: viser.ClientHandle, _: Any) -> None:
        if (camera := self._cameras.get(client.client_id)) is not None:
            camera.touch()

    def hold(self, client: viser.ClientHandle, *, is_held: bool) -> None:
        """Let the camera of a tab stand still while its user drags something, or no longer."""
        if (camera := self._cameras.get(client.client_id)) is not None:
            camera.is_held = is_held

    def follow(self) -> None:
        """Let the cameras of all tabs follow the selected drone, unless they already do."""
        for camera in self._known():
            camera.follow()

    def look(self, frame: Frame, selected: str, radii: np.ndarray, ground: Ground) -> None:
        """Note what the cameras have to show.

        Args:
            frame: The drones.
            selected: Name of the selected drone.
            radii: Radii of the drones in their real size [m], shape (M,).
            ground: What is below them.
        """
        self._scene = None
        if selected in frame.names and self._known():
            row = frame.names.index(selected)
            if frame.names != self._drones:
                self._drones = frame.names
                self._places.clear()
                self._largest = _largest_size(frame.position, radii)
            self._scene = Sight(frame, row, radii, self._points(frame, ground))

    def needed_sizes(self, size: float) -> list[float]:
        """Return the drawn size of the drones that each tab needs, as a multiple of the real size.

        Args:
            size: Their present drawn size, as a multiple of the real size.
        """
        if self._scene is None:
            return []
        needed = (camera.needed_size(self._scene, size) for camera in self._known())
        return [min(size, self._largest) for size in needed]

    def move(self, size: float) -> None:
        """Move all cameras; drones are drawn `size` times as large as in reality."""
        if self._scene is None:
            return
        for camera in self._known():
            with camera.client.atomic():
                camera.move(self._scene, size, goes_along=self.goes_along)

    def _known(self) -> list[TabCamera]:
        return [camera for camera in list(self._cameras.values()) if camera.is_known()]

    def looks(self) -> list[tuple[viser.ClientHandle, Look]]:
        """Return the tabs with the views of their cameras."""
        return [(camera.client, camera.look()) for camera in self._known()]

    def _points(self, frame: Frame, ground: Ground) -> np.ndarray:
        """Return recent positions of the drones and of what is below them, (K, 3) [m]."""
        now = time.monotonic()
        while self._places and now - self._places[0][0] > _MEMORY:
            self._places.popleft()
        points = frame.position.copy()
        if len(points) > _MOST_POINTS:  # the corners of a box are seen for them
            sides = np.array([points.min(axis=0), points.max(axis=0)])
            points = np.array([(x, y, z) for x, y in product(*sides[:, :2].T) for z in sides[:, 2]])
        below = points.copy()
        below[:, 2] = np.maximum(ground.below(points), points[:, 2] - _DEPTH)
        points = np.concatenate([points, below])
        if not self._places or now - self._places[-1][0] > _MEMORY / _MEMORIES:
            self._places.append((now, points))
        return np.concatenate([points, *(place for _, place in self._places)])


class TabCamera:
    """The camera of a tab.

    Args:
        client: The tab.
        tell: Tells the tab which of `MODES` its camera has now.

    Attributes:
        client: As given.
        mode: One of `MODES`.
        is_held: Whether it stands still.
    """

    def __init__(self, client: viser.ClientHandle, tell: Callable[[str], None]) -> None:
        self.client, self._tell, self.mode = client, tell, ALL
        self.is_held = False
        self._picture: Picture | None = None
        self._is_told = False
        self._since = self._moved = time.monotonic()
        self._touched = -math.inf
        self._before = FREE  # the mode of the last movement
        self._view: CameraView | None = None  # where it was sent
        self._drone: np.ndarray | None = None  # where the followed drone was
        self._offset = np.zeros(3)  # from the drone to the camera beside it, in drawn radii
        self._flown_from: float | None = None  # distance of the drone when a user took over

    def _change(self, mode: str) -> None:
        self.mode = mode
        self._tell(mode)

    def see(self, picture: Picture) -> None:
        """Note the size of the picture."""
        if picture.has_own_camera and not self._is_told:
            self._change(FREE)
        self._is_told = True
        if picture != self._picture:
            self._view = None  # a camera jumps with the picture
        self._picture = picture

    def follow(self) -> None:
        """Go to the selected drone, unless the camera is there already."""
        if self.mode not in (BESIDE, BEHIND, NOSE):
            self._change(BESIDE)

    def touch(self) -> None:
        """Leave the camera to the user, who moves it."""
        self._touched = time.monotonic()
        if self.mode not in (FREE, BESIDE):
            self._change(FREE)

    def is_known(self) -> bool:
        """Return whether the size of the picture is known; after some seconds viser tells it."""
        if self._picture is None and time.monotonic() - self._since > _PATIENCE:
            camera = self.client.camera
            size = max(camera.image_width, 1), max(camera.image_height, 1)
            self._picture = Picture.uncovered(*size)
        return self._picture is not None

    def look(self) -> Look:
        """Return the camera's view, also after a user has turned it."""
        assert self._picture is not None
        camera = self.client.camera
        return Look(CameraView(camera.position, camera.look_at), camera.fov, self._picture)

    def needed_size(self, scene: Sight, size: float) -> float:
        """Return the size that drones need here, see `Cameras.needed_sizes`."""
        assert self._picture is not None
        frame, diameter = scene.frame, 2 * float(scene.radii.min())
        if self.mode in (ALL, ABOVE):
            view = self._fitted(scene, size)
            far = float(depth(frame.position, view).max())
            return needed_size(diameter, far, self._picture.focal(FOV))
        if self.mode in (BESIDE, BEHIND, NOSE):
            return _CLOSE_UP  # the camera is as near as it has to be
        camera = self.client.camera
        depths = depth(frame.position, CameraView(camera.position, camera.look_at))
        seen = depths[depths > 0]
        near = float(seen.min()) if len(seen) else 0.0
        return needed_size(diameter, near, self._picture.focal(camera.fov))

    def move(self, scene: Sight, size: float, *, goes_along: bool) -> None:
        """Move the camera, see `Cameras.move`."""
        now = time.monotonic()
        seconds, self._moved = now - self._moved, now
        before, mode = self._before, self.mode
        self._before = mode
        if self.is_held:
            return
        camera, frame, row = self.client.camera, scene.frame, scene.row
        if before == NOSE != mode:
            camera.up_direction = _UP
        if mode == FREE:
            self._view = None
            self._go_along(frame.position[row], goes_along=goes_along)
            return
        camera.fov = FOV
        position, attitude = frame.position[row], frame.attitude[row]
        if mode == NOSE:
            _into_nose(camera, position, attitude, size)
            return
        radius = size * float(scene.radii[row])
        if mode == BESIDE:
            self._offset = self._beside(radius, is_new=before != BESIDE)
            goal, quick = CameraView(position + radius * self._offset, position), _CLOSE
        elif mode == BEHIND:
            turn = float(yaw_of(attitude))
            flat = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
            offset = np.append(flat @ _BEHIND[:2], _BEHIND[2])
            goal, quick = CameraView(position + radius * offset, position), _CLOSE
        else:
            goal, quick = self._fitted(scene, size), _SOFT
        step = math.inf if self._drone is None else np.linalg.norm(position - self._drone)
        self._drone = position
        is_near = mode in (BESIDE, BEHIND)
        if self._view is None or before != mode or (is_near and step > _JUMP):
            quick = 0.0
        if mode == BESIDE and self._is_touched():
            quick = 0.0  # the user turns it, and we only go along
        self._send(_between(self._view or goal, goal, seconds, quick))

    def _fitted(self, scene: Sight, size: float) -> CameraView:
        assert self._picture is not None
        towards = _OBLIQUE if len(scene.radii) <= _MANY else _OBLIQUE_MANY
        if self.mode == ABOVE:
            towards = _OVERHEAD
        margin = max(_AROUND * size * float(scene.radii.max()), _LEAST)
        return fit(scene.points, margin, towards, self._picture)

    def _is_touched(self) -> bool:
        return time.monotonic() - self._touched < _TOUCHED

    def _beside(self, radius: float, *, is_new: bool) -> np.ndarray:
        """Return the offset from the drone in drawn radii, which the user may change."""
        if is_new:
            return _NEAR * _BESIDE
        if self._is_touched():
            camera = self.client.camera
            return np.asarray((camera.position - camera.look_at) / radius)
        return self._offset

    def _send(self, view: CameraView) -> None:
        self._view = view
        camera = self.client.camera
        distance = float(np.linalg.norm(view.look_at - view.position))
        changes = camera.position - view.position, camera.look_at - view.look_at
        if max(float(np.abs(change).max()) for change in changes) > _STILL * distance:
            camera.position = view.position
            camera.look_at = view.look_at

    def _go_along(self, position: np.ndarray, *, goes_along: bool) -> None:
        """Shift a free camera so that the drone that a user flies stays in the picture."""
        if not goes_along or self._is_touched():
            self._flown_from = None
            return
        assert self._picture is not None
        picture, camera = self._picture, self.client.camera
        right, down, ahead = axes_of(camera.look_at - camera.position)
        away = position - camera.position
        along = float(away @ ahead)
        if along <= 0:
            return  # it is behind the camera, and was not seen
        if self._flown_from is None:
            self._flown_from = along
        nearest, farthest = (share * self._flown_from for share in _DEPTHS)
        shift = (along - min(max(along, nearest), farthest)) * ahead
        focal = picture.focal(camera.fov)
        sides = (
            (right, picture.left, picture.right, picture.width),
            (down, picture.top, picture.bottom, picture.height),
        )
        for axis, low, high, whole in sides:
            middle = ((low + high) / 2 - whole / 2) / focal * along
            half = _INNER * (high - low) / 2 / focal * along
            off = float(away @ axis) - middle
            shift = shift + (off - min(max(off, -half), half)) * axis
        if shift.any():
            camera.position, camera.look_at = camera.position + shift, camera.look_at + shift


def _largest_size(places: np.ndarray, radii: np.ndarray) -> float:
    """Return the drawn size at which many drones at places (M, 3) [m] do not hide each other."""
    if not _MANY < len(places) <= _MOST_COMPARED:
        return math.inf
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(apart, np.inf)
    return max(_APART * float(np.median(apart.min(axis=1)) / (2 * radii.max())), 1.0)


def _between(view: CameraView, goal: CameraView, seconds: float, constant: float) -> CameraView:
    """Return a view that approaches a goal with a time constant [s]."""
    share = 1.0 if constant == 0 else -math.expm1(-seconds / constant)
    place, look_at = (now + share * (then - now) for now, then in zip(view, goal))
    return CameraView(place, look_at)


def _into_nose(camera: Any, position: np.ndarray, attitude: np.ndarray, size: float) -> None:
    place = position + body_to_world(attitude, size * _NOSE)
    camera.position = place
    camera.look_at = place + body_to_world(attitude, _AHEAD)
    camera.up_direction = body_to_world(attitude, _UP)
