"""Explanations of events: what the file says about the seconds before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from crazyflow_ros.drones import rotors_of
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.ros.messages import NS
from crazyflow_ros.view.replay.event_words import motor, place
from crazyflow_ros.view.replay.events import Event, Group, Severity
from crazyflow_ros.view.replay.recorded_samples import RecordedSamples
from crazyflow_ros.view.replay.run import Run

BEFORE = 5.0
"""Seconds before an event that explain it."""

_MOST = 3000  # frames: all of them, up to 600 a second
_CHAIN = 8  # events before, which are listed
_RECENT = 3.0  # s, from a hit to the crash that it explains: a fall from a great height
_LAST = 1.0  # s, over which rotors are judged
_LIMIT = 0.985  # of the greatest speed of a rotor
_WEAK = 0.8  # of the speed of the other rotors
_OFTEN = 0.25  # share of time at the limit
_TILTED, _LOST = 60.0, 0.3  # ° and m, beyond which a drone is tilted and off its course
_EMPTY = 0.05  # of a battery's charge
_NEAR, _BELOW = 0.5, 1.2  # m beside and below another drone, where its downwash is felt
_WINDY = 3.0  # m/s
_ENDS = frozenset(("emergency", "disarm", "stop", "switch off"))


@dataclass(frozen=True)
class Fact:
    """A line of an explanation."""

    label: str
    text: str
    is_bad: bool = False
    """Whether it is out of the ordinary."""


@dataclass
class Explanation:
    """What led to an event."""

    time_ns: int
    drone: str
    kind: str
    text: str
    """What happened."""
    cause: str = ""
    """The most likely cause in a sentence; empty for an event that needs none."""
    facts: list[Fact] = field(default_factory=list)
    before: list[Event] = field(default_factory=list)
    """What else happened to the drone in the seconds before, in order."""

    def as_json(self, zero_ns: int) -> dict[str, Any]:
        """Return the explanation for JSON, with times in seconds after `zero_ns` [ns]."""
        before = [
            {"t": (event.time_ns - zero_ns) / NS, "group": event.group, "text": event.text}
            | {"ago": (self.time_ns - event.time_ns) / NS}
            for event in self.before
        ]
        content = asdict(self) | {"t": (self.time_ns - zero_ns) / NS, "before": before}
        del content["time_ns"]
        return content


def explain(run: Run, event: Event, drone: str) -> Explanation:
    """Explain an event with the data of the file.

    Args:
        run: The run, after its `scan`.
        event: One of its events.
        drone: The drone to explain an event for that concerns all drones.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is damaged.
    """
    name = event.drone or drone
    past = [
        other
        for other in run.events
        if other.time_ns <= event.time_ns and other is not event and other.drone in (name, "")
        if other.group is not Group.LOG
    ]
    since = max((other.time_ns + 1 for other in past if other.kind == "reset"), default=0)
    begin = max(event.time_ns - round(BEFORE * NS), run.recording.begin_ns, since)
    samples = run.read(begin, event.time_ns, _MOST)
    result = Explanation(event.time_ns, name, event.kind, event.text)
    result.before = [other for other in past if other.time_ns >= begin][-_CHAIN:]
    life = [other for other in past if other.time_ns >= since]
    story = _Story(run, event, life, samples, name)
    result.facts = story.facts()
    if event.group is Group.CRASH or event.severity is not Severity.INFO:
        result.cause = story.cause()
    return result


class _Story:
    """What is known about a drone before an event."""

    def __init__(
        self, run: Run, event: Event, life: Sequence[Event], samples: RecordedSamples, drone: str
    ) -> None:
        self._run, self._event, self._life = run, event, life
        self._samples, self._drone, self._now = samples, drone, event.time_ns
        self._track = samples.of(drone)
        self._weak: dict[int, float] = {}  # share of the others' speed, by motor
        self._saturated = np.zeros(4)
        if len(self._track.times_ns):
            self._judge_rotors()

    # The lines.

    def facts(self) -> list[Fact]:
        """Return the lines of the explanation that the file has data for."""
        lines: list[Callable[[], Fact | None]] = [self._command, self._contact]
        if len(self._track.times_ns):
            lines += [self._height, self._speed, self._tilt, self._error, self._rotors]
        lines += [self._motors, self._battery, self._wind, self._push, self._neighbour]
        return [fact for line in lines if (fact := line()) is not None]

    def _last_command(self) -> Event | None:
        commands = [other for other in self._life if other.group is Group.COMMAND]
        return commands[-1] if commands else None

    def _ago(self, time_ns: int) -> str:
        seconds = (self._now - time_ns) / NS
        return "at this moment" if seconds < 0.005 else f"{seconds:.2f} s before"

    def _command(self) -> Fact:
        command = self._last_command()
        if command is None:
            return Fact("Last command", "none in the file")
        text = f"{command.text}, {self._ago(command.time_ns)}"
        return Fact("Last command", text, command.kind in _ENDS)

    def _hit(self) -> Event | None:
        """Return the first of the recent contacts."""
        since = self._now - _RECENT * NS
        hits = (one for one in self._life if one.group is Group.HIT and one.time_ns >= since)
        return next(hits, None)

    def _contact(self) -> Fact | None:
        hit = self._hit()
        if hit is None:
            return None
        speed = self._speed_before(hit.time_ns)
        how = "" if speed is None else f" at {speed:.2f} m/s"
        return Fact("Contact", f"{_partner(hit)}{how}, {self._ago(hit.time_ns)}", True)

    def _speed_before(self, time_ns: int) -> float | None:
        """Return the greatest speed [m/s] shortly before a contact, which is detected late."""
        rows = (self._track.times_ns > time_ns - NS // 5) & (self._track.times_ns <= time_ns)
        return float(self._track.speed[rows].max()) if rows.any() else None

    def _height(self) -> Fact:
        z = self._track.pos[:, 2]
        text = f"{z[-1]:.2f} m at {place(self._track.pos[-1])}"
        return Fact("Height", text + self._peak(z, "m"))

    def _speed(self) -> Fact:
        speed = self._track.speed
        return Fact("Speed", f"{speed[-1]:.2f} m/s" + self._peak(speed, "m/s"))

    def _peak(self, values: np.ndarray, unit: str) -> str:
        """Return the greatest value and its time as text, if it is clearly above the last one."""
        most = int(np.argmax(values))
        if values[most] <= values[-1] + 0.1:
            return ""
        return f"; {values[most]:.2f} {unit} {self._ago(int(self._track.times_ns[most]))}"

    def _tilt(self) -> Fact:
        tilt = self._track.tilt
        text = f"{tilt[-1]:.0f}°"
        since = self._since(tilt > _TILTED)
        if since is not None:
            text += f"; beyond {_TILTED:.0f}° from {self._ago(since)} on"
        elif tilt.max() > tilt[-1] + 5:
            text += f"; at most {tilt.max():.0f}° in the {BEFORE:.0f} s before"
        return Fact("Tilt", text, since is not None)

    def _error(self) -> Fact | None:
        error = self._track.error
        known = np.isfinite(error)
        if not known.any():
            return None
        last = int(np.flatnonzero(known)[-1])
        text = f"{error[last]:.2f} m from its course"
        if last < len(error) - 1:
            text += f" {self._ago(int(self._track.times_ns[last]))}, the last time that it had one"
        since = self._since(np.nan_to_num(error) > _LOST)
        if since is not None:
            most = np.nanmax(error[self._track.times_ns >= since])
            text += f"; beyond {_LOST:.1f} m from {self._ago(since)} on, at most {most:.2f} m"
        return Fact("Tracking error", text, since is not None)

    def _since(self, mask: np.ndarray) -> int | None:
        """Return the time at which a mask last became true [ns]; None if it never was."""
        begins = np.flatnonzero(mask & ~np.append(False, mask[:-1]))
        return int(self._track.times_ns[begins[-1]]) if len(begins) else None

    def _judge_rotors(self) -> None:
        """Compare the rotors with their greatest speed and with each other, while they turned."""
        speeds = np.abs(self._track.rotors)
        greatest = _greatest_speed(self._run.recording.model)
        rows = self._track.times_ns >= self._now - _LAST * NS
        rows &= speeds.max(axis=1) > 0.3 * greatest
        if not rows.any():
            return
        self._saturated = (speeds[rows] > _LIMIT * greatest).mean(axis=0)
        means = speeds[rows].mean(axis=0)
        for number, mean in enumerate(means.tolist()):
            share = mean / max(float(np.delete(means, number).mean()), 1e-6)
            if share < _WEAK:
                self._weak[number] = share

    def _rotors(self) -> Fact | None:
        rotors = np.abs(self._track.rotors)
        if not rotors.any():
            return None
        text = f"{', '.join(f'{speed:.0f}' for speed in rotors[-1].tolist())} rad/s"
        busiest = int(np.argmax(self._saturated))
        if self._saturated[busiest] > 0.02:
            share = self._saturated[busiest]
            text += f"; {motor(busiest)} at its limit {share:.0%} of the last {_LAST:.0f} s"
        for number, share in self._weak.items():
            text += f"; {motor(number)} turned at {share:.0%} of the others"
        is_bad = bool(self._weak) or bool(self._saturated[busiest] > _OFTEN)
        return Fact("Rotors", text, is_bad)

    def _failures(self) -> list[Event]:
        """Return the motor failures in force."""
        latest: dict[str, Event] = {}
        for other in self._life:
            if other.kind == "motor" and other.drone == self._drone:
                latest[other.text.split(" gives ")[0].split(" is ")[0]] = other
        return [other for other in latest.values() if " gives " in other.text]

    def _motors(self) -> Fact | None:
        failures = [f"{one.text}, from {self._ago(one.time_ns)} on" for one in self._failures()]
        return Fact("Motors", "; ".join(failures), True) if failures else None

    def _charge(self) -> tuple[int, float, float] | None:
        """Return time [ns], voltage [V] and charge of the battery, as last known."""
        known = self._run.batteries.get(self._drone, ())
        return max((entry for entry in known if entry[0] <= self._now), default=None)

    def _battery(self) -> Fact | None:
        entry = self._charge()
        if entry is None:
            return None
        time_ns, volts, charge = entry
        text = f"{volts:.2f} V, {charge:.0%} left, {self._ago(time_ns)}"
        return Fact("Battery", text, charge < _EMPTY)

    def _wind_now(self) -> tuple[float, str]:
        """Return the wind's speed [m/s] and a text about it, empty without wind."""
        winds = [one for one in self._run.events if one.kind == "wind"]
        if winds := [one for one in winds if one.time_ns <= self._now]:
            text = winds[-1].text
            numbers = text[text.find("(") + 1 : text.find(")")].split(",")
            speed = float(np.linalg.norm([float(number) for number in numbers]))
            return speed, "" if speed == 0 and "gusts" not in text else text
        mean = self._run.recording.parameters.get("wind", ())
        gusts = self._run.recording.parameters.get("gust_intensity", 0.0)
        try:
            speed, gusts = float(np.linalg.norm(np.array(mean, float))), float(gusts)
            text = f"mean wind {place(mean)} m/s" + (f", gusts of {gusts:.3g} m/s" if gusts else "")
        except (TypeError, ValueError):
            return 0.0, ""
        return speed, text if speed or gusts else ""

    def _wind(self) -> Fact | None:
        speed, text = self._wind_now()
        return Fact("Wind", text, speed > _WINDY) if text else None

    def _push(self) -> Fact | None:
        pushes = [one for one in self._life if one.kind in ("push", "moved")]
        if not pushes or self._now - pushes[-1].time_ns > BEFORE * NS:
            return None
        return Fact("Push", f"{pushes[-1].text}, {self._ago(pushes[-1].time_ns)}", True)

    def _above(self) -> tuple[str, np.ndarray] | None:
        """Return the nearest drone beside or above this one, and its relative position [m]."""
        if not self._samples.frames or self._drone not in self._samples.frames[-1].names:
            return None
        frame = self._samples.frames[-1]
        own = frame.names.index(self._drone)
        away = frame.position - frame.position[own]
        beside = np.hypot(away[:, 0], away[:, 1])
        near = (beside < _NEAR) & (away[:, 2] > -_NEAR) & (away[:, 2] < _BELOW)
        near[own] = False
        if not near.any():
            return None
        row = int(np.argmin(np.where(near, np.linalg.norm(away, axis=1), np.inf)))
        return frame.names[row], away[row]

    def _neighbour(self) -> Fact | None:
        found = self._above()
        if found is None:
            return None
        name, away = found
        beside = float(np.hypot(away[0], away[1]))
        where = "above" if away[2] > 0 else "below"
        text = f"{name} is {beside:.2f} m beside and {abs(away[2]):.2f} m {where}"
        return Fact("Neighbour", text, bool(away[2] > 0.1))

    # The sentence.

    def cause(self) -> str:
        """Return the most likely cause in a sentence."""
        if self._event.kind == "lost":
            return "The simulation could not compute its motion any more."
        if self._event.kind == "refused":
            return ""  # the event says why
        command = self._last_command()
        if command is not None and command.kind in _ENDS:
            return f"Its rotors were stopped: {command.text}, {self._ago(command.time_ns)}."
        if failures := self._failures():
            last = failures[-1]
            return f"{last.text[0].upper()}{last.text[1:]}, from {self._ago(last.time_ns)} on."
        hit = self._hit()
        if hit is not None:
            speed = self._speed_before(hit.time_ns)
            how = "" if speed is None else f" at {speed:.2f} m/s,"
            goal = "" if command is None else f"; its last command: {command.text}"
            return f"It hit {_partner(hit)}{how} {self._ago(hit.time_ns)}{goal}."
        return self._cause_in_the_air()

    def _cause_in_the_air(self) -> str:
        charge, found = self._charge(), self._above()
        if charge is not None and charge[2] < _EMPTY:
            return f"Its battery was empty: {charge[1]:.2f} V, {charge[2]:.0%} left."
        push = self._push()
        if push is not None:
            return f"It was {push.text}."
        if self._event.kind == "hit":
            command = self._last_command()
            return "" if command is None else f"Its last command: {command.text}."
        if self._weak:
            number, share = min(self._weak.items(), key=lambda item: item[1])
            return f"{motor(number).capitalize()} turned at {share:.0%} of the speed of the others."
        if found is not None and found[1][2] > 0.1:
            return f"It flew {found[1][2]:.2f} m below {found[0]}, in its downwash."
        busiest = int(np.argmax(self._saturated))
        if self._saturated[busiest] > _OFTEN:
            share = self._saturated[busiest]
            return f"{motor(busiest).capitalize()} was at its limit {share:.0%} of the last second."
        speed, text = self._wind_now()
        if speed > _WINDY:
            return f"The wind was strong: {text}."
        return "The file names no cause; the lines below say what led to it."


def _partner(hit: Event) -> str:
    """Return what a drone hit: the name in the text of the event."""
    return hit.text.removeprefix("hit ").split(" at (")[0]


def _greatest_speed(model: str) -> float:
    """Return the speed of a rotor at its greatest thrust [rad/s]."""
    return float(rotors_of(model).vel_limits[1]) * RPM
