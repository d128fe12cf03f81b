"""The shell of a page: what it shows and hears beside viser's scene and panel.

Messages are JSON objects with a `kind` and a `content`, in both directions. `channel.js` sends and
receives them in the browser, where the other scripts of this folder use them.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from websockets.asyncio.server import ServerConnection, broadcast
from websockets.exceptions import ConnectionClosed

from crazyflow_ros.view.token_bucket import TokenBucket

PATH = "/shell"
"""Path of the WebSocket."""

_FIRST = (  # of every page
    *("theme.css", "viser.css", "connection.css"),
    *("channel.js", "dom.js", "tab.js", "theme.js", "title.js", "viser.js", "connection.js"),
    *("sheet.js", "freearea.js"),
)
_TITLE = b"crazyflow_ros"
_VIEWPORT = b"width=device-width, initial-scale=1, maximum-scale=1, viewport-fit=cover"
_LONGEST = 1000  # characters of a message from a browser
_MOST_UNSENT = 1 << 20  # bytes that a tab may be behind, before it misses messages

_OURS = (
    (rb'<link\s+rel="icon"[^>]*>', b""),
    (rb'<meta name="description"[^>]*>', b""),
    (rb'<meta name="theme-color"[^>]*>', b""),
    (rb'<meta name="viewport"[^>]*>', b'<meta name="viewport" content="%b">' % _VIEWPORT),
    (rb"<title>[^<]*</title>", b"<title>%b</title>" % _TITLE),
)

Listener = Callable[[int, Any], None]
"""Receives the number of a tab and a content; None when the tab has closed."""


class Shell:
    """The part of a page that is not viser's. All methods are thread-safe.

    Args:
        scripts: Names of the scripts and styles of this folder that the page consists of.

    Attributes:
        version: Differs between pages with different scripts.
        has_marks: Whether the page is shown only once it has a mark, see `tabs`.
    """

    def __init__(self, scripts: Sequence[str] = ()) -> None:
        self._head = _icon() + b"".join(map(_element, (*_FIRST, *scripts)))
        self.has_marks = False
        self.version = hashlib.sha256(self._head).hexdigest()[:16]
        self._listeners: dict[str, Listener] = {}
        self._shown: dict[str, str] = {}  # the latest message of each kind
        self._tabs: set[ServerConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    @property
    def has_tabs(self) -> bool:
        """Whether a tab is open."""
        return bool(self._tabs)

    def complete(self, page: bytes) -> bytes:
        """Return viser's page with this shell, and without viser's title and icon.

        Raises:
            ValueError: It is not viser's page as it was.
        """
        head, end, rest = page.partition(b"</head>")
        for pattern, ours in _OURS:
            head, found = re.subn(pattern, ours, head, count=1)
            if not found:
                raise ValueError(f"viser's page has no {pattern!r}")
        if self.has_marks:
            head = head.replace(b"<html", b'<html class="unmarked"', 1)
        return head + self._head + end + rest

    def on(self, kind: str, listener: Listener) -> None:
        """Call a function, in the server's thread, with each message of a kind from the tabs."""
        self._listeners[kind] = listener

    def show(self, kind: str, content: Any) -> None:
        """Send a content to all tabs, and later to new ones, unless it is the latest of its kind.

        Args:
            kind: What it is; the script that shows it has subscribed to that.
            content: Anything that JSON has, with finite numbers.
        """
        text = json.dumps({"kind": kind, "content": content}, allow_nan=False)
        with self._lock:
            if self._shown.get(kind) == text:
                return
            self._shown[kind] = text
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._send, text)

    # In the server's thread.

    def _send(self, text: str) -> None:
        ready = [tab for tab in self._tabs if tab.transport.get_write_buffer_size() < _MOST_UNSENT]
        broadcast(ready, text)

    async def serve(self, connection: ServerConnection, limit: TokenBucket) -> None:
        """Serve the WebSocket of a tab until it closes; invalid messages are ignored.

        Args:
            connection: The WebSocket.
            limit: Limit on what the tab may send.
        """
        number = id(connection)
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._tabs.add(connection)
            for text in self._shown.values():
                broadcast([connection], text)
        try:
            async for message in connection:
                await limit.wait()
                self._take(number, message)
        except ConnectionClosed:
            pass
        finally:
            self._tabs.discard(connection)
            for listener in self._listeners.values():
                listener(number, None)

    def _take(self, number: int, text: str | bytes) -> None:
        if not isinstance(text, str) or len(text) > _LONGEST:
            return
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(message, dict) and (content := message.get("content")) is not None:
            listener = self._listeners.get(str(message.get("kind")))
            if listener is not None:
                listener(number, content)


def _icon() -> bytes:
    """Return the page's icon as an element of its head."""
    data = base64.b64encode(_read("icon.svg"))
    return b'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml;base64,%b">' % data


def _element(name: str) -> bytes:
    """Return a file of this folder as an element of a page's head."""
    tag = b"style" if name.endswith(".css") else b"script"
    return b"<" + tag + b">" + _read(name) + b"</" + tag + b">"


def _read(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()
