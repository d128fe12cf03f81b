"""The sensors of the selected drone: what each measures, and which are drawn in the scene."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import (
    BatteryState,
    FluidPressure,
    Imu,
    LaserScan,
    MagneticField,
    NavSatFix,
    PointCloud2,
    Range,
)
from std_msgs.msg import Bool

from crazyflow_ros.ros.messages import type_name
from crazyflow_ros.view.controls import PageControls
from crazyflow_ros.view.follower import Follower, Inbox
from crazyflow_ros.view.sensor_drawings import KINDS as DRAWN
from crazyflow_ros.view.sensor_drawings import cloud_points, scan_points
from crazyflow_ros.view.shell import Feed, Shell


def _vector(vector: Any, unit: str, factor: float = 1.0, digits: int = 2) -> str:
    numbers = (f"{factor * value:z.{digits}f}" for value in (vector.x, vector.y, vector.z))
    return f"{', '.join(numbers)} {unit}"


def _range(message: Range) -> str:
    if math.isfinite(message.range):
        return f"{message.range:.3f} m"
    return f"nothing within {message.max_range:g} m"


def _nearest(points: np.ndarray, what: str) -> str:
    if not len(points):
        return f"0 {what}"
    return f"{len(points)} {what}, nearest {np.linalg.norm(points, axis=1).min():.2f} m"


_TEXTS: dict[Any, Callable[[Any], str]] = {  # of a message, by its type
    Range: _range,
    BatteryState: lambda m: f"{m.voltage:.2f} V, {m.current:.2f} A, {m.percentage:.0%}",
    Imu: lambda m: (
        f"{_vector(m.linear_acceleration, 'm/s²')}; {_vector(m.angular_velocity, 'rad/s')}"
    ),
    FluidPressure: lambda m: f"{m.fluid_pressure / 100:.2f} hPa",
    MagneticField: lambda m: _vector(m.magnetic_field, "µT", 1e6),
    NavSatFix: lambda m: f"{m.latitude:.6f}°, {m.longitude:.6f}°, {m.altitude:.1f} m",
    WrenchStamped: lambda m: (
        f"{_vector(m.wrench.force, 'N')}; {_vector(m.wrench.torque, 'mN·m', 1e3)}"
    ),
    LaserScan: lambda m: _nearest(scan_points(m), f"of {len(m.ranges)} beams hit"),
    PointCloud2: lambda m: _nearest(cloud_points(m), "points"),
    TwistStamped: lambda m: _vector(m.twist.angular, "rad/s"),
    PoseStamped: lambda m: _vector(m.pose.position, "m", digits=3),
    Bool: lambda m: "yes" if m.data else "no",
}
_TYPES = {type_name(kind): kind for kind in _TEXTS}
_PERIOD = 0.25  # s of wall time between two readings
_LOOK = 1.0  # s of wall time between two searches for topics
_PICTURE = "sensor_msgs/msg/Image"
_COMMANDS = "cmd_"  # how their names begin
_NO_SENSORS = {"wrench", "goal_pose", "clicked_point", "pose", "odom", "command", "plan"}
_MOST_DRAWN = 64


class SensorsPanel:
    """The tab of the sensors; subscribes to them only while a tab of the browser shows it.

    Args:
        panel: Where the tab is.
        shell: Shows the list: `sensors.js`.
        follower: The connection to the simulator.

    Attributes:
        drawn: Topics that are drawn in the scene, by their names below the drone's: `scan`.
        forces: The section for switches that draw forces.
    """

    def __init__(self, panel: PageControls, shell: Shell, follower: Follower) -> None:
        self._follower, self._feed = follower, Feed(shell, "sensors")
        with panel.section("Sensors") as self._section:
            panel.add("place", "sensors")
        self.forces = panel.add("section", "Draw forces and wind")
        self.drawn: frozenset[str] = frozenset()
        self._drone = ""
        self._inbox = Inbox(follower)
        self._names: dict[str, str] = {}  # types of the topics by short names
        self._texts: dict[str, str] = {}
        self._due = self._look_due = 0.0
        shell.on("draw", self._draw)

    def _draw(self, _: int, content: Any) -> None:
        """Switch the drawing of a sensor, in the server's thread."""
        if not (isinstance(content, list) and len(content) == 2):
            return
        name, is_on = content
        if not (isinstance(name, str) and name in self._names):
            return
        others = self.drawn - {name}
        self.drawn = others | {name} if is_on is True and len(others) < _MOST_DRAWN else others

    def update(self, drone: str) -> None:
        """Show the sensors of a drone, if it is time; an empty name shows none."""
        if drone:
            self._section.label = f"Sensors of {drone}"
        now = time.monotonic()
        if now < self._due and drone == self._drone:
            return
        self._due = now + _PERIOD
        if not self._feed.is_wanted:
            self._listen("")
            self._feed.send(None, dict)
            return
        if drone != self._drone or now > self._look_due:
            self._drone, self._look_due = drone, now + _LOOK
            self._names = {
                name: kind
                for name, kind in self._follower.topics_of(drone).items()
                if kind in _TYPES or kind == _PICTURE
                if name not in _NO_SENSORS and not name.startswith(_COMMANDS)
            }
        self._listen(drone)
        for topic in self._inbox.topics:
            if (message := self._inbox.take(topic)) is not None:
                self._texts[topic] = _text(message)
        self._feed.show(self._content(drone))

    def _listen(self, drone: str) -> None:
        wanted = {
            self._follower.topic(f"{drone}/{name}"): _TYPES[kind]
            for name, kind in (self._names.items() if drone else ())
            if kind in _TYPES
        }
        self._inbox.subscribe(wanted)
        self._texts = {topic: text for topic, text in self._texts.items() if topic in wanted}

    def _content(self, drone: str) -> Any:
        rows = []
        for name, kind in self._names.items():
            is_picture = kind == _PICTURE
            topic = self._follower.topic(f"{drone}/{name}")
            text = "a picture over the scene" if is_picture else self._texts.get(topic, "–")
            row = {"name": name, "text": text, "picture": is_picture}
            rows.append(row | ({"drawn": name in self.drawn} if kind in DRAWN else {}))
        return {"drone": drone, "rows": rows}


def _text(message: Any) -> str:
    """Return a reading as text; anybody may publish anything on the topic of a sensor."""
    try:
        return _TEXTS[type(message)](message)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return "a message that cannot be read"
