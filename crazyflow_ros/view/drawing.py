"""Draws frames into a page: the world, drones with turning rotors, their names and trails."""

from __future__ import annotations

import colorsys
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import viser

from crazyflow_ros.scene.frames import body_to_world, multiply, xyzw_to_wxyz
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.frame import Frame, Looks
from crazyflow_ros.view.meshes import glb

_FIRST_PLACE, _FIRST_LOOK = (-2.0, -2.0, 1.6), (0.0, 0.0, 0.4)  # m, of the camera
_ABOVE = np.array([0.0, 0.0, 0.08])  # m, position of a name relative to its drone
MOST_NAMES = 30  # drones whose names are shown: moving each takes a message
_NAMES_A_FRAME = 10  # on average
_TRAIL, _ALL_TRAILS = 240, 6000  # points of one trail, and of all trails together
_TRAIL_STEP = 0.02  # m between two points of a trail
_JUMP = 1.0  # m between two frames, above which the drone was reset and did not fly
_TRAIL_PERIOD = 6  # frames between two drawings of the trails, which are the largest messages
_SLOWEST_TURN, _FASTEST_TURN = 2.0, 25.0  # rad/s, of rotors: faster ones would seem to stand still
_TYPICAL_SPEED = 2000.0  # rad/s


class Drawing:
    """The scene of a page.

    Args:
        server: The page's server.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server, self._scene = server, server.scene
        self._world: Any = None
        self._shapes: Sequence[VisibleShape] = ()
        self._looks: Sequence[Looks] = ()
        self._drones: tuple[str, ...] = ()
        self._swarms: list[Swarm] = []
        self._labels: list[Any] = []
        self._has_names, self._turn = True, 0
        self._trails: Trails | None = None
        self._shown: tuple[Frame, float, bool, bool] | None = None
        self._scene.set_up_direction("+z")
        self._scene.world_axes.visible = False
        server.initial_camera.position = _FIRST_PLACE
        server.initial_camera.look_at = _FIRST_LOOK
        self._scene.add_grid(
            "/grid",
            width=20,
            height=20,
            cell_size=0.5,
            section_size=1.0,
            infinite_grid=True,
            position=(0.0, 0.0, 0.002),
        )

    def set_world(self, shapes: Sequence[VisibleShape]) -> None:
        """Show this world instead of the previous one; passing the same list again does nothing."""
        if shapes is self._shapes:
            return
        self._shapes = shapes
        if self._world is not None:
            self._world.remove()
            self._world = None
        if shapes:
            # A world that casts shadows shades itself: its floor would be grey.
            self._world = self._scene.add_glb("/world", glb(shapes), cast_shadow=False)

    def set_looks(self, looks: Sequence[Looks]) -> None:
        """Set how the drones look: one entry per drone, or one for all."""
        if [*map(id, looks)] != [*map(id, self._looks)]:
            self._looks, self._drones, self._shown = looks, (), None

    def show(self, frame: Frame, seconds: float, *, size: float, names: bool, trails: bool) -> None:
        """Show the drones.

        Args:
            frame: The drones.
            seconds: Time for which the rotors have turned since the last frame [s]; 0 if time
                stands still.
            size: Drawn size of the drones as a multiple of their real size.
            names: Whether to show their names.
            trails: Whether to show the paths that they have flown.
        """
        if not self._looks:
            return
        is_complete = not (self._turn or (self._trails is not None and self._trails.is_late))
        if (frame, size, names, trails) == self._shown and is_complete:
            return
        self._shown = frame, size, names, trails
        with self._server.atomic():
            if frame.names != self._drones:
                self._begin(frame)
            for swarm in self._swarms:
                swarm.show(frame, seconds, size)
            self._show_names(frame, size, visible=names)
            if self._trails is not None:
                self._trails.show(frame, visible=trails)

    def _show_names(self, frame: Frame, size: float, *, visible: bool) -> None:
        """Move the names with the drones; less often if there are many drones."""
        self._turn = (self._turn + 1) % (1 + len(self._labels) // _NAMES_A_FRAME)
        if visible == self._has_names and self._turn:
            return
        self._has_names = visible
        for label, position in zip(self._labels, frame.position):
            label.visible = visible
            if visible:
                label.position = position + size * _ABOVE

    def _begin(self, frame: Frame) -> None:
        """Recreate the drones after their number, names or looks have changed."""
        for old in (*self._swarms, *self._labels, *([self._trails] if self._trails else ())):
            old.remove()
        self._drones = frame.names
        of_each = [self._looks[row % len(self._looks)] for row in range(len(frame.names))]
        rows: dict[int, list[int]] = {}
        for row, looks in enumerate(of_each):
            rows.setdefault(id(looks), []).append(row)
        self._swarms = [
            Swarm(self._scene, of_each[own[0]], np.array(own), frame) for own in rows.values()
        ]
        shown = frame.names[:MOST_NAMES]
        self._labels = [self._scene.add_label(f"/names/{name}", name) for name in shown]
        self._trails = Trails(self._scene, frame.names)


class Swarm:
    """Drones that look alike, in as few nodes of the scene as possible.

    Args:
        scene: The scene.
        looks: How they look.
        rows: Which drones of a frame these are.
        frame: The first frame.
    """

    def __init__(self, scene: Any, looks: Looks, rows: np.ndarray, frame: Frame) -> None:
        self._looks, self._rows, self._size = looks, rows, 1.0
        self._angles = np.zeros((len(rows), len(looks.rotors)))
        upright = np.tile(np.array([1, 0, 0, 0], np.float32), (len(rows), 1))
        positions, name = frame.position[rows], f"/drones{rows[0]}"
        self._body = scene.add_batched_glb(name, glb(looks.body), upright, positions, lod="off")
        alike: dict[bytes, list[int]] = {}
        for number, rotor in enumerate(looks.rotors):
            alike.setdefault(glb(rotor.shapes), []).append(number)
        self._rotors = [
            (
                scene.add_batched_glb(
                    f"{name}/rotors{numbers[0]}",
                    content,
                    np.tile(upright, (len(numbers), 1)),
                    np.tile(positions, (len(numbers), 1)),
                    lod="off",
                    cast_shadow=False,
                ),
                numbers,
            )
            for content, numbers in alike.items()
        ]

    def remove(self) -> None:
        """Remove the drones."""
        self._body.remove()  # and the rotors below it

    def show(self, frame: Frame, seconds: float, size: float) -> None:
        """Move the drones, and turn the rotors for `seconds`; `size` multiplies their real size."""
        if size != self._size:
            self._size = size
            for handle in (self._body, *(handle for handle, _ in self._rotors)):
                count = len(handle.batched_positions)
                handle.batched_scales = np.full(count, size, np.float32)
        position, attitude = frame.position[self._rows], frame.attitude[self._rows]
        self._body.batched_positions = position.astype(np.float32)
        self._body.batched_wxyzs = xyzw_to_wxyz(attitude).astype(np.float32)
        speed = frame.rotor_speed[self._rows]
        shown = _FASTEST_TURN / _TYPICAL_SPEED * np.abs(speed)
        turning = np.where(speed == 0, 0.0, np.clip(shown, _SLOWEST_TURN, _FASTEST_TURN))
        self._angles += np.sign(speed) * turning * seconds
        self._angles %= math.tau
        for handle, numbers in self._rotors:
            places, turns = [], []
            for number in numbers:
                rotor = self._looks.rotors[number]
                half = rotor.spin * self._angles[:, number] / 2
                zero = np.zeros_like(half)
                turn = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
                in_drone = multiply(np.broadcast_to(rotor.attitude, turn.shape), turn)
                places.append(position + body_to_world(attitude, size * rotor.position))
                turns.append(multiply(attitude, in_drone))
            handle.batched_positions = np.concatenate(places).astype(np.float32)
            handle.batched_wxyzs = xyzw_to_wxyz(np.concatenate(turns)).astype(np.float32)


class Trails:
    """Lines behind the drones, in one node of the scene.

    Args:
        scene: The scene.
        names: The drones.

    Attributes:
        is_late: Whether there are points that are not drawn yet.
    """

    def __init__(self, scene: Any, names: Sequence[str]) -> None:
        length = min(_TRAIL, _ALL_TRAILS // max(len(names), 1))
        self._points: list[deque[np.ndarray]] = [deque(maxlen=length) for _ in names]
        self._colors = np.array([color_of(number) for number in range(len(names))])
        self._scene, self._wait = scene, 0
        self._handle: Any = None
        self.is_late = False

    def remove(self) -> None:
        """Remove the lines."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def show(self, frame: Frame, *, visible: bool) -> None:
        """Add the positions of a frame, and show the lines."""
        for points, position in zip(self._points, frame.position):
            step = float(np.linalg.norm(position - points[-1])) if points else math.inf
            if step > _JUMP:
                points.clear()
            if step > _TRAIL_STEP:
                points.append(position)
                self.is_late = True
        self._wait = max(self._wait - 1, 0)
        if not visible:
            self.remove()
            self.is_late = False
        elif self._wait == 0:
            self._wait = _TRAIL_PERIOD
            self._draw()
            self.is_late = False

    def _draw(self) -> None:
        lines, colors = [], []
        for points, color in zip(self._points, self._colors):
            if len(points) > 1:
                line = np.array(points, np.float32)
                lines.append(np.stack([line[:-1], line[1:]], axis=1))
                colors.append(np.tile(color, (len(line) - 1, 2, 1)))
        self.remove()
        if lines:
            self._handle = self._scene.add_line_segments(
                "/trails",
                np.concatenate(lines),
                np.concatenate(colors),
                thickness=2.0,
                thickness_units="screen",
            )


def color_of(number: int) -> tuple[int, int, int]:
    """Return the RGB colour of a drone, 0 to 255; neighbouring numbers have different colours."""
    red, green, blue = colorsys.hsv_to_rgb(0.58 + number * 0.381966, 0.75, 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)
