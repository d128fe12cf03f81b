"""The tabs of a page: which of viser's clients is which tab of the shell, and their theme."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import viser

from crazyflow_ros.view.controls import PageControl, User
from crazyflow_ros.view.shell import Shell

_MARK_BYTES = 9  # of a mark, which nobody guesses

Listener = Callable[[viser.ClientHandle, Any], None]
"""Receives a tab and a content."""


class Tabs:
    """The tabs of a page.

    A tab has one WebSocket to viser and one to the shell. viser does not tell a tab its number, so
    each tab gets an invisible mark in viser's panel, which it sends back through the shell.
    """

    def __init__(self, server: viser.ViserServer, shell: Shell) -> None:
        self._server, self._shell = server, shell
        self._numbers: dict[str, int] = {}  # viser's, by mark
        self._clients: dict[int, int] = {}  # viser's number by that of the shell
        self._latest: dict[int, dict[str, Any]] = {}  # contents by the shell's number and the kind
        self._listeners: dict[str, list[Listener]] = {}
        self._lock = threading.RLock()
        shell.has_marks = True
        shell.on("mark", self._link)
        server.on_client_connect(self._add)
        server.on_client_disconnect(self._remove)

    def on(self, kind: str, listener: Listener) -> None:
        """Call a function with viser's client of a tab and each message of a kind from that tab.

        Messages of a tab whose client is not known yet wait for it, the latest of each kind.
        """
        if kind not in self._listeners:
            self._shell.on(kind, partial(self._take, kind))
        self._listeners.setdefault(kind, []).append(listener)

    def user(self, client: viser.ClientHandle | None) -> User | None:
        """Return who uses a tab; None if that is not known."""
        number = -1 if client is None else client.client_id
        with self._lock:
            tabs = [tab for tab, one in self._clients.items() if one == number]
        return User(self._shell, tabs[0]) if tabs else None

    def tell(self, client: viser.ClientHandle, kind: str, content: Any) -> None:
        """Send a content to a tab that is known."""
        if (user := self.user(client)) is not None:
            self._shell.send(kind, content, [user.tab])

    def _add(self, client: viser.ClientHandle) -> None:
        mark = secrets.token_urlsafe(_MARK_BYTES)
        with self._lock:
            self._numbers[mark] = client.client_id
        client.gui.add_html(f'<i data-mark="{mark}" hidden></i>')

    def _remove(self, client: viser.ClientHandle) -> None:
        with self._lock:
            self._numbers = {
                mark: number for mark, number in self._numbers.items() if number != client.client_id
            }

    def _link(self, tab: int, mark: Any) -> None:
        with self._lock:
            if mark is None:
                self._clients.pop(tab, None)
            elif isinstance(mark, str) and mark in self._numbers:
                self._clients[tab] = self._numbers[mark]
                for kind, content in self._latest.get(tab, {}).items():
                    self._tell(tab, kind, content)

    def _take(self, kind: str, tab: int, content: Any) -> None:
        with self._lock:
            if content is None:
                self._latest.pop(tab, None)
                return
            self._latest.setdefault(tab, {})[kind] = content
            self._tell(tab, kind, content)

    def _tell(self, tab: int, kind: str, content: Any) -> None:
        client = self._server.get_clients().get(self._clients.get(tab, -1))
        if client is not None:
            for listener in self._listeners[kind]:
                listener(client, content)


class Theme:
    """Dark or light: each tab follows its browser, or all tabs are dark.

    Args:
        server: The page's server.
        shell: The page's shell, whose script `theme.js` decides.
        tabs: The page's tabs.
        switch: The checkbox that makes all tabs dark.
    """

    def __init__(
        self, server: viser.ViserServer, shell: Shell, tabs: Tabs, switch: PageControl
    ) -> None:
        self._listeners: list[Callable[[viser.ClientHandle, bool], None]] = []
        _configure(server.gui, is_dark=False)
        tabs.on("dark", self._take)

        def force() -> None:
            shell.show("dark page", switch.value)

        switch.on_change(lambda *_: force())
        force()

    def on_change(self, listener: Callable[[viser.ClientHandle, bool], None]) -> None:
        """Call a function in the server's thread with a tab, and whether that tab is dark now."""
        self._listeners.append(listener)

    def _take(self, client: viser.ClientHandle, is_dark: Any) -> None:
        if isinstance(is_dark, bool):
            _configure(client.gui, is_dark=is_dark)
            for listener in self._listeners:
                listener(client, is_dark)


def _configure(gui: viser.GuiApi, *, is_dark: bool) -> None:
    """Set viser's theme, without the button that shares the page on a server of viser's authors."""
    gui.configure_theme(dark_mode=is_dark, show_share_button=False, show_logo=False)
