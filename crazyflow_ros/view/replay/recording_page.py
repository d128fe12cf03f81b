"""The page of a recorded flight, with its events, their explanations, and a second run."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import viser

from crazyflow_ros.ros.messages import NS
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view import map_feed
from crazyflow_ros.view.access import is_number
from crazyflow_ros.view.frame import Frame, Looks
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.analysis import LIMITS, OTHER, Analysis, Span
from crazyflow_ros.view.replay.player import SPEEDS, Player
from crazyflow_ros.view.replay.run_comparison import Alignment
from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.viewer import ADDRESS, PORT, Viewer

_STYLES = ("base", "timebar", "events", "plots")
_SCRIPTS = ("base", "timebar", "plots", "eventlist", "eventcard", "comparison", "share")
_OF_SHELL = (
    *map_feed.SCRIPTS,
    "files.js",
    *(f"replay/{name}.css" for name in _STYLES),
    *(f"replay/{name}.js" for name in _SCRIPTS),
)
_PERIOD = 1 / 30  # s of wall time between two frames
_GHOST, _OPACITY = np.array([0.35, 0.45, 0.6]), 0.35  # colour and opacity of the second run
_MOST_ASKED = 1000  # requests of tabs that wait
_MOST_STEPS = 1000
_FARTHEST = 1e9  # s
_STOP, _SLOWLY = "stop", "slowly"  # what a click on an event does

Asked = dict[str, Any]
"""What a tab asks for: `do` is the kind, the others are its arguments."""


class RecordingPage:
    """A page that plays a recording.

    Args:
        recording: The recording.
        address: Address to listen on.
        port: Port to listen on; the next free one if it is taken.
        other: A second run, to compare with.

    Attributes:
        viewer: The page.

    Raises:
        OSError: The address is not one of this machine.
    """

    def __init__(
        self,
        recording: Recording,
        address: str = ADDRESS,
        port: int = PORT,
        other: Recording | None = None,
    ) -> None:
        self._recordings = [recording, *([] if other is None else [other])]
        self._player = Player(recording.begin_ns, recording.end_ns)
        self._mode = _STOP
        self._window: Span | None = None
        self._frame: Frame | None = None
        self._names: tuple[str, ...] = ()
        self._looks = [recording.looks, *([] if other is None else [_ghost(other.looks)])]
        self._asked: queue.Queue[Asked] = queue.Queue(_MOST_ASKED)
        self._ended = threading.Event()
        self._shell = Shell(_OF_SHELL)
        self._shell.on("replay", self._receive)
        self.viewer = Viewer(address, port, self._shell)
        self.viewer.server.scene.on_click()(self._click)  # type: ignore[arg-type]
        self._map = map_feed.MapFeed(self.viewer, can_send=False)
        self._analysis = Analysis(self._recordings, self._shell)

    def run(self) -> None:
        """Play until `close`."""
        self._analysis.start()
        before = time.monotonic()
        while not self._ended.wait(_PERIOD):
            before, elapsed = time.monotonic(), time.monotonic() - before
            try:
                self._carry_out()
                if self.viewer.server.get_clients():
                    self._player.advance(elapsed)
                self._show(elapsed)
            except Exception as error:  # the file may hold anything
                self._player.plays = False
                self._analysis.note(str(error) or repr(error))
        self._analysis.close()
        self.viewer.close()

    def close(self) -> None:
        """End `run`."""
        self._ended.set()

    # In the threads of the server.

    def _receive(self, _: int, content: Any) -> None:
        if isinstance(content, dict) and not self._asked.full():
            self._asked.put_nowait(content)

    async def _click(self, event: viser.SceneClickEvent) -> None:
        """Select the drone under the pointer."""
        self.viewer.select_under(event)

    # What tabs ask for.

    def _carry_out(self) -> None:
        while not self._asked.empty():
            asked = self._asked.get_nowait()
            self._control(asked)
            self._change_view(asked)

    def _control(self, asked: Asked) -> None:
        """Carry out a request about the time."""
        player, value = self._player, asked.get("value")
        match asked.get("do"):
            case "toggle":
                player.toggle()
            case "seek" if is_number(seconds := asked.get("t"), -_FARTHEST, _FARTHEST):
                player.stop(self._ns(seconds))
            case "step" if isinstance(n := asked.get("n"), int) and abs(n) <= _MOST_STEPS:
                player.stop(player.time_ns + n * self._recordings[0].step_ns)
            case "speed" if is_number(value) and value in SPEEDS:
                player.speed = float(value)
            case "loop":
                player.loops = value is True
            case "mode" if value in (_STOP, _SLOWLY):
                self._mode = str(value)

    def _change_view(self, asked: Asked) -> None:
        """Carry out a request about events, plots or the second run."""
        value = asked.get("value")
        match asked.get("do"):
            case "event":
                self._go_to_event(asked)
            case "share":
                self._analysis.share(self._window)
            case "close":
                self._shell.show("card", None)
            case "select":
                self._select(asked.get("drone"))
            case "window":  # of the plots [s]; without one, everything
                begin, end = asked.get("begin"), asked.get("end")
                self._window = None
                if (
                    is_number(begin, -_FARTHEST)
                    and is_number(end, begin, _FARTHEST)
                    and end > begin
                ):
                    self._window = self._ns(begin), self._ns(end)
            case "align" if value in list(Alignment):
                self._analysis.align(Alignment(value))
            case "limit" if is_number(value, *LIMITS):
                self._analysis.set_limit(float(value))

    def _select(self, drone: object) -> None:
        if self._frame is not None and drone in self._frame.names:
            self.viewer.selected = str(drone)

    def _go_to_event(self, asked: Asked) -> None:
        """Show an event: the instant, the drone, and why it happened."""
        run, number = asked.get("run"), asked.get("number")
        if not (isinstance(run, int) and isinstance(number, int)):
            return
        runs = self._analysis.runs
        if not (0 <= run < len(runs) and 0 <= number < len(events := runs[run].events)):
            return
        event = events[number]
        time_ns = event.time_ns - (self._analysis.shift_ns if run else 0)
        if self._mode == _SLOWLY:
            self._player.play_slowly(time_ns)
        else:
            self._player.stop(time_ns)
        drone = event.drone or self.viewer.selected.removesuffix(f" {OTHER}")
        self._show(0.0)  # the drone may be one of that time only
        self._select(f"{drone} {OTHER}" if run else drone)
        if event.drone:
            self.viewer.cameras.follow()
        self._analysis.explain(run, number, drone)

    # What is shown.

    def _ns(self, seconds: float) -> int:
        """Return the time in the file [ns] of a shown time [s]."""
        return self._recordings[0].zero_ns + round(seconds * NS)

    def _show(self, elapsed: float) -> None:
        player, time_ns = self._player, self._player.time_ns
        recording = self._recordings[0]
        world = recording.world(time_ns)
        self.viewer.drawing.set_world(world)
        frame = recording.frame(time_ns)
        if frame is not None:
            for other in self._recordings[1:]:
                shifted = max(time_ns + self._analysis.shift_ns, 0)
                frame = _with_ghosts(frame, other.frame(shifted))
        self._frame = frame
        if frame is not None and frame.names:
            if frame.names != self._names:
                self._names = frame.names
                looks = [self._looks[name.endswith(f" {OTHER}")] for name in frame.names]
                self.viewer.drawing.set_looks(looks)
            self.viewer.show(frame, elapsed)
            if self._map.is_due:
                self._map.update(frame, world, {}, self._down(time_ns))
        content = {
            "t": self._analysis.seconds(time_ns),
            "plays": player.plays,
            "speed": player.speed,
            "loops": player.loops,
            "mode": self._mode,
            "drone": self.viewer.selected,
        }
        self._shell.show("player", content)
        self._shell.show("drones", [] if frame is None else frame.names)
        self._analysis.plot(self.viewer.selected.removesuffix(f" {OTHER}"), self._window)

    def _down(self, time_ns: int) -> set[str]:
        """Return the drones that have crashed, of both runs, at a time in the first file [ns]."""
        first, *others = self._analysis.runs
        found = first.down(time_ns)
        for other in others:
            names = other.down(time_ns + self._analysis.shift_ns)
            found |= {f"{name} {OTHER}" for name in names}
        return found


def _ghost(looks: Looks) -> Looks:
    """Return the looks of a drone of the second run: pale and translucent."""

    def pale(shapes: Sequence[VisibleShape]) -> list[VisibleShape]:
        return [
            replace(
                shape, rgba=np.append(0.5 * (shape.rgba[:3] + _GHOST), _OPACITY * shape.rgba[3])
            )
            for shape in shapes
        ]

    rotors = [replace(rotor, shapes=pale(rotor.shapes)) for rotor in looks.rotors]
    return Looks(pale(looks.body), rotors)


def _with_ghosts(frame: Frame, other: Frame | None) -> Frame:
    """Return one frame with the drones of two runs, and the bodies of the first."""
    if other is None:
        return frame
    fields = ("position", "attitude", "velocity", "rotor_speed")
    both = (np.concatenate([getattr(frame, name), getattr(other, name)]) for name in fields)
    position, attitude, velocity, rotor_speed = both
    names = frame.names + tuple(f"{name} {OTHER}" for name in other.names)
    return replace(
        frame,
        names=names,
        position=position,
        attitude=attitude,
        velocity=velocity,
        rotor_speed=rotor_speed,
    )
