"""What a simulator reports of itself: ~/status, ~/flight_events and ~/reset_event."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile

from crazyflow_ros.view.alarms import Alarm, Alarms
from crazyflow_ros.view.follower import Follower

_QOS = QoSProfile(depth=100)
_LATEST_NS = 2**63 - 1  # ns, that messages of ROS can have
_SILENT = 5.0  # s of wall time; a simulator reports once a second


class Reports:
    """The latest reports. All methods are thread-safe.

    Args:
        follower: The connection to the simulator.

    Attributes:
        paused: Whether time stands still.
        factor: Achieved real-time factor; None if not known yet.
        flight: State of the flight of each drone, such as `taking off`, by name.
        batteries: Charge of each drone that has a battery [%], by name.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._lock = threading.Lock()
        self.clear()
        follower.in_thread(self._subscribe)

    def clear(self) -> None:
        """Forget everything: another simulator begins."""
        with self._lock:
            self._alarms = Alarms()
            self._heard = time.monotonic()
            self.paused = False
            self.factor: float | None = None
            self.flight: dict[str, str] = {}
            self.batteries: dict[str, int] = {}

    @property
    def crashed(self) -> bool:
        """Whether a drone lies where it has crashed."""
        return self._alarms.crashed

    def alarms(self) -> list[Alarm]:
        """Return what is wrong."""
        with self._lock:
            found = self._alarms.now()
            silence = time.monotonic() - self._heard
        if silence > _SILENT:
            found.insert(0, Alarm("silent", None, "the simulator does not answer"))
        return found

    def _subscribe(self) -> None:
        node, name = self._follower.node, self._follower.name
        for kind, topic, note in (
            (DiagnosticArray, "status", self._note_status),
            (DiagnosticArray, "reset_event", self._note_reset),
            (DiagnosticStatus, "flight_events", self._note_event),
        ):
            node.create_subscription(kind, f"{name}/{topic}", note, _QOS)

    def _note_status(self, message: DiagnosticArray) -> None:
        first, *others = message.status
        values = _values(first)
        stamp = message.header.stamp
        troubles = {status.name.rpartition(": ")[2]: status.message for status in others}
        if first.level == first.ERROR:
            troubles["simulation"] = first.message
        batteries = {
            drone: int(text.rpartition(" ")[2].rstrip("%"))
            for drone, text in _of_drones(values, "battery of ").items()
        }
        factor = float(values["achieved_factor"])
        with self._lock:
            self._heard = time.monotonic()
            self.paused = values["paused"] == "true"
            self.factor = factor if math.isfinite(factor) else None
            self.flight, self.batteries = _of_drones(values, "state of "), batteries
            time_ns = stamp.sec * 10**9 + stamp.nanosec
            self._alarms.note_status(time_ns, troubles, batteries)

    def _note_reset(self, message: DiagnosticArray) -> None:
        drones = tuple(_values(message.status[0])["drones"].split(", "))
        with self._lock:
            self._alarms.note_reset(drones)

    def _note_event(self, message: DiagnosticStatus) -> None:
        values = _values(message)
        time_ns = min(max(int(values["time_ns"]), 0), _LATEST_NS)
        with self._lock:
            self._alarms.note_event(time_ns, message.name, values["kind"], message.message)


def _values(status: Any) -> dict[str, str]:
    return {pair.key: pair.value for pair in status.values}


def _of_drones(values: dict[str, str], prefix: str) -> dict[str, str]:
    """Return the values that a status has of each drone, by its name."""
    return {
        key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
    }
