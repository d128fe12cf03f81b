"""A recorded flight with its events, states and batteries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.events import Event, EventReader, Group
from crazyflow_ros.view.replay.recorded_samples import RecordedSamples, read_samples

POINTS = 1500
"""States of the whole flight that are kept, for curves as wide as a screen."""

_RISEN_NS = 20_000_000  # ns, precision of the first take-off
_RISEN = 0.1  # m


class Run:
    """A recorded flight.

    Attributes:
        recording: As given.
        name: Name of its file.
        events: What happened, sorted by time once all is read.
        left_out: Number of events of each group that were not kept.
        overview: States of the whole flight.
        batteries: By drone, time [ns], voltage [V] and charge (0 to 1) of its battery.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.name = recording.file.path.stem
        self.events: list[Event] = []
        self.left_out: Counter[Group] = Counter()
        self.overview = RecordedSamples()
        self.batteries: dict[str, list[tuple[int, float, float]]] = {}

    def scan(self, tell: Callable[[float], bool]) -> None:
        """Read the whole file once.

        Args:
            tell: Receives the share that has been read (0 to 1) now and then, when `events` has the
                events so far; False ends the reading.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is damaged.
        """
        recording, reader = self.recording, EventReader(self.recording)
        length = max(recording.end_ns - recording.begin_ns, 1)
        self.batteries, self.left_out = reader.batteries, reader.left_out

        def note(time_ns: int) -> bool:
            self.events = list(reader.events)
            return tell((time_ns - recording.begin_ns) / length)

        self.overview = read_samples(
            recording, recording.begin_ns, recording.end_ns, POINTS, reader, note
        )
        self.events = reader.finish()
        for entries in self.batteries.values():
            entries.sort()  # those of two topics
        tell(1.0)

    def read(self, begin_ns: int, end_ns: int, most: int) -> RecordedSamples:
        """Read the states of a span [ns], `most` at most.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is damaged.
        """
        found = read_samples(self.recording, begin_ns, end_ns, most)
        return found.with_plans_of(self.overview)

    def down(self, time_ns: int) -> set[str]:
        """Return the drones that have crashed and not been reset at a time [ns]."""
        found: set[str] = set()
        for event in self.events:
            if event.time_ns > time_ns:
                break
            if event.group is Group.CRASH:
                found.add(event.drone)
            elif event.kind in ("reset", "recover"):
                found = found - {event.drone} if event.drone else set()
        return found

    def takeoff_ns(self) -> int | None:
        """Return the time at which a drone first took off [ns]; None if none did."""
        first: dict[str, float] = {}
        before = self.recording.begin_ns
        for time_ns, frame in zip(self.overview.times_ns, self.overview.frames):
            for name, z in zip(frame.names, frame.position[:, 2].tolist()):
                if z > first.setdefault(name, z) + _RISEN:
                    return self._risen_ns(name, first[name], before, time_ns)
            before = time_ns
        return None

    def _risen_ns(self, drone: str, start: float, begin_ns: int, end_ns: int) -> int:
        """Find the exact time of a take-off between two states of the overview."""
        most = max((end_ns - begin_ns) // _RISEN_NS, 1)
        track = read_samples(self.recording, begin_ns, end_ns, most).of(drone)
        for time_ns, z in zip(track.times_ns.tolist(), track.pos[:, 2].tolist()):
            if z > start + _RISEN:
                return int(time_ns)
        return end_ns
