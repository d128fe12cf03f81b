"""What is wrong with a simulation, from when on and until when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

_CRASHED = "crashed"
_LASTING = 15.0  # s of wall time for which something is told that is over when it is reported
_FLEETING = ("upside down", "off course", "hit", "no setpoint", "battery empty")
_LOW = 0.2  # charge of a battery
_MOST, _MOST_KEPT = 3, 1000  # told at once, and kept


class Alarm(NamedTuple):
    """Something that is wrong."""

    id: str
    """The same while the same is wrong."""
    time_ns: int | None
    """Simulated time at which it happened; None if it is older than the page."""
    text: str


class Alarms:
    """What is wrong now. All methods are thread-safe.

    Args:
        clock: Returns the wall time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._crashes: dict[str, Alarm] = {}  # by drone
        # By drone and kind, with the wall time.
        self._fleeting: dict[tuple[str, str], tuple[Alarm, float]] = {}
        self._lasting: dict[str, Alarm] = {}  # by the part
        self._is_first = True
        self._lock = threading.Lock()

    def note_event(self, time_ns: int, drone: str, kind: str, text: str) -> None:
        """Note a message of ~/flight_events; a crash says what has led to it."""
        alarm = Alarm(f"{drone} {kind} {time_ns}", time_ns, f"{drone}: {text}")
        with self._lock:
            if kind == _CRASHED and len(self._crashes) < _MOST_KEPT:
                self._crashes[drone] = alarm
            elif kind in _FLEETING and len(self._fleeting) < _MOST_KEPT:
                self._fleeting[drone, kind] = alarm, self._clock()

    def note_status(
        self, time_ns: int, troubles: Mapping[str, str], charges: Mapping[str, float]
    ) -> None:
        """Note a message of ~/status.

        Args:
            time_ns: Its time [ns].
            troubles: What is wrong now, by the name of the drone or the part.
            charges: Charge of each drone that has a battery, 0 to 1.
        """
        now = {name: f"{name}: {text}" for name, text in troubles.items()}
        for drone, charge in charges.items():
            if charge < _LOW:
                now.setdefault(drone, f"{drone}: the battery is low")
        with self._lock:
            since = None if self._is_first else time_ns
            self._is_first = False
            self._lasting = {
                name: self._crashes.get(name) or self._known(name, text, since)
                for name, text in now.items()
            }
            # The status may be older than the event.
            self._crashes = {
                drone: crash
                for drone, crash in self._crashes.items()
                if drone in troubles or (crash.time_ns or 0) >= time_ns
            }

    def _known(self, name: str, text: str, since: int | None) -> Alarm:
        known = self._lasting.get(name)
        return known if known and known.text == text else Alarm(f"{text} {since}", since, text)

    def note_reset(self, drones: Collection[str]) -> None:
        """Note that drones were reset: what was wrong with them is over."""
        with self._lock:
            for drone in drones:
                self._crashes.pop(drone, None)
                self._lasting.pop(drone, None)
            for key in [key for key in self._fleeting if key[0] in drones]:
                del self._fleeting[key]

    def now(self) -> list[Alarm]:
        """Return what is wrong, the worst first: at most a few, the last one with the number."""
        oldest = self._clock() - _LASTING
        with self._lock:
            for key in [key for key, (_, time) in self._fleeting.items() if time < oldest]:
                del self._fleeting[key]
            lasting = (*self._crashes.values(), *self._lasting.values())
            fleeting = [
                alarm
                for (drone, _), (alarm, _) in self._fleeting.items()
                if drone not in self._crashes
            ]
        alarms = list({alarm.id: alarm for alarm in (*lasting, *fleeting)}.values())
        if more := alarms[_MOST:]:
            text = f"and {len(more)} more, see the log"
            alarms[_MOST:] = [Alarm(text, None, text)]
        return alarms

    @property
    def crashed(self) -> bool:
        """Whether a drone lies where it has crashed."""
        return bool(self._crashes)
