"""The page of a recorded flight, with a time bar."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rclpy.serialization import deserialize_message
from visualization_msgs.msg import MarkerArray

from crazyflow_ros.extras import extra
from crazyflow_ros.ros.messages.scene_markers import shapes_of
from crazyflow_ros.ros.messages.times import NS
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.frame import Frame, Looks, looks_of
from crazyflow_ros.view.messages import FrameReader
from crazyflow_ros.view.viewer import ADDRESS, PORT, Viewer

with extra("record"):
    from mcap.exceptions import McapError
    from mcap.reader import McapReader, make_reader

_PERIOD = 1 / 30  # s of wall time between two frames
_BACK = NS // 2  # ns, how far before a time its latest messages are searched
_SPEEDS = {f"{factor:g} ×": factor for factor in (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)}


class Recording:
    """A recording of a simulator, read piece by piece.

    Args:
        path: The MCAP file.

    Attributes:
        begin_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].
        looks: How the drones look.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a complete recording of a simulator.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            self._reader: McapReader = make_reader(self._file)
            summary = self._reader.get_summary()
            if summary is None or summary.statistics is None:
                raise ValueError(f"{path}: there is no index; make one with mcap recover")
            topics = {
                channel.topic: summary.schemas[channel.schema_id].name
                for channel in summary.channels.values()
            }
            node = _node_of(topics, path)
            self._states, self._rotors = f"{node}/odometry", f"{node}/joint_states"
            self._worlds = [
                (message.log_time, shapes_of(deserialize_message(message.data, MarkerArray)))
                for _, _, message in self._reader.iter_messages([f"{node}/scene"])
            ]
            self.looks: Looks = looks_of(self._parameters()["drone_model"])
        except McapError as error:
            raise ValueError(f"{path}: not a complete MCAP file ({error})") from None
        self.begin_ns = summary.statistics.message_start_time
        self.end_ns = summary.statistics.message_end_time
        self._rest: Iterator[Any] = iter(())
        self._next: Any = None
        self._frames = FrameReader()
        self._latest: dict[str, bytes] = {}
        self._time_ns = self.end_ns + 1  # of the last `frame`

    def _parameters(self) -> dict[str, Any]:
        for metadata in self._reader.iter_metadata():
            if metadata.name == "crazyflow_ros":
                return dict(json.loads(metadata.metadata["parameters"]))
        raise ValueError("there are no parameters of a simulator in the file")

    def world(self, time_ns: int) -> list[VisibleShape]:
        """Return the world at a time [ns]: the same list until it changes."""
        shapes: list[VisibleShape] = []
        for since_ns, world in self._worlds:
            if since_ns <= time_ns or not shapes:
                shapes = world
        return shapes

    def frame(self, time_ns: int) -> Frame | None:
        """Return the latest state at a time [ns]; None if there is none shortly before."""
        if not self._time_ns <= time_ns < self._time_ns + NS:
            self._seek(time_ns)
        self._time_ns = time_ns
        while self._next is not None and self._next[2].log_time <= time_ns:
            _, channel, message = self._next
            self._latest[channel.topic] = message.data
            self._next = next(self._rest, None)
        states = self._latest.get(self._states)
        return None if states is None else self._frames.read(states, self._latest.get(self._rotors))

    def _seek(self, time_ns: int) -> None:
        self._latest.clear()
        self._rest = iter(
            self._reader.iter_messages(
                [self._states, self._rotors], start_time=max(time_ns - _BACK, 0)
            )
        )
        self._next = next(self._rest, None)


class RecordingPage:
    """A page that plays a recording.

    Args:
        recording: The recording.
        address: Address to listen on.
        port: Port to listen on; the next free one if it is taken.

    Attributes:
        viewer: The page.

    Raises:
        OSError: The address is not one of this machine.
    """

    def __init__(self, recording: Recording, address: str = ADDRESS, port: int = PORT) -> None:
        self._recording = recording
        self.viewer = Viewer(address, port)
        gui = self.viewer.server.gui
        self._length = max((recording.end_ns - recording.begin_ns) / NS, 1e-3)
        with gui.add_folder("Recording", order=0):
            step = self._length / 1000
            self._bar: Any = gui.add_slider("Time [s]", 0.0, self._length, step, 0.0)
            self._button = gui.add_button("Pause")
            self._speed = gui.add_dropdown("Speed", tuple(_SPEEDS), initial_value="1 ×")
        self._plays, self._seconds = True, 0.0
        self._button.on_click(self._toggle)
        self._bar.on_update(self._move)
        self._ended = threading.Event()
        self.viewer.drawing.set_looks([recording.looks])

    def run(self) -> None:
        """Play in a loop until `close`."""
        before = time.monotonic()
        while not self._ended.wait(_PERIOD):
            before, elapsed = time.monotonic(), time.monotonic() - before
            if self._plays and self.viewer.server.get_clients():
                self._seconds += elapsed * _SPEEDS[self._speed.value]
                if self._seconds > self._length:
                    self._seconds = 0.0
                self._bar.value = round(self._seconds, 3)
            self._show(elapsed)
        self.viewer.close()

    def close(self) -> None:
        """End `run`."""
        self._ended.set()

    def _toggle(self, _: Any) -> None:
        self._plays = not self._plays
        self._button.label = "Pause" if self._plays else "Play"

    def _move(self, event: Any) -> None:
        if event.client is not None:  # moved by a user, not by this page
            self._seconds = float(self._bar.value)

    def _show(self, elapsed: float) -> None:
        time_ns = self._recording.begin_ns + round(self._seconds * NS)
        self.viewer.drawing.set_world(self._recording.world(time_ns))
        frame = self._recording.frame(time_ns)
        if frame is not None and frame.names:
            self.viewer.show(frame, elapsed)


def _node_of(topics: dict[str, str], path: Path) -> str:
    """Return the full name of the simulator's node."""
    for topic, kind in sorted(topics.items(), key=lambda item: len(item[0])):
        if kind == "sensor_msgs/msg/MultiDOFJointState" and topic.endswith("/odometry"):
            return topic.removesuffix("/odometry")
    raise ValueError(
        f"{path} has no odometry of all drones: record with publish_rates.swarm above 0; its "
        f"topics are {', '.join(sorted(topics)) or 'none'}"
    )
