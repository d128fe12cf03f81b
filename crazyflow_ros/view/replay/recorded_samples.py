"""States of a recorded flight over a span of time, thinned out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from nav_msgs.msg import Path as PathMessage

from crazyflow_ros.checks.mcap_file import Choice
from crazyflow_ros.checks.mcap_records import Message
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.ros.messages import NS, deserialised, nanoseconds, xyz
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.messages import FrameReader
from crazyflow_ros.view.recording import Recording, every
from crazyflow_ros.view.replay.events import EventReader

_MOST_PLANS = 5000  # of all drones together


class RecordedPlan(NamedTuple):
    """The course of a drone from some time on; no points if it has none."""

    time_ns: int
    """Time of its publication [ns]."""
    times_ns: np.ndarray
    """Of the points [ns], shape (K,)."""
    pos: np.ndarray
    """[m], shape (K, 3)."""


@dataclass
class RecordedSamples:
    """States and courses. All times are those in the file [ns]."""

    times_ns: list[int] = field(default_factory=list)
    """Of the frames."""
    frames: list[Frame] = field(default_factory=list)
    plans: dict[str, list[RecordedPlan]] = field(default_factory=dict)
    """By drone, in the order of their times."""

    def of(self, drone: str) -> RecordedTrack:
        """Return the states of one drone."""
        found = [
            (time_ns, frame, frame.names.index(drone))
            for time_ns, frame in zip(self.times_ns, self.frames)
            if drone in frame.names
        ]

        def column(name: str, size: int) -> np.ndarray:
            rows = [getattr(frame, name)[row] for _, frame, row in found]
            return np.array(rows, float).reshape(-1, size)

        times = np.array([time_ns for time_ns, _, _ in found], np.int64)
        return RecordedTrack(
            times,
            column("position", 3),
            column("attitude", 4),
            column("velocity", 3),
            self._rotor_speeds(found),
            self.references(drone, times),
        )

    @staticmethod
    def _rotor_speeds(found: Sequence[tuple[int, Frame, int]]) -> np.ndarray:
        """Return the speeds of the rotors, (K, n), of which the first frames may not know n."""
        rows = [frame.rotor_speed[row] for _, frame, row in found]
        speeds = np.zeros((len(rows), max(map(len, rows), default=QUADROTOR)))
        for own, row in zip(speeds, rows):
            own[: len(row)] = row
        return speeds

    def with_plans_of(self, others: RecordedSamples) -> RecordedSamples:
        """Return these states with the courses that were published before them."""
        plans = dict(self.plans)
        for drone, known in others.plans.items():
            own = plans.get(drone, [])
            first = own[0].time_ns if own else None
            plans[drone] = [plan for plan in known if first is None or plan.time_ns < first] + own
        return RecordedSamples(self.times_ns, self.frames, plans)

    def references(self, drone: str, times_ns: np.ndarray) -> np.ndarray:
        """Return the wanted positions (K, 3) [m] of a drone at times (K,) [ns]; NaN if none."""
        plans = self.plans.get(drone, [])
        told = [plan.time_ns for plan in plans]
        result = np.full((len(times_ns), 3), np.nan)
        numbers = np.array([bisect_right(told, time_ns) - 1 for time_ns in times_ns.tolist()], int)
        for number in np.unique(numbers[numbers >= 0]).tolist():
            rows, plan = numbers == number, plans[number]
            before = plans[number - 1] if number else None
            if len(plan.times_ns):
                for axis in range(3):
                    result[rows, axis] = np.interp(times_ns[rows], plan.times_ns, plan.pos[:, axis])
            elif before is not None and _is_over(before, plan.time_ns):
                result[rows] = before.pos[-1]  # it has arrived, and stays there
        return result


class RecordedTrack(NamedTuple):
    """The states of one drone over time."""

    times_ns: np.ndarray
    """[ns], shape (K,)."""
    pos: np.ndarray
    """[m] in the world, shape (K, 3)."""
    quat: np.ndarray
    """xyzw, shape (K, 4)."""
    vel: np.ndarray
    """[m/s] in the axes of the body, shape (K, 3)."""
    rotors: np.ndarray
    """[rad/s], shape (K, n)."""
    reference: np.ndarray
    """Where it should be [m], shape (K, 3); NaN if nowhere."""

    @property
    def speed(self) -> np.ndarray:
        """[m/s], shape (K,)."""
        return np.linalg.norm(self.vel, axis=1)

    @property
    def tilt(self) -> np.ndarray:
        """Angle between the drone's upward axis and the vertical [°], shape (K,)."""
        x, y = self.quat[:, 0], self.quat[:, 1]
        return np.rad2deg(np.arccos(np.clip(1 - 2 * (x * x + y * y), -1, 1)))

    @property
    def error(self) -> np.ndarray:
        """Distance from where it should be [m], shape (K,); NaN if nowhere."""
        return np.linalg.norm(self.pos - self.reference, axis=1)


