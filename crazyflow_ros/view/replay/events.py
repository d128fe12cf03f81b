"""What happened in a recorded flight, read from its messages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Path as PathMessage
from rcl_interfaces.msg import Log as Rosout
from sensor_msgs.msg import BatteryState
from std_msgs.msg import String

from crazyflow_ros.checks.mcap_file import Choice
from crazyflow_ros.checks.mcap_records import Message
from crazyflow_ros.ros.messages import deserialised, type_name, xyz
from crazyflow_ros.ros.recording.recorded_effects import change_of
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.recording import Recording, after_silence, every
from crazyflow_ros.view.replay.event_words import (
    COMMANDS,
    disturbance_words,
    is_push,
    message_words,
    place,
    setpoint_words,
)

MOST = 2000
"""Events that are kept, apart from crashes; others are counted."""

LOW = 0.2  # of a battery's charge
_SILENCE = 1_000_000_000  # ns between the last message of a stream and the first of the next
_SAME_PLAN = 500_000_000  # ns
_BATTERY_PERIOD = 200_000_000  # ns between two readings of a battery's sensor
_NEAR = 2_000_000_000  # ns between an event and its line of the log
_MOVED = 0.02  # m, by which a drone was moved by hand, and did not fly
_FASTEST = 3.0  # m/s
_LONGEST = 500  # characters of a text
_LIES = "it lies there until it is reset"
_REPEATED = re.compile(r" \(\d+ more in the last .* s\)$")


class Severity(StrEnum):
    """How bad an event is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Group(StrEnum):
    """Kinds of events, for colours and filters."""

    CRASH = "crash"
    HIT = "hit"
    TROUBLE = "trouble"
    BATTERY = "battery"
    COMMAND = "command"
    CHANGE = "change"
    LOG = "log"


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    time_ns: int
    """Time in the file [ns]."""
    drone: str
    """Name of the drone; empty if it concerns all or none."""
    kind: str
    group: Group
    severity: Severity
    text: str
    """In words, without the drone's name."""


_FLIGHT_EVENTS = {
    "crashed": (Group.CRASH, Severity.ERROR),
    "hit": (Group.HIT, Severity.WARNING),
    "battery empty": (Group.BATTERY, Severity.ERROR),
}
"""Groups and severities of messages of `~/flight_events`; others are troubles."""


