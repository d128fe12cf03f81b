"""Dark or light: each tab as its browser says, or all dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import viser

from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.tabs import Tabs

Listener = Callable[[viser.ClientHandle, bool], None]
"""Receives a tab and whether it is dark."""


class Theme:
    """The theme of each tab.

    Args:
        server: The page's server.
        shell: The page's shell, whose script `theme.js` decides.
        tabs: The page's tabs.
        switch: The checkbox that makes all tabs dark.
    """

    def __init__(self, server: viser.ViserServer, shell: Shell, tabs: Tabs, switch: Any) -> None:
        self._shell, self._switch = shell, switch
        self._listeners: list[Listener] = []
        _configure(server.gui, is_dark=False)
        tabs.on("dark", self._take)
        switch.on_update(lambda _: self._force())
        self._force()

    def on_change(self, listener: Listener) -> None:
        """Call a function, in the server's thread, when it is known whether a tab is dark."""
        self._listeners.append(listener)

    def _force(self) -> None:
        self._shell.show("dark page", bool(self._switch.value))

    def _take(self, client: viser.ClientHandle, is_dark: Any) -> None:
        if not isinstance(is_dark, bool):
            return
        _configure(client.gui, is_dark=is_dark)
        for listener in self._listeners:
            listener(client, is_dark)


def _configure(gui: viser.GuiApi, *, is_dark: bool) -> None:
    """Set viser's theme, without the button that shares the page on a server of its authors."""
    gui.configure_theme(dark_mode=is_dark, show_share_button=False, show_logo=False)
