"""Draws frames into a page: the world and what moves in it, drones, their shadows and trails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import viser

from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.backdrop import scenery_of
from crazyflow_ros.view.frame import Frame, Looks
from crazyflow_ros.view.ground import Ground
from crazyflow_ros.view.moving_bodies import ShownBodies
from crazyflow_ros.view.shadows import Shadows
from crazyflow_ros.view.stage import Stage
from crazyflow_ros.view.swarm import Swarm, radius_of
from crazyflow_ros.view.trails import Trails

_UNKNOWN = Looks([])  # until it is known how drones look


class Switches(NamedTuple):
    """What is drawn of the drones."""

    trails: bool = True
    shadows: bool = True


class Drawing:
    """The scene of a page. All methods are thread-safe.

    Attributes:
        ground: What is below the drones.
    """

    def __init__(self, server: viser.ViserServer, stage: Stage) -> None:
        self._server, self._scene, self._stage = server, server.scene, stage
        self._lock = threading.RLock()
        self._world: list[Any] = []
        self._shapes: Sequence[VisibleShape] = ()
        self.ground = Ground()
        self._radii = np.empty(0)
        self._looks: Sequence[Looks] = ()
        self._moving = ShownBodies(self._scene, ())
        self._drones: tuple[str, ...] = ()
        self._swarms: list[Swarm] = []
        self._shadows: Shadows | None = None
        self._trails: Trails | None = None
        self._shown: tuple[Frame, float, Switches] | None = None
        self._scene.set_up_direction("+z")
        self._scene.world_axes.visible = False

    def set_world(self, shapes: Sequence[VisibleShape]) -> None:
        """Show this world instead of the previous one; passing the same list again does nothing."""
        if shapes is self._shapes:
            return
        with self._lock:
            self._shapes, self._shown = shapes, None
            for handle in self._world:
                handle.remove()
            self._moving.remove()
            moving = [shape for shape in shapes if shape.frame]
            self._moving = ShownBodies(self._scene, moving)
            world = scenery_of([shape for shape in shapes if not shape.frame])
            self.ground = Ground(world.shapes, world.floor)
            if self._shadows is not None:
                self._shadows.ground = self.ground
            self._moving.cast(moving, self.ground)
            self._stage.set_floor(world.floor)
            self._world = []
            if world.glb:
                self._world.append(self._scene.add_glb("/world", world.glb, cast_shadow=False))
            if len(world.edges):
                edges = world.edges.astype(np.float32), world.edge_colors
                handle = self._scene.add_line_segments(
                    "/edges", *edges, thickness=1.0, thickness_units="screen"
                )
                self._world.append(handle)

    def set_looks(self, looks: Sequence[Looks]) -> None:
        """Set how the drones look: one entry per drone, or one for all."""
        if [*map(id, looks)] != [*map(id, self._looks)]:
            with self._lock:
                self._looks, self._drones, self._shown = looks, (), None

    def radii_of(self, frame: Frame) -> np.ndarray:
        """Return the radii of the drones of a frame in their real size [m], shape (M,)."""
        return np.array([radius_of(looks) for looks in self._looks_of(frame)])

    def _looks_of(self, frame: Frame) -> list[Looks]:
        looks = self._looks or (_UNKNOWN,)
        return [looks[row % len(looks)] for row in range(len(frame.names))]

    def show(self, frame: Frame, seconds: float, size: float, switches: Switches) -> None:
        """Show the drones.

        Args:
            frame: The drones.
            seconds: Time for which the rotors have turned since the last frame [s]; 0 if time
                stands still.
            size: Drawn size of the drones as a multiple of their real size.
            switches: What to draw.
        """
        with self._lock, self._server.atomic():
            is_complete = self._trails is None or not self._trails.is_late
            if not self._looks or ((frame, size, switches) == self._shown and is_complete):
                return
            self._shown = frame, size, switches
            if frame.names != self._drones:
                self._begin(frame)
            assert self._shadows is not None and self._trails is not None
            for swarm in self._swarms:
                swarm.show(frame, seconds, size)
            self._shadows.show(frame.position, size, visible=switches.shadows)
            self._trails.show(frame, visible=switches.trails)
            self._moving.show(frame)

    def _begin(self, frame: Frame) -> None:
        """Recreate the drones after their number, names or looks have changed."""
        for old in (*self._swarms, self._shadows, self._trails):
            if old is not None:
                old.remove()
        self._drones = frame.names
        of_each = self._looks_of(frame)
        self._radii = self.radii_of(frame)
        rows: dict[int, list[int]] = {}
        for row, looks in enumerate(of_each):
            rows.setdefault(id(looks), []).append(row)
        self._swarms = [
            Swarm(self._scene, of_each[own[0]], np.array(own), frame) for own in rows.values()
        ]
        self._shadows = Shadows(self._scene, self._radii, self.ground)
        self._trails = Trails(self._scene, frame.names)