class EventReader:
    """Collects the events of a recording from its messages, in the order of the file.

    Attributes:
        events: What happened so far; sorted by time after `finish`.
        left_out: Number of events of each group that were not kept.
        batteries: By drone, voltage [V] and charge (0 to 1) over time [ns], as `~/status` says.
    """

    def __init__(self, recording: Recording) -> None:
        self.events: list[Event] = []
        self.left_out: Counter[Group] = Counter()
        self.batteries: dict[str, list[tuple[int, float, float]]] = {}
        self._types = recording.file.types
        self._readers: dict[str, Callable[[Message], None]] = {}
        self.topics: dict[str, Choice | None] = {}
        self._names: tuple[str, ...] | None = None
        self._frame: Frame | None = None
        self._frame_ns = 0
        self._is_paused = False
        self._paused_ns = 0
        self._low: set[str] = set()
        self._troubles: set[str] = set()
        self._node, self._space = recording.node, recording.node.rpartition("/")[0]
        self._subscribe()

    def _subscribe(self) -> None:
        """Choose the topics, and the method that reads each."""
        node, types = self._node, self._types
        for topic, kind, read in (
            (f"{node}/flight_events", DiagnosticStatus, self._take_flight_event),
            (f"{node}/changes", String, self._take_change),
            (f"{node}/status", DiagnosticArray, self._take_status),
            (f"{node}/reset_event", DiagnosticArray, self._take_reset),
            ("/rosout", Rosout, self._take_log),
        ):
            if types.get(topic) == type_name(kind):
                self._read(topic, read, None)
        has_changes = f"{node}/changes" in self.topics
        for topic, kind in types.items():
            name = topic.rpartition("/")[2]
            if name in COMMANDS:
                self._read(topic, self._take_command, after_silence(_SILENCE))
            elif name == "external_wrench" and kind == type_name(WrenchStamped):
                self._read(topic, self._take_wrench, after_silence(_SAME_PLAN))
            elif kind == type_name(BatteryState):
                self._read(topic, self._take_battery, every(_BATTERY_PERIOD))
            elif name == "plan" and kind == type_name(PathMessage) and not has_changes:
                self._read(topic, self._take_plan, after_silence(_SAME_PLAN))

    def _read(self, topic: str, reader: Callable[[Message], None], choice: Choice | None) -> None:
        self._readers[topic], self.topics[topic] = reader, choice

    def take(self, message: Message) -> None:
        """Note what a message says, or that it cannot be read."""
        reader = self._readers.get(message.topic)
        if reader is None:
            return
        try:
            reader(message)
        except Exception as error:  # the file may hold anything
            text = f"a message on {message.topic} cannot be read: {error}"
            self._add(message.time_ns, "", "unreadable", text, Group.LOG, Severity.WARNING)

    def take_frame(self, time_ns: int, frame: Frame) -> None:
        """Note the drones at a time [ns]."""
        names, before = frame.names, self._names
        if before is not None and names != before:
            for name in (name for name in names if name not in before):
                self._add(time_ns, name, "spawned", "spawned")
            for name in (name for name in before if name not in names):
                self._add(time_ns, name, "deleted", "deleted")
        self._names, self._frame, self._frame_ns = names, frame, time_ns

    def finish(self) -> list[Event]:
        """Sort the events, drop lines of the log that repeat them, and return them."""
        said: dict[str, list[int]] = {}
        for event in self.events:
            if event.group is not Group.LOG:
                said.setdefault(f"{event.drone}: {event.text}", []).append(event.time_ns)
        self.events = [
            event
            for event in sorted(self.events, key=lambda event: event.time_ns)
            if event.group is not Group.LOG
            or not _is_near(event.time_ns, said.get(_REPEATED.sub("", event.text), ()))
        ]
        return self.events

    def _add(
        self,
        time_ns: int,
        drone: str,
        kind: str,
        text: str,
        group: Group = Group.CHANGE,
        severity: Severity = Severity.INFO,
    ) -> None:
        if len(self.events) >= (2 * MOST if group is Group.CRASH else MOST):
            self.left_out[group] += 1
        else:
            event = Event(time_ns, drone[:100], kind[:100], group, severity, text[:_LONGEST])
            self.events.append(event)

    def _take_flight_event(self, message: Message) -> None:
        status = deserialised(message.data, DiagnosticStatus)
        kind = _values(status).get("kind", "event")
        sort = _FLIGHT_EVENTS.get(kind, (Group.TROUBLE, Severity.WARNING))
        drone = "" if status.name == "all" else status.name
        self._add(message.time_ns, drone, kind, status.message, *sort)

    def _take_reset(self, message: Message) -> None:
        values = _values(deserialised(message.data, DiagnosticArray).status[0])
        drones = values.get("drones", "")
        is_one = bool(drones) and "," not in drones
        what = values.get("scope", "").replace(",", " and ") or "state"
        text = f"reset of {drones if is_one else f'all drones ({what})'}"
        self._add(message.time_ns, drones if is_one else "", "reset", text)
        self._low -= set(drones.split(", "))
        self._frame = None

    def _take_change(self, message: Message) -> None:
        change = change_of(message.data)
        time_ns = message.time_ns
        if isinstance(command := change.get("command"), Mapping):
            kind, text = setpoint_words(command.get("setpoint", {}))
            is_stop = kind in ("emergency", "stop", "switch off", "disarm")
            severity = Severity.WARNING if is_stop else Severity.INFO
            self._add(time_ns, str(command.get("drone", "")), kind, text, Group.COMMAND, severity)
        elif isinstance(disturbance := change.get("disturbance"), Mapping):
            drone, kind, text = disturbance_words(disturbance)
            severity = Severity.WARNING if kind == "motor" else Severity.INFO
            self._add(time_ns, drone, kind, text, severity=severity)
            if kind == "battery replaced":
                self._low.discard(drone)
        elif "checkpoint" in change:
            text = "a checkpoint was loaded: times jump"
            self._add(time_ns, "", "checkpoint", text, severity=Severity.WARNING)
        elif not change.keys() & {"reset", "request", "pushed"}:
            self._note_moves(time_ns, change)

    def _note_moves(self, time_ns: int, change: Mapping[str, Any]) -> None:
        """Note drones that a user has moved, compared with their last recorded places."""
        frame = self._frame
        elapsed = abs(time_ns - self._frame_ns)
        if frame is None or elapsed > _NEAR:
            return
        before = dict(zip(frame.names, frame.position))
        for name, pos in zip(change["names"], change["state"]["pos"]):
            now = np.array(pos, float)
            flown = 0.0 if name not in before else float(np.linalg.norm(now - before[name]))
            if flown > _MOVED + _FASTEST * elapsed * 1e-9:
                text = f"moved to {place(now.tolist())} m by hand"
                self._add(time_ns, str(name), "moved", text)

    def _take_status(self, message: Message) -> None:
        first, *others = deserialised(message.data, DiagnosticArray).status
        values = _values(first)
        self._note_pause(message.time_ns, is_paused=values.get("paused") == "true")
        for key, value in values.items():
            if key.startswith("battery of "):
                self._note_battery(message.time_ns, key.removeprefix("battery of "), value)
        troubles = {status.name: status.message for status in others}
        if first.level == first.ERROR:
            troubles[first.name] = first.message
        for name in sorted(troubles.keys() - self._troubles):
            if _LIES not in troubles[name]:  # it crashed, which has an event of its own
                self._note_trouble(message.time_ns, name.rpartition(": ")[2], troubles[name])
        self._troubles = set(troubles)

    def _note_trouble(self, time_ns: int, name: str, why: str) -> None:
        if self._names is not None and name in self._names:
            self._add(time_ns, name, "lost", f"lost: {why}", Group.CRASH, Severity.ERROR)
        else:
            self._add(time_ns, "", "failure", f"{name}: {why}", Group.TROUBLE, Severity.ERROR)

    def _note_pause(self, time_ns: int, *, is_paused: bool) -> None:
        """Note a pause, and its end at the time of the last paused status."""
        if is_paused and not self._is_paused:
            self._add(time_ns, "", "pause", "paused")
        if self._is_paused and not is_paused:
            self._add(self._paused_ns, "", "resume", "resumed")
        self._is_paused, self._paused_ns = is_paused, time_ns

    def _take_battery(self, message: Message) -> None:
        """Note what the sensor of a battery says."""
        drone = message.topic.removeprefix(f"{self._space}/").partition("/")[0]
        state = deserialised(message.data, BatteryState)
        if math.isfinite(state.voltage) and math.isfinite(state.percentage):
            self._note_charge(message.time_ns, drone, state.voltage, state.percentage)

    def _note_battery(self, time_ns: int, drone: str, text: str) -> None:
        found = re.fullmatch(r"(-?\d+\.?\d*) V, (\d+)%", text)
        if found is not None:
            self._note_charge(time_ns, drone, float(found[1]), int(found[2]) / 100)

    def _note_charge(self, time_ns: int, drone: str, volts: float, charge: float) -> None:
        self.batteries.setdefault(drone, []).append((time_ns, volts, charge))
        if charge < LOW and drone not in self._low:
            self._low.add(drone)
            words = f"battery low: {volts:.2f} V, {charge:.0%} of its charge left"
            self._add(time_ns, drone, "battery low", words, Group.BATTERY, Severity.WARNING)

    def _take_command(self, message: Message) -> None:
        path, _, name = message.topic.rpartition("/")
        if drone := self._drone_of(path):
            text = message_words(name, self._types[message.topic], message.data)
            self._add(message.time_ns, drone, name, f"{name}: {text}", Group.COMMAND)

    def _take_wrench(self, message: Message) -> None:
        force = deserialised(message.data, WrenchStamped).wrench.force
        if is_push(force):
            drone = self._drone_of(message.topic.rpartition("/")[0])
            text = f"pushed with {place(xyz(force))} N"
            self._add(message.time_ns, drone, "push", text)

    def _take_plan(self, message: Message) -> None:
        poses = deserialised(message.data, PathMessage).poses
        if poses:
            drone = self._drone_of(message.topic.rpartition("/")[0])
            text = f"a new course to {place(xyz(poses[-1].pose.position))} m"
            self._add(message.time_ns, drone, "course", text, Group.COMMAND)

    def _take_log(self, message: Message) -> None:
        line = deserialised(message.data, Rosout)
        own = self._node.removeprefix("/").replace("/", ".")
        text = line.msg if line.name == own else f"{line.name}: {line.msg}"
        severity = Severity.INFO
        if line.level >= 30:  # as in rcl_interfaces/msg/Log, whose type differs between versions
            severity = Severity.ERROR if line.level >= 40 else Severity.WARNING
        self._add(message.time_ns, "", "log", text, Group.LOG, severity)

    def _drone_of(self, path: str) -> str:
        """Return the drone that a namespace belongs to; empty if none."""
        name = path.removeprefix(f"{self._space}/")
        return "" if "/" in name else name


def _values(status: Any) -> dict[str, str]:
    return {pair.key: pair.value for pair in status.values}


def _is_near(time_ns: int, times: Iterable[int]) -> bool:
    return any(abs(time_ns - other) <= _NEAR for other in times)
