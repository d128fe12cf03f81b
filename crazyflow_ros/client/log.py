"""Warnings that a simulator publishes on /rosout and ~/flight_events."""

from __future__ import annotations

from collections import deque
from typing import Any

_WARN = 30  # rcl_interfaces/msg/Log.WARN, whose type differs between distributions
_KEPT = 20


class WarningLog:
    """The latest warnings of one node.

    Args:
        name: Name of the node with its namespace, for example /a/crazyflow.

    Attributes:
        heard: Number of flight events, and of log messages of all nodes, so far.
        latest: Text of the latest message of the node, also if it is no warning.
    """

    def __init__(self, name: str) -> None:
        self._logger = name.strip("/").replace("/", ".")
        self._warnings: deque[str] = deque(maxlen=_KEPT)
        self._refused: deque[str] = deque(maxlen=_KEPT)
        self.heard, self.latest = 0, ""

    def note(self, message: Any) -> None:
        """Receive a message of /rosout."""
        self.heard += 1
        if message.name != self._logger:
            return
        self.latest = message.msg
        if message.level >= _WARN:
            self._warnings.append(message.msg)

    def note_event(self, event: Any) -> None:
        """Receive a message of ~/flight_events, which has the refusals that the log leaves out."""
        self.heard += 1
        service, _, why = event.message.partition(": ")
        if any(value.key == "kind" and value.value == "refused" for value in event.values):
            self._refused.append(f"{event.name}/{service} is refused: {why}")

    def clear(self) -> None:
        """Forget all warnings."""
        self._warnings.clear()
        self._refused.clear()

    def text(self, most: int = 3) -> str:
        """Return the latest warnings as one text."""
        return "; ".join(list(self._warnings)[-most:])

    def has(self, text: str) -> bool:
        """Return whether a warning contains a text."""
        return any(text in warning for warning in self._warnings)

    def against(self, what: str, *, is_topic: bool = False) -> str:
        """Return the warnings that refuse a message or a request, or an empty string.

        Args:
            what: Name of the topic or service without the simulator's namespace.
            is_topic: Whether it is a topic: then the drone may say that it ignores the message.
        """
        start = what.lstrip("/")
        starts = [f"{start} is "]
        if is_topic:
            starts.append(f"{start.rpartition('/')[0]} ignores ")
        for all_told in (self._refused, self._warnings):
            found = [told for told in all_told if told.lstrip("/").startswith(tuple(starts))]
            if found:
                return "; ".join(dict.fromkeys(found))
        return ""
