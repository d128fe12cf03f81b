"""A recorded flight: the drones and the world at any time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from visualization_msgs.msg import MarkerArray

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.mcap_file import Choice, McapFile
from crazyflow_ros.checks.mcap_records import Message
from crazyflow_ros.drones import DEFAULT_DRONE
from crazyflow_ros.ros.messages import NS, deserialised, shapes_of
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.frame import Frame, Looks, looks_of
from crazyflow_ros.view.messages import FrameReader

_BACK = NS // 2  # ns, how far before a time its latest messages are searched
_STATES = "sensor_msgs/msg/MultiDOFJointState"


class Recording:
    """A recording of a simulator, which is read in pieces.

    Args:
        path: The MCAP file, of the simulator, of a page or of rosbag2.

    Attributes:
        file: The file.
        node: Full name of the simulator's node.
        states: Topic with the states of all drones.
        rotors: Topic with the speeds of all rotors.
        bodies: Topic with the poses of what else moves in the world.
        cables: Topic with the cables.
        parameters: Parameters of the simulator at the start; empty if they are not in the file.
        model: Model of the drones.
        begin_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].
        zero_ns: Time in the file at which shown times are 0 [ns]: that of simulated time 0, or of
            the first message if another recorder has written wall times.
        looks: How the drones look.
        notes: Problems of the file, for its user.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a recording of a simulator, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.file = McapFile(path)
        self.notes: list[str] = []
        self.begin_ns, self.end_ns = self.file.begin_ns, self.file.end_ns
        self.node = _node_of(self.file)
        self.states, self.rotors = f"{self.node}/odometry", f"{self.node}/joint_states"
        self.bodies, self.cables = f"{self.node}/world/odometry", f"{self.node}/world/cables"
        self._no_world: list[VisibleShape] = []
        self._worlds = self._read_worlds()
        self._read_metadata()
        self.looks: Looks = self._look()
        if not self.file.is_complete:
            self.notes.append(
                "The file has no end, because its recorder was killed or still writes: it is shown "
                "as far as it goes."
            )
        if self.file.goes_back:
            self.notes.append(
                "Time goes back in this file, because it was reset or a checkpoint was loaded: "
                "messages of the same time are shown mixed."
            )
        if following := self.file.metadata.get("next"):
            self.notes.append(
                "Time was reset or a checkpoint was loaded at the end of this file: the recording "
                f"goes on in {shown(following)}."
            )
        self._rest: Iterator[Message] = iter(())
        self._next: Message | None = None
        self._frames = FrameReader()
        self._latest: dict[str, bytes] = {}
        self._time_ns = self.end_ns + 1  # of the last `frame`

    def _read_worlds(self) -> list[tuple[int, list[VisibleShape]]]:
        """Return the worlds with the times from which they are valid [ns]."""
        worlds = []
        for message in self.file.messages({f"{self.node}/scene": None}):
            try:
                shapes = shapes_of(deserialised(message.data, MarkerArray))
            except Exception as error:  # the file may hold anything
                self.notes.append(f"A world in the file cannot be read: {error}")
            else:
                worlds.append((message.time_ns, shapes))
        return worlds

    def _read_metadata(self) -> None:
        """Note the parameters of the simulation, which only its own recorders write."""
        self.parameters: dict[str, Any] = {}
        self.zero_ns = self.begin_ns
        found = self.file.metadata
        try:
            parameters = json.loads(found["parameters"])
            self.zero_ns = int(found.get("origin_ns", 0))
        except (KeyError, ValueError, RecursionError):
            parameters = None
        if isinstance(parameters, dict):
            self.parameters = parameters
        else:
            self.notes.append(
                "The file has no parameters of the simulator, because another program recorded it:"
                f" its drones are drawn as {DEFAULT_DRONE}, and times count from its beginning."
            )

    def _look(self) -> Looks:
        self.model = str(self.parameters.get("drone_model", DEFAULT_DRONE))
        try:
            return looks_of(self.model)
        except ValueError as error:
            self.notes.append(f"The drones are drawn as {DEFAULT_DRONE}: {error}")
            self.model = DEFAULT_DRONE
            return looks_of(DEFAULT_DRONE)

    @property
    def seconds(self) -> float:
        """Duration [s]; more than 0."""
        return max((self.end_ns - self.begin_ns) / NS, 1e-3)

    @property
    def step_ns(self) -> int:
        """Mean time between two states [ns]."""
        count = max(self.file.counts.get(self.states, 0), 2)
        return max(round((self.end_ns - self.begin_ns) / (count - 1)), 1)

    def world(self, time_ns: int) -> list[VisibleShape]:
        """Return the world at a time [ns]: the same list until it changes."""
        shapes = self._no_world
        for since_ns, world in self._worlds:
            if since_ns <= time_ns or not shapes:
                shapes = world
        return shapes

    def frame(self, time_ns: int) -> Frame | None:
        """Return the latest state at a time [ns]; None if there is none shortly before."""
        if not self._time_ns <= time_ns < self._time_ns + NS:
            self._seek(time_ns)
        self._time_ns = time_ns
        while self._next is not None and self._next.time_ns <= time_ns:
            self._latest[self._next.topic] = self._next.data
            self._next = next(self._rest, None)
        states = self._latest.get(self.states)
        if states is None:
            return None
        return self._frames.read(
            states, *map(self._latest.get, (self.rotors, self.bodies, self.cables))
        )

    def _seek(self, time_ns: int) -> None:
        self._latest.clear()
        topics = dict.fromkeys((self.states, self.rotors, self.bodies, self.cables))
        self._rest = self.file.messages(topics, max(time_ns - _BACK, 0))
        self._next = next(self._rest, None)


def _node_of(file: McapFile) -> str:
    """Return the full name of the simulator's node."""
    for topic, kind in sorted(file.types.items(), key=lambda item: len(item[0])):
        if kind == _STATES and topic.endswith("/odometry") and "/display/" not in topic:
            return topic.removesuffix("/odometry")
    raise ValueError(
        f"{file.path} has no odometry of all drones: record with publish_rates.swarm above 0, and "
        f"with rosbag2 the topic /crazyflow/odometry; its topics are "
        f"{', '.join(sorted(file.types)) or 'none'}"
    )


def every(period_ns: int) -> Choice:
    """Return a function that chooses one message in each period [ns]."""
    latest = -1

    def choose(times: np.ndarray) -> np.ndarray:
        nonlocal latest
        periods = times // period_ns
        mask = np.diff(periods, prepend=latest) != 0
        latest = int(periods[-1])
        return mask

    return choose


def after_silence(silence_ns: int) -> Choice:
    """Return a function that chooses messages after a silence of this length [ns]."""
    latest = -silence_ns

    def choose(times: np.ndarray) -> np.ndarray:
        nonlocal latest
        mask = np.diff(times, prepend=latest) >= silence_ns
        latest = int(times[-1])
        return mask

    return choose
