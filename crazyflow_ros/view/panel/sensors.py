"""The sensors of the selected drone: what each measures, and which are drawn in the scene."""

from __future__ import annotations

import time
from typing import Any

import viser

from crazyflow_ros.view.follower import Follower, Inbox
from crazyflow_ros.view.panel.readings import TEXTS
from crazyflow_ros.view.sensor_drawings import KINDS as DRAWN
from crazyflow_ros.view.shell import Feed, Shell

_PERIOD = 0.25  # s of wall time between two readings
_LOOK = 1.0  # s of wall time between two searches for topics
_PICTURE = "sensor_msgs/msg/Image"
_COMMANDS = "cmd_"  # how their names begin
_NO_SENSORS = {"wrench", "goal_pose", "clicked_point", "pose", "odom", "command", "plan"}
_TYPES = {f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}": kind for kind in TEXTS}
_MOST_DRAWN = 64


class SensorsPanel:
    """The tab of the sensors. It listens to them only while somebody looks at it.

    Args:
        gui: The part of the page that contains the tab.
        shell: Shows the list: `sensors.js`.
        follower: The connection to the simulator.

    Attributes:
        drawn: Short names of the topics that are drawn in the scene, such as `scan`.
        forces: The section for the switches of what acts on a drone.
    """

    def __init__(self, gui: viser.GuiApi, shell: Shell, follower: Follower) -> None:
        self._follower, self._feed = follower, Feed(shell, "sensors")
        self._section = gui.add_folder("Sensors")
        with self._section:
            gui.add_html('<div data-place="sensors"></div>')
        self.forces = gui.add_folder("Draw forces and wind")
        self.drawn: frozenset[str] = frozenset()
        self._drone = ""
        self._inbox: Inbox | None = None
        self._names: dict[str, str] = {}  # types of the topics by short names
        self._texts: dict[str, str] = {}
        self._shown: Any = None
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
        """Show the sensors of a drone, if it is time; without a name, those of none."""
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
            self._look(drone)
        self._listen(drone)
        if self._inbox is not None:
            for topic in self._inbox.topics:
                if (message := self._inbox.take(topic)) is not None:
                    self._texts[topic] = _text(message)
        content = self._content(drone)
        self._feed.send(None if content == self._shown else content, lambda: content)
        self._shown = content

    def _look(self, drone: str) -> None:
        """Find the sensors of a drone."""
        prefix = f"{self._follower.topic(drone)}/" if drone else "-"
        self._names = {
            name: kind
            for topic, kind in sorted(self._follower.types_of_topics().items())
            if topic.startswith(prefix) and (kind in _TYPES or kind == _PICTURE)
            if (name := topic.removeprefix(prefix)) not in _NO_SENSORS
            if not name.startswith(_COMMANDS)
        }

    def _listen(self, drone: str) -> None:
        wanted = {
            self._follower.topic(f"{drone}/{name}"): _TYPES[kind]
            for name, kind in (self._names.items() if drone else ())
            if kind in _TYPES
        }
        if wanted.keys() == (self._inbox.topics.keys() if self._inbox is not None else set()):
            return
        if self._inbox is not None:
            self._follower.hang_up(self._inbox)
        self._inbox = self._follower.listen(wanted) if wanted else None
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
    """Return a reading in words; anybody may publish on a topic of a sensor, and anything."""
    try:
        return TEXTS[type(message)](message)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return "a message that cannot be read"
