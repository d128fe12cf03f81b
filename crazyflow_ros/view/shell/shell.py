"""The shell of a page: what it shows and receives beside viser's scene and panel.

Messages are JSON objects with a `kind` and a `content`, in both directions. `channel.js` sends and
receives them in the browser, where the other scripts of this folder use them.

`Shell.show` is for what all tabs have. What costs more, a tab gets only while it wants it:
`shell.want(kind, true)` in the browser, `Shell.wanting` and `Shell.send` here, or `Feed`, which
joins the two. Bytes, such as a picture, are sent after their kind and a zero.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Sequence
from importlib.resources import files
from itertools import count
from typing import Any, NamedTuple

from websockets.asyncio.server import ServerConnection, broadcast
from websockets.exceptions import ConnectionClosed

from crazyflow_ros.view.access import TokenBucket

PATH = "/shell"
"""Path of the WebSocket."""

_FIRST = (  # of every page
    *("theme.css", "inputs.css", "panel.css", "viser.css", "connection.css"),
    *("channel.js", "dom.js", "shortcuts.js", "inputs.js", "panel.js", "notes.js"),
    *("tab.js", "theme.js", "title.js", "viser.js", "connection.js", "freearea.js"),
)
_TITLE = b"crazyflow_ros"
_VIEWPORT = b"width=device-width, initial-scale=1, viewport-fit=cover"
_LONGEST = 1000  # characters of a message from a browser
_MOST_UNSENT = 1 << 20  # bytes that a tab may be behind, before it misses messages
_MOST_BYTES_UNSENT = 1 << 17  # before it misses a picture: the next one is newer
_LARGEST = 1 << 19  # bytes of a message that only some tabs get
_MOST_WANTS = 32  # of one tab

_OURS = (
    (rb'<link\s+rel="icon"[^>]*>', b""),
    (rb'<meta name="description"[^>]*>', b""),
    (rb'<meta name="theme-color"[^>]*>', b""),
    (rb'<meta name="viewport"[^>]*>', b'<meta name="viewport" content="%b">' % _VIEWPORT),
    (rb"<title>[^<]*</title>", b"<title>%b</title>" % _TITLE),
)

Listener = Callable[[int, Any], None]
"""Receives the number of a tab and a content; None when the tab has closed."""


class _Want(NamedTuple):
    tab: ServerConnection
    kind: str


class Shell:
    """The part of a page that is not viser's. All methods are thread-safe.

    Args:
        scripts: Names of the scripts and styles of this folder that the page consists of.

    Attributes:
        version: Differs between pages with different scripts.
        has_marks: Whether the page is shown only once it has a mark, see `tabs`.
        files: Files that tabs may save, by their path: name, and content as HTML.
    """

    def __init__(self, scripts: Sequence[str] = ()) -> None:
        self._head = icon() + b"".join(map(element, (*_FIRST, *scripts)))
        self.has_marks = False
        self.files: dict[str, tuple[str, bytes]] = {}
        self.version = hashlib.sha256(self._head).hexdigest()[:16]
        self._listeners: dict[str, Listener] = {}
        self._shown: dict[tuple[str, object], str] = {}  # the latest message of each part
        self._tabs: set[ServerConnection] = set()
        self._wants: dict[int, _Want] = {}
        self._numbers = count(1)
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
        before, title, after = head.partition(b"</title>")
        return before + title + self._head + after + end + rest  # dark before viser's script

    def on(self, kind: str, listener: Listener) -> None:
        """Call a function, in the server's thread, with each message of a kind from the tabs.

        Raises:
            ValueError: Another function receives this kind.
        """
        if kind in self._listeners:
            raise ValueError(f"another function receives {kind!r} already")
        self._listeners[kind] = listener

    def show(self, kind: str, content: Any, *, part: object = None) -> None:
        """Send a content to all tabs and, later, to new tabs; a repeated content is not sent.

        Args:
            kind: What it is; the script that shows it has subscribed to that.
            content: Anything that JSON has, with finite numbers.
            part: What a new content replaces, if contents of this kind have several.
        """
        text = json.dumps({"kind": kind, "content": content}, allow_nan=False)
        with self._lock:
            if self._shown.get((kind, part)) == text:
                return
            self._shown[kind, part] = text
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._send, text)

    def wanting(self, kind: str) -> frozenset[int]:
        """Return the numbers of the wants of this kind, for `send`.

        A tab that stops and wants it again has another number, as has one that missed a message:
        it has to be sent everything.
        """
        with self._lock:
            return frozenset(number for number, want in self._wants.items() if want.kind == kind)

    def send(self, kind: str, content: Any, wants: Collection[int]) -> None:
        """Send a content once.

        Args:
            kind: See `show`.
            content: See `show`, or bytes.
            wants: Who gets it: numbers of wants or tabs.

        Raises:
            ValueError: The message is larger than half a megabyte.
        """
        message: str | bytes
        if isinstance(content, bytes):
            message = kind.encode() + b"\0" + content
        else:
            message = json.dumps({"kind": kind, "content": content}, allow_nan=False)
        if len(message) > _LARGEST:
            raise ValueError(f"a {kind} of {len(message)} bytes, expected at most {_LARGEST}")
        with self._lock:
            if self._loop is not None and wants:
                self._loop.call_soon_threadsafe(self._send_to, message, tuple(wants))

    # In the server's thread.

    def _send_to(self, message: str | bytes, wants: tuple[int, ...]) -> None:
        tabs = {id(tab): tab for tab in self._tabs}
        most = _MOST_UNSENT if isinstance(message, str) else _MOST_BYTES_UNSENT
        for number in wants:
            want = self._wants.get(number)
            tab = tabs.get(number) if want is None else want.tab
            if tab is None:
                continue  # it has closed, or does not want it any more
            if tab.transport.get_write_buffer_size() < most:
                broadcast([tab], message)
            elif want is not None:
                with self._lock:
                    del self._wants[number]
                    self._wants[next(self._numbers)] = want

    def _want(self, tab: ServerConnection, content: Any) -> None:
        """Note that a tab wants a kind, `[kind, true]`, or no longer wants it, `[kind, false]`."""
        if not (isinstance(content, list) and len(content) == 2 and isinstance(content[0], str)):
            return
        want, own = _Want(tab, content[0]), [w for w in self._wants.values() if w.tab is tab]
        with self._lock:
            self._wants = {n: other for n, other in self._wants.items() if other != want}
            if content[1] is True and len(own) < _MOST_WANTS:
                self._wants[next(self._numbers)] = want

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
                self._take(connection, message)
        except ConnectionClosed:
            pass
        finally:
            self._tabs.discard(connection)
            with self._lock:
                self._wants = {n: w for n, w in self._wants.items() if w.tab is not connection}
            for listener in self._listeners.values():
                listener(number, None)

    def _take(self, tab: ServerConnection, text: str | bytes) -> None:
        if not isinstance(text, str) or len(text) > _LONGEST:
            return
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(message, dict) and (content := message.get("content")) is not None:
            kind = str(message.get("kind"))
            if kind == "want":
                self._want(tab, content)
            elif (listener := self._listeners.get(kind)) is not None:
                listener(id(tab), content)


def icon() -> bytes:
    """Return the page's icon as an element of its head."""
    data = base64.b64encode(_read("icon.svg"))
    return b'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml;base64,%b">' % data


