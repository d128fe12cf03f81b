"""Alarms of a simulation: what is wrong, since when, until when, and what helps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

RESET, LAND = "Reset", "Land"
"""What helps a drone, as its buttons are labelled."""

_CRASHED = "crashed"
_DOWN = (_CRASHED, "locked")  # states of flight of which a drone is reset
_IN_AIR = ("taking off", "flying", "landing")
_LASTING = 15.0  # s of wall time for which something is told that is over when it is reported
_FLEETING = {
    "upside down": "",
    "off course": "",
    "hit": "",
    "no setpoint": "",
    "disarmed": "",
    "battery empty": LAND,
}
"""Kinds of events that are told for a while, and what helps."""
_OF_MANY = {"hit": "hit something", "no setpoint": "no setpoints"}  # where the kind is no phrase
_LOW, _LOW_TEXT = 0.2, "the battery is low"  # charge of a battery
_MOST, _MOST_KEPT, _MOST_NAMES = 3, 1000, 4  # told at once, kept, and named in one alarm
_LONGEST = 300  # characters of a kind


class Alarm(NamedTuple):
    """The same trouble of one or several drones, or parts of the simulator."""

    kind: str
    """What is wrong; no other alarm has the same."""
    ids: tuple[str, ...]
    """One for each part, the same while the same is wrong with it."""
    time_ns: int | None
    """Simulated time at which it happened last; None if it is older than the page."""
    text: str
    parts: tuple[str, ...] = ()
    """Their names."""
    remedy: str = ""
    """What helps each part: `RESET` or `LAND`; empty: nothing here."""


class _Trouble(NamedTuple):
    """Something that is wrong with one part."""

    part: str
    kind: str
    time_ns: int | None
    text: str
    remedy: str

    @property
    def id(self) -> str:
        return f"{self.part} {self.kind} {self.time_ns}"


class Alarms:
    """What is wrong now. All methods are thread-safe.

    Args:
        clock: Returns the wall time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._crashes: dict[str, _Trouble] = {}  # by drone
        # By drone and kind, with the wall time.
        self._fleeting: dict[tuple[str, str], tuple[_Trouble, float]] = {}
        self._lasting: dict[str, _Trouble] = {}  # by the part
        self._status_ns: int | None = None  # time of the latest status
        self._lock = threading.Lock()

    def note_event(self, time_ns: int, drone: str, kind: str, text: str) -> None:
        """Note a message of ~/flight_events."""
        with self._lock:
            if kind == _CRASHED and len(self._crashes) < _MOST_KEPT:
                self._crashes[drone] = _Trouble(drone, kind, time_ns, text, RESET)
            elif kind in _FLEETING and len(self._fleeting) < _MOST_KEPT:
                trouble = _Trouble(drone, kind, time_ns, text, _FLEETING[kind])
                self._fleeting[drone, kind] = trouble, self._clock()

    def note_status(
        self,
        time_ns: int,
        troubles: Mapping[str, str],
        charges: Mapping[str, float],
        states: Mapping[str, str],
    ) -> None:
        """Note a message of ~/status.

        Args:
            time_ns: Its time [ns]. If it is earlier than before, as when a checkpoint was loaded,
                only what this message tells is wrong.
            troubles: What is wrong now, by the name of the drone or the part.
            charges: Charge of each drone that has a battery, 0 to 1.
            states: State of flight of each drone.
        """
        # A part, what is wrong with it, and what helps.
        now = {
            name: (state, RESET) if state in _DOWN else (text, RESET if state else "")
            for name, text in troubles.items()
            for state in [states.get(name, "")]
        }
        for drone, charge in charges.items():
            if charge < _LOW:
                remedy = LAND if states.get(drone) in _IN_AIR else RESET
                now.setdefault(drone, (_LOW_TEXT, remedy))
        with self._lock:
            before, self._status_ns = self._status_ns, time_ns
            is_back = before is not None and time_ns < before
            since = None if before is None or is_back else time_ns
            if is_back:
                self._crashes, self._fleeting, self._lasting = {}, {}, {}
            self._lasting = {
                name: self._crashes.get(name) or self._known(name, kind, remedy, since)
                for name, (kind, remedy) in now.items()
            }
            # The status may be older than the event.
            self._crashes = {
                drone: crash
                for drone, crash in self._crashes.items()
                if drone in troubles or (crash.time_ns or 0) >= time_ns
            }

    def _known(self, name: str, kind: str, remedy: str, since: int | None) -> _Trouble:
        known = self._lasting.get(name)
        is_same = known is not None and known.kind == kind
        return _Trouble(name, kind, known.time_ns if known and is_same else since, kind, remedy)

    def note_reset(self, drones: Collection[str]) -> None:
        """Note a reset of drones, which ends their alarms."""
        with self._lock:
            for drone in drones:
                self._crashes.pop(drone, None)
                self._lasting.pop(drone, None)
            for key in [key for key in self._fleeting if key[0] in drones]:
                del self._fleeting[key]

    def now(self) -> list[Alarm]:
        """Return the alarms, the worst first; the last of many counts the others."""
        oldest = self._clock() - _LASTING
        with self._lock:
            for key in [key for key, (_, time) in self._fleeting.items() if time < oldest]:
                del self._fleeting[key]
            lasting = (*self._crashes.values(), *self._lasting.values())
            fleeting = [
                trouble
                for (drone, _), (trouble, _) in self._fleeting.items()
                if drone not in self._crashes
            ]
        groups: dict[tuple[str, str], dict[str, _Trouble]] = {}  # by kind and remedy
        for trouble in (*lasting, *fleeting):
            groups.setdefault((trouble.kind, trouble.remedy), {})[trouble.id] = trouble
        alarms = [_alarm(list(group.values())) for group in groups.values()]
        if more := alarms[_MOST:]:
            text = f"and {len(more)} more, see the log"
            alarms[_MOST:] = [Alarm("more", (text,), None, text)]
        return alarms

    @property
    def crashed(self) -> bool:
        """Whether a drone lies where it has crashed."""
        return bool(self._crashes)


def _alarm(troubles: list[_Trouble]) -> Alarm:
    """Return the alarm for the same trouble of several parts, or of one."""
    first, *others = troubles
    times = [trouble.time_ns for trouble in troubles if trouble.time_ns is not None]
    names = [trouble.part for trouble in troubles[:_MOST_NAMES]]
    if more := len(troubles) - len(names):
        names.append(f"{more} more")
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return Alarm(
        f"{first.kind} {first.remedy}".strip()[:_LONGEST],
        tuple(trouble.id for trouble in troubles),
        max(times, default=None),
        f"{listed}: {_OF_MANY.get(first.kind, first.kind) if others else first.text}",
        tuple(trouble.part for trouble in troubles),
        first.remedy,
    )