def _is_over(plan: RecordedPlan, time_ns: int) -> bool:
    tolerance = 100_000_000  # ns between two publications, at least in simulated time
    return len(plan.times_ns) > 0 and bool(plan.times_ns[-1] <= time_ns + tolerance)


def read_samples(
    recording: Recording,
    begin_ns: int,
    end_ns: int,
    most: int,
    events: EventReader | None = None,
    tell: Callable[[int], bool] = lambda _: True,
) -> RecordedSamples:
    """Read a span of a recording once.

    Args:
        recording: The recording; its reading position does not change.
        begin_ns: Begin of the span [ns].
        end_ns: Its end [ns].
        most: Largest number of frames.
        events: Collects the events of the span.
        tell: Receives the time [ns] after each second of the file; False ends the reading.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is damaged.
    """
    period = max((end_ns - begin_ns) // most + 1, 1)
    topics: dict[str, Choice | None] = {} if events is None else dict(events.topics)
    topics |= {recording.states: every(period), recording.rotors: every(period)}
    plan_topics = {
        topic: topic.split("/")[-2]
        for topic, kind in recording.file.types.items()
        if topic.endswith("/plan") and kind == "nav_msgs/msg/Path"
    }
    for topic in plan_topics:
        topics.setdefault(topic, every(max(period // 2, 1)) if period > 2e8 else None)
    samples = RecordedSamples()
    states = _StateReader(samples, events)
    told, n_plans = begin_ns, 0
    for message in recording.file.messages(topics, begin_ns, end_ns):
        if message.time_ns > told + NS:
            told = message.time_ns
            if not tell(told):
                break
        if message.topic == recording.states:
            states.take_states(message)
        elif message.topic == recording.rotors:
            states.take_rotors(message)
        elif message.topic in plan_topics and n_plans < _MOST_PLANS:
            n_plans += 1
            drone = plan_topics[message.topic]
            samples.plans.setdefault(drone, []).append(_plan(message, recording))
        if events is not None:
            events.take(message)
    states.flush()
    return samples


class _StateReader:
    """Combines successive messages of states and rotor speeds of the same time into frames."""

    def __init__(self, samples: RecordedSamples, events: EventReader | None) -> None:
        self._samples, self._events, self._reader = samples, events, FrameReader()
        self._states: Message | None = None
        self._rotors: bytes | None = None

    def take_states(self, message: Message) -> None:
        self.flush()
        self._states = message

    def take_rotors(self, message: Message) -> None:
        if self._states is not None and message.time_ns > self._states.time_ns:
            self.flush()
        self._rotors = message.data

    def flush(self) -> None:
        """Add the frame of the last states."""
        if self._states is None:
            return
        time_ns, frame = self._states.time_ns, self._reader.read(self._states.data, self._rotors)
        self._states = None
        self._samples.times_ns.append(time_ns)
        self._samples.frames.append(frame)
        if self._events is not None:
            self._events.take_frame(time_ns, frame)


def _plan(message: Message, recording: Recording) -> RecordedPlan:
    path = deserialised(message.data, PathMessage)
    shift = recording.zero_ns
    if not recording.parameters:  # another recorder's times are those of the wall clock
        shift = message.time_ns - nanoseconds(path.header.stamp)
    times = [nanoseconds(pose.header.stamp) + shift for pose in path.poses]
    places = [xyz(pose.pose.position) for pose in path.poses]
    return RecordedPlan(
        message.time_ns, np.array(times, np.int64), np.array(places, float).reshape(-1, 3)
    )