def element(name: str) -> bytes:
    """Return a file of this folder as an element of a page's head."""
    tag = b"style" if name.endswith(".css") else b"script"
    return b"<" + tag + b">" + _read(name) + b"</" + tag + b">"


def _read(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


class Feed:
    """Sends the tabs that want a kind of content everything at first, then what changes.

    Args:
        shell: The shell of the page.
        kind: See `Shell.show`.
    """

    def __init__(self, shell: Shell, kind: str) -> None:
        self._shell, self._kind = shell, kind
        self._served: frozenset[int] = frozenset()
        self._shown: Any = None

    @property
    def is_wanted(self) -> bool:
        """Whether a tab wants it."""
        return bool(self._shell.wanting(self._kind))

    def send(self, change: Any | None, everything: Callable[[], Any]) -> None:
        """Send a change. Call it regularly, so that new tabs get everything.

        Args:
            change: What has changed since the last call; None for nothing.
            everything: Returns the present content, with the change.
        """
        wants = self._shell.wanting(self._kind)
        new, old = wants - self._served, wants & self._served
        self._served = wants
        if new:
            self._shell.send(self._kind, everything(), new)
        if old and change is not None:
            self._shell.send(self._kind, change, old)

    def show(self, content: Any) -> None:
        """Send a whole content if it has changed. Call it regularly, as `send`."""
        self.send(None if content == self._shown else content, lambda: content)
        self._shown = content
