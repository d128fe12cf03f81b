"""~/status and /diagnostics about the simulation, and ~/reset_event, a message after each reset."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from crazyflow_ros.drones import load_battery
from crazyflow_ros.flight import FlightState
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.runtime import Door, ResetEvent, Statistics

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_PERIOD = 1.0  # s of wall time
_RECENT = 5.0  # s of wall time; from then on a failure is a warning
_TOO_SLOW = 0.95  # share of the requested factor

RecorderStatus = Callable[[], tuple[int, int, str]]
"""Returns the numbers of messages recorded and left out, and an error of the recorder."""


class StatusTopic:
    """Diagnostics of the simulation, of the door and of the recorder, if there are any."""

    def __init__(self, simulator: Host, door: Door | None, recorder: RecorderStatus | None) -> None:
        self._physics, self._door = simulator.physics, door
        self._answers, self._guard = simulator.answers, simulator.guard
        self._recorder = recorder
        self._drone_model = simulator.parameters.drone_model
        self._by_door = simulator.parameters.by_door
        self._name = f"{simulator.get_fully_qualified_name()}: simulation"
        self._publishers = [
            simulator.create_publisher(DiagnosticArray, topic, 10, recorded=topic == "~/status")
            for topic in ("~/status", "/diagnostics")  # the latter for rqt_robot_monitor
        ]
        simulator.regular_calls.add(self._publish, _PERIOD)

    def _publish(self) -> None:
        now = self._physics.statistics()
        message = DiagnosticArray(status=[self._status(now), *self._troubles(now)])
        message.header.stamp = time_of(now.time_ns)
        for publisher in self._publishers:
            publisher.publish(message)

    def _troubles(self, now: Statistics) -> list[DiagnosticStatus]:
        node = self._name.removesuffix(": simulation")
        lost = [
            DiagnosticStatus(level=DiagnosticStatus.ERROR, name=f"{node}: {drone}", message=why)
            for drone, why in now.faults.items()
        ]
        oldest = time.monotonic() - _RECENT
        failing = [
            DiagnosticStatus(
                level=DiagnosticStatus.ERROR if failure.time > oldest else DiagnosticStatus.WARN,
                name=f"{node}: {name}",
                message=f"has failed, the latest time with {failure.error}",
                values=[KeyValue(key="count", value=str(failure.count))],
            )
            for name, failure in now.failures.items()
        ]
        down = [
            DiagnosticStatus(
                level=DiagnosticStatus.ERROR,
                name=f"{node}: {drone}",
                message=f"{state}; it lies there until it is reset",
            )
            for drone, state in self._physics.commands.states.items()
            if state.needs_reset and drone not in now.faults
        ]
        return lost + down + failing

    def _status(self, now: Statistics) -> DiagnosticStatus:
        slow = 0 < now.achieved_factor < _TOO_SLOW * now.requested_factor and not now.paused
        text = "paused" if now.paused else f"real-time factor {now.achieved_factor:.2f}"
        if slow:
            text += f", slower than the requested {now.requested_factor:g}"
        values = {
            "requested_factor": f"{now.requested_factor:g}",
            "achieved_factor": f"{now.achieved_factor:.4g}",
            "overruns": str(now.overruns),
            "stalls": str(now.stalls),
            "tick": str(now.tick),
            "epoch": str(now.epoch),
            "paused": str(now.paused).lower(),
            "refused_inputs": str(self._guard.refused),
            "failed_inputs": str(self._guard.failed),
            "resent_answers": str(self._answers.resent),
        }
        told = self._physics.commands.states
        states = Counter(map(str, told.values()))
        idle = len(set(self._physics.snapshot.names) - {*self._by_door} - told.keys())
        states["idle"] += idle
        values["flight_states"] = ", ".join(f"{n} {state}" for state, n in sorted(states.items()))
        values |= self._drones()
        if self._door is not None:
            door = self._door.status()
            values |= {
                "door": self._door.name,
                "door_drones": ", ".join(self._by_door),
                "controlled_drones": ", ".join(door.attached),
                "control_cycles": str(door.cycles),
                "control_timeouts": str(door.timeouts),
                "refused_commands": str(door.refused),
            }
        warn = slow
        if self._recorder is not None:
            written, dropped, error = self._recorder()
            values |= {"recorded_messages": str(written), "unrecorded_messages": str(dropped)}
            values["record_error"] = error
            warn |= bool(dropped or error)
        level = DiagnosticStatus.WARN if warn else DiagnosticStatus.OK
        if now.stalled:
            level, text = DiagnosticStatus.ERROR, f"no progress, hangs in: {now.stalled}"
        return _status_of(self._name, level, text, values)

    def _drones(self) -> dict[str, str]:
        now, told = self._physics.snapshot, self._physics.commands.states
        states = dict.fromkeys(now.names, str(FlightState.idle))
        if self._door is not None:
            states |= dict.fromkeys(self._by_door, f"obeys {self._door.name}")
        states |= {name: str(told[name]) for name in now.names if name in told}
        values = {f"state of {name}": state for name, state in states.items()}
        if now.battery is not None:
            capacity = load_battery(self._drone_model)["capacity"]
            for name, (volts, _, drawn) in zip(now.names, now.battery.tolist()):
                left = max(0.0, 1 - drawn / capacity)
                values[f"battery of {name}"] = f"{volts:.2f} V, {left:.0%}"
        return values


class ResetEventTopic:
    """Publishes resets in the physics thread, before any message of a later state."""

    def __init__(self, simulator: Host) -> None:
        self._name = f"{simulator.get_fully_qualified_name()}: reset"
        self._publisher = simulator.create_publisher(DiagnosticArray, "~/reset_event", 10)
        simulator.physics.news.on_reset(self._publish)

    def _publish(self, event: ResetEvent) -> None:
        scopes = ", ".join(scope.name or "" for scope in event.scope)
        values = {
            "scope": scopes,
            "drones": ", ".join(event.drones),
            "epoch": str(event.snapshot.epoch),
            "tick": str(event.snapshot.tick),
        }
        status = _status_of(self._name, DiagnosticStatus.OK, f"{scopes} reset", values)
        message = DiagnosticArray(status=[status])
        message.header.stamp = time_of(event.snapshot.time_ns)
        self._publisher.publish(message)


def _status_of(name: str, level: bytes, text: str, values: dict[str, str]) -> DiagnosticStatus:
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticStatus(
        name=name, level=level, message=text, hardware_id="crazyflow_ros", values=pairs
    )
