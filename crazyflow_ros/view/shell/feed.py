"""Content of a page that changes often, for the tabs that look at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crazyflow_ros.view.shell.shell import Shell


class Feed:
    """Sends the tabs that want a kind of content everything at first, then what changes.

    Args:
        shell: The shell of the page.
        kind: See `Shell.show`.
    """

    def __init__(self, shell: Shell, kind: str) -> None:
        self._shell, self._kind = shell, kind
        self._served: frozenset[int] = frozenset()

    @property
    def is_wanted(self) -> bool:
        """Whether a tab looks at it."""
        return bool(self._shell.wanting(self._kind))

    def send(self, change: Any | None, everything: Callable[[], Any]) -> None:
        """Send a change; call it regularly, for the tabs that have come meanwhile.

        Args:
            change: What has changed since the last call; None: nothing.
            everything: Returns the present content, with the change.
        """
        wants = self._shell.wanting(self._kind)
        new, old = wants - self._served, wants & self._served
        self._served = wants
        if new:
            self._shell.send(self._kind, everything(), new)
        if old and change is not None:
            self._shell.send(self._kind, change, old)
