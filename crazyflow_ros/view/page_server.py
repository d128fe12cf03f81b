"""The page's web server: viser's server behind a guard.

viser serves one page and one WebSocket to any client. The guard in front of both refuses

- host names other than this machine's while only this machine may connect, so that no page from
  the internet reaches the server under that page's host name (DNS rebinding),
- WebSockets that another page opens (the header `Origin`),
- everything without the token while other machines may connect,
- messages that this page does not send, of which viser would pass some on to all tabs,

and adds the shell to viser's page, with a WebSocket for it.
"""

from __future__ import annotations

import http
import io
import logging
import math
import socket
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import fields
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import viser
import websockets.asyncio.server
from viser import _messages as messages
from websockets import Headers
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from crazyflow_ros.view.access import TokenBucket, is_loopback, knows_token
from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.shell.shell import PATH

_COOKIE = "crazyflow_token"
_LARGEST_MESSAGE = 1 << 16  # bytes from a browser; the largest valid one, a text, is far smaller
_MOST_TABS = 64
_PROTOCOL = f"viser-v{viser.__version__}"
_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        messages.SceneNodeDragMessage,
        messages.ScenePointerMessage,
        messages.ViewerCameraMessage,
    )
}
_LONGEST = 1000  # characters of a text
_RATE, _BURST = 100.0, 200.0  # messages of a connection per second, and at once: faster than clicks

Handler = Callable[[ServerConnection], Awaitable[None]]
ProcessRequest = Callable[[ServerConnection, Request], Response | None]


class Guard:
    """Decides which requests of browsers are allowed.

    Args:
        address: Address on which the server listens.
        token: Token that a browser has to send; empty for none.
        shell: The page's shell.
    """

    def __init__(self, address: str, token: str, shell: Shell) -> None:
        self._is_local, self._token, self._shell = is_loopback(address), token, shell
        self._tabs = 0

    def refusal(self, request: Request) -> str | None:
        """Return why a request is refused; None if it is allowed."""
        host = request.headers.get("Host", "")
        if self._is_local and not is_loopback(urlsplit(f"//{host}").hostname or ""):
            return f"this server is for this machine only, not for {host!r}"
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return f"a page of {origin!r} may not connect to {host!r}"
        if self._token and not self._knows_token(request):
            return "the token is missing or wrong: open the address that the page printed"
        return None

    def _knows_token(self, request: Request) -> bool:
        cookies = SimpleCookie(request.headers.get("Cookie", ""))
        given = [cookies[_COOKIE].value] if _COOKIE in cookies else []
        given += parse_qs(urlsplit(request.path).query).get("token", [])
        return knows_token(given, self._token)

    def on_request(self, serve: ProcessRequest) -> ProcessRequest:
        """Guard the function that answers requests for files, and add scripts to the page."""

        def process_request(connection: ServerConnection, request: Request) -> Response | None:
            try:
                reason = self.refusal(request)
            except ValueError as error:  # from parsing addresses and cookies
                reason = f"the request cannot be read: {error}"
            if reason is not None:
                headers = Headers({"Content-Type": "text/plain; charset=utf-8"})
                body = f"{reason}\n".encode()
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, body)
            if (file := self._shell.files.get(urlsplit(request.path).path)) is not None:
                return _saved(*file)
            if "Accept-Encoding" in request.headers:  # scripts are put in as plain text
                del request.headers["Accept-Encoding"]
            response = serve(connection, request)
            if response is not None and response.status_code == http.HTTPStatus.OK:
                self._complete(response)
            return response

        return process_request

    def _complete(self, response: Response) -> None:
        if self._token:
            cookie = f"{_COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            response.headers["Set-Cookie"] = cookie
        response.headers["X-Frame-Options"] = "SAMEORIGIN"
        response.headers["Referrer-Policy"] = "no-referrer"
        if response.body is not None and b"</head>" in response.body:
            response.body = self._shell.complete(bytes(response.body))
            del response.headers["Content-Length"]
            response.headers["Content-Length"] = str(len(response.body))

    def on_connection(self, handler: Handler) -> Handler:
        """Guard the function that serves a WebSocket; limit the tabs, and serve the shell's."""

        async def handle(connection: ServerConnection) -> None:
            if self._tabs >= 2 * _MOST_TABS:  # two connections a tab
                await connection.close(1013, f"there are already {_MOST_TABS} tabs")
                return
            self._tabs += 1
            try:
                request = connection.request
                if request is not None and request.path.partition("?")[0] == PATH:
                    await self._shell.serve(connection, TokenBucket(_RATE, _BURST))
                elif connection.subprotocol != _PROTOCOL:
                    await connection.close(1002, f"expected the protocol {_PROTOCOL}")
                else:
                    self._check_messages(connection)
                    await handler(connection)
            finally:
                self._tabs -= 1

        return handle

    def _check_messages(self, connection: ServerConnection) -> None:
        """Let viser receive only valid messages, and no faster than people click."""
        receive, limit = connection.recv, TokenBucket(_RATE, _BURST)

        async def receive_welcome() -> Any:
            while True:
                content = await receive()
                await limit.wait()
                if is_welcome(content):
                    return content

        connection.recv = receive_welcome  # type: ignore[method-assign, assignment]


