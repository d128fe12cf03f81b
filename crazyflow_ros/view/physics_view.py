"""The page of a simulation in the same process, without ROS."""

from __future__ import annotations

import threading
from collections import deque
from html import escape

import mujoco
import viser

from crazyflow_ros.flight import FlightEvent
from crazyflow_ros.runtime import PhysicsThread
from crazyflow_ros.scene.moving_frames import MovingFrames
from crazyflow_ros.scene.shapes import world_shapes
from crazyflow_ros.view.frame import Frame, looks_of
from crazyflow_ros.view.viewer import ADDRESS, PERIOD, PORT, Viewer

_EVENTS = 20  # shown at most


class PhysicsView:
    """A page that shows the drones of a simulation, its scene, and what happens to the drones.

    A click on a drone selects the one that cameras follow.

    Args:
        physics: The simulation, before its start.
        address: Address to listen on. If other machines can reach it, a browser needs a token.
        port: Port to listen on; the next free one if it is taken.

    Attributes:
        viewer: The page; `viewer.url` is its address.

    Raises:
        OSError: The address does not belong to this machine.
    """

    def __init__(self, physics: PhysicsThread, address: str = ADDRESS, port: int = PORT) -> None:
        self._physics = physics
        self.viewer = Viewer(address, port)
        self.viewer.drawing.set_looks([looks_of(physics.config.drone_model)])
        panel = self.viewer.panel
        self._clock = panel.add("text", content="", order=0)
        with panel.section("What happened", order=1):
            self._texts = panel.add("text", content="<i>nothing yet</i>")
        self._events: deque[FlightEvent] = deque(maxlen=_EVENTS)
        self._n_events = self._n_shown = 0
        self._model: mujoco.MjModel | None = None
        self._moving: MovingFrames
        self._ended = threading.Event()
        self.viewer.server.scene.on_click()(self._click)  # type: ignore[arg-type]
        physics.news.on_flight_event(self._note)
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)

    def start(self) -> None:
        """Start to show the simulation."""
        self._thread.start()

    def close(self, timeout: float = 1.0) -> None:
        """Close the page, and wait up to `timeout` [s] for the frame in progress."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        self.viewer.close()

    # In the physics thread.

    def _note(self, event: FlightEvent) -> None:
        self._events.appendleft(event)
        self._n_events += 1

    # In the threads of the page.

    async def _click(self, event: viser.SceneClickEvent) -> None:
        """Select the drone under the pointer."""
        self.viewer.select_under(event)

    def _run(self) -> None:
        self.viewer.run(self._show, self._ended)

    def _show(self) -> None:
        if not self.viewer.is_due:
            return
        model = self._physics.mirror.model
        if model is not self._model:
            self._model, self._moving = model, MovingFrames(model)
            self.viewer.drawing.set_world(world_shapes(model, self._moving.of_bodies))
        now, poses, cables = self._physics.snapshot, None, None
        if now.bodies is not None and self._moving.are_of(now.bodies):
            poses, cables = self._moving.poses(now.bodies), self._moving.cables(now.bodies)
        state = now.pos, now.quat, now.body_vel, now.rotor_vel
        frame = Frame(now.time_ns, now.names, *state, poses, cables)
        self.viewer.show(frame, PERIOD)
        selected = escape(self.viewer.selected)
        self._clock.content = f"{now.time_ns * 1e-9:.1f} s, cameras follow {selected}"
        if self._n_shown != self._n_events:
            self._n_shown = self._n_events
            self._texts.content = "".join(
                f"<div><small>{event.time_ns * 1e-9:.1f} s</small> "
                f"{escape(f'{event.drone}: {event.text}')}</div>"
                for event in list(self._events)
            )
