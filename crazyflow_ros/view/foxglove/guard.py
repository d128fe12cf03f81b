"""The guard of the WebSocket server, which decides who may connect.

The server of the Foxglove SDK checks neither origins nor tokens. It listens on an address that only
this process knows, and the guard forwards the connections that are allowed: it reads the first
request of a connection, decides, and then copies bytes. A client that stops reading delays no
others: its messages wait in the server's queue, which drops the oldest.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from crazyflow_ros.view.access import is_loopback, knows_token

APPS = ("https://app.foxglove.dev", "https://studio.foxglove.dev", "file://")
"""Origins of Foxglove in a browser and on the desktop."""

_MOST_CLIENTS = 32
_MOST_CONNECTIONS = 256  # including those that have not sent a request yet
_HEAD_BYTES = 16 * 1024  # of a request
_HEAD_TIMEOUT = 10.0  # s
_PIECE = 64 * 1024  # bytes
_START_TIMEOUT = 10.0  # s
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}  # s, s, number of probes
_REASONS = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 503: "Service Unavailable"}


class Refused(ValueError):
    """A refused connection.

    Attributes:
        status: Status code of the response.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def hidden_address() -> str:
    """Return a random loopback address, which a page in a local browser cannot guess."""
    number = 127 << 24 | secrets.randbelow(2**24 - 2**16) + 2**16
    return str(ipaddress.ip_address(number))


def check_request(head: bytes, token: str, origins: Collection[str]) -> None:
    """Check the first request of a connection.

    Args:
        head: The request with its headers.
        token: Expected as `?token=` or as a bearer token; empty for none.
        origins: Origins that are allowed in addition to pages of this machine. Programs other
            than browsers send no origin.

    Raises:
        Refused: The connection is not allowed; the message says why.
    """
    request, *lines = head.decode("latin-1").split("\r\n")
    words = request.split(" ")
    headers = [
        (k.strip().lower(), v.strip()) for k, _, v in (line.partition(":") for line in lines)
    ]
    is_upgrade = any(k == "upgrade" and v.lower() == "websocket" for k, v in headers)
    if len(words) != 3 or words[0] != "GET" or not is_upgrade:
        raise Refused(400, "expected a WebSocket")
    for name, origin in headers:
        if name == "origin" and not _is_allowed(origin, origins):
            raise Refused(403, f"expected one of the allowed origins, got {origin[:100]!r}")
    if token:
        given = parse_qs(urlsplit(words[1]).query).get("token", [])
        given += [v.removeprefix("Bearer ") for k, v in headers if k == "authorization"]
        if not knows_token(given, token):
            raise Refused(401, "expected the token, as in ws://host:port/?token=...")


def _is_allowed(origin: str, origins: Collection[str]) -> bool:
    if origin in origins:
        return True
    try:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and is_loopback(parts.hostname or "")
    except ValueError:
        return False


class FoxgloveGuard:
    """The guard, which runs in its own thread until the process ends.

    Args:
        address: Address to listen on.
        port: Port to listen on; 0 for any.
        server: Address and port of the guarded server.
        token: As for `check_request`.
        origins: As for `check_request`.
        warn: Logs why a connection is refused.

    Attributes:
        port: The port.

    Raises:
        OSError: The address or port cannot be used.
    """

    def __init__(
        self,
        address: str,
        port: int,
        server: tuple[str, int],
        token: str,
        origins: Collection[str],
        warn: Callable[[str], object],
    ) -> None:
        self._server, self._token, self._origins, self._warn = server, token, origins, warn
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        self._connections = self._clients = 0
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        threading.Thread(target=self._main, name="guard", daemon=True).start()
        self._started.wait(_START_TIMEOUT)

    def _main(self) -> None:
        async def serve() -> None:
            await asyncio.start_server(self._take, sock=self._socket, limit=_HEAD_BYTES)
            self._started.set()

        self._loop.run_until_complete(serve())
        self._loop.run_forever()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            head = await self._checked_head(reader)
            _end_when_dead(writer.get_extra_info("socket"))
            self._clients += 1
            try:
                await self._connect(head, reader, writer)
            finally:
                self._clients -= 1
        except Refused as error:
            self._warn(f"a connection is refused: {error}")
            writer.write(_response(error))
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.drain(), _HEAD_TIMEOUT)
        except (OSError, EOFError, TimeoutError):
            pass  # the client has disconnected
        finally:
            self._connections -= 1
            writer.close()

    async def _connect(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Copy bytes between a client and the server until either disconnects."""
        to_server, from_server = await asyncio.open_connection(*self._server)
        from_server.write(head)
        there = asyncio.create_task(_carry(reader, from_server))
        back = asyncio.create_task(_carry(to_server, writer))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        finally:
            there.cancel()
            back.cancel()
            from_server.transport.abort()

    async def _checked_head(self, reader: asyncio.StreamReader) -> bytes:
        if self._connections > _MOST_CONNECTIONS:
            raise Refused(503, f"there are {_MOST_CONNECTIONS} connections already")
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_TIMEOUT)
        except asyncio.LimitOverrunError:
            raise Refused(400, f"the headers have more than {_HEAD_BYTES} bytes") from None
        check_request(head, self._token, self._origins)
        if self._clients >= _MOST_CLIENTS:
            raise Refused(503, f"there are {_MOST_CLIENTS} clients already")
        return head


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()


def _end_when_dead(connection: socket.socket) -> None:
    """Let the kernel close a connection whose peer has vanished."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _response(error: Refused) -> bytes:
    body = str(error).encode()
    head = (
        f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