def _saved(name: str, content: bytes) -> Response:
    """Return a response that a browser saves as a file."""
    headers = Headers(
        {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
        }
    )
    return Response(http.HTTPStatus.OK, "OK", headers, content)


def start(address: str, port: int, title: str, token: str, shell: Shell) -> viser.ViserServer:
    """Start the server.

    Args:
        address: Address to listen on.
        port: Port to listen on; the next free one if it is taken.
        title: Title of the page.
        token: See `Guard`.
        shell: See `Guard`.

    Raises:
        OSError: The address does not belong to this machine.
        RuntimeError: The guard is not in place, because viser has changed.
    """
    with socket.create_server((address, 0)):  # viser would try a thousand ports
        pass
    logging.getLogger("websockets").setLevel(logging.CRITICAL)  # a traceback for each bad request
    # A tab may close while something is sent to it.
    warnings.filterwarnings("ignore", "Queued a .* on a closed connection", UserWarning)
    guard = Guard(address, token, shell)
    # viser prints the address without the token, in a large box.
    with _guarded(guard) as guarded, redirect_stdout(io.StringIO()):
        server = viser.ViserServer(address, port, label=title, verbose=False)
    if not guarded:
        server.stop()
        raise RuntimeError(f"viser {viser.__version__} does not start its server as expected")
    return server


def stop(server: viser.ViserServer) -> None:
    """Stop the server, without viser's output."""
    with redirect_stdout(io.StringIO()):
        server.stop()


def is_race_of_viser(error: Exception) -> bool:
    """Return whether an error is viser's own; viser sends the message nevertheless.

    After queueing a message, viser 1.1.1 sets an `asyncio.Event` in the thread of the caller, which
    fails at the instants at which viser's loop starts or stops waiting for it.
    """
    return isinstance(error, RuntimeError) and str(error) == "deque mutated during iteration"


@contextmanager
def _guarded(guard: Guard) -> Iterator[list[Guard]]:
    """Insert the guard into the WebSocket server that viser starts: viser has no option for it."""
    module: Any = websockets.asyncio.server
    serve = module.serve
    used: list[Guard] = []

    def guarded(handler: Handler, host: str, port: int, **options: Any) -> Any:
        used.append(guard)
        options["process_request"] = guard.on_request(options["process_request"])
        options["max_size"] = _LARGEST_MESSAGE
        return serve(guard.on_connection(handler), host, port, **options)

    module.serve = guarded
    try:
        yield used
    finally:
        module.serve = serve


def is_welcome(content: Any) -> bool:
    """Return whether the page may send this message."""
    try:
        mapping = msgspec.msgpack.decode(content)
        kind = _KINDS[mapping["type"]]
        msgspec.convert(mapping, kind)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError):
        return False
    known = {"type", *(field.name for field in fields(kind))}
    return mapping.keys() <= known and _is_tame(list(mapping.values()))


def _is_tame(value: Any) -> bool:
    """Return whether all numbers are finite, and all texts short."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_tame, value))
    if isinstance(value, dict):
        return all(map(_is_tame, value)) and all(map(_is_tame, value.values()))
    if isinstance(value, (str, bytes)):
        return len(value) <= _LONGEST
    return not isinstance(value, float) or math.isfinite(value)
