"""A client of Foxglove's protocol that shares no code with the server or with ROS."""

from __future__ import annotations

import asyncio
import struct
import time
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from mcap_ros2._dynamic import generate_dynamic, serialize_dynamic
from robo_ws_bridge import WebSocketBridgeClient
from ros_client import TIMEOUT

CDR = "cdr"
_PLAYBACK_REQUEST, _PLAYBACK_STATE = 3, 5  # opcodes
_REQUEST, _STATE = struct.Struct("<BBfBQI"), struct.Struct("<BBQfBI")


class FoxgloveClient:
    """A connected client.

    Args:
        url: Address of the server.

    Attributes:
        bridge: The client of robo-ws-bridge.
        messages: Decoded messages by topic, with their times [ns].
        statuses: Texts of status messages.
        times: Times of the server [ns].
        playback: States of the playback: paused, time [ns], speed, request.
    """

    def __init__(self, url: str) -> None:
        self.bridge = WebSocketBridgeClient(url)
        self.messages: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)
        self.statuses: list[str] = []
        self.times: list[int] = []
        self.playback: list[tuple[bool, int, float, str]] = []
        self._decoders: dict[int, Any] = {}
        self.bridge.on_message(self._decode)
        self.bridge.on_status(lambda _level, text, _id: self.statuses.append(text))
        self.bridge.on_time_update(self.times.append)
        self._take_binary = self.bridge._handle_binary
        self.bridge._handle_binary = self._handle_binary

    async def __aenter__(self) -> Self:
        await self.bridge.connect()
        await self.until(lambda: self.bridge.services and self.bridge.channels, "a simulator")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.bridge.disconnect()

    async def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition holds; returns it."""
        deadline = time.monotonic() + TIMEOUT
        while not (value := condition()):
            assert time.monotonic() < deadline, (
                f"{what}: not within {TIMEOUT} s, but {self._seen()}"
            )
            await asyncio.sleep(0.02)
        return value

    def _seen(self) -> str:
        topics = {channel["topic"]: number for number, channel in self.bridge.channels.items()}
        counts = {topic: len(messages) for topic, messages in self.messages.items()}
        return f"{topics=}, {counts=}, {self.statuses=}, times={self.times[-3:]}"

    async def latest(self, topic: str) -> Any:
        """A new message of a topic."""
        await self.bridge.subscribe(topic)
        n_before = len(self.messages[topic])
        await self.until(lambda: len(self.messages[topic]) > n_before, topic)
        return self.messages[topic][-1][1]

    async def call(self, name: str, **request: Any) -> Any:
        """Response of a service."""

        def find() -> Any:
            return next((s for s in self.bridge.services.values() if s["name"] == name), None)

        service = await self.until(find, name)
        payload = encode(service["request"], request)
        answer = await self.bridge.call_service(
            service["id"], payload, encoding=CDR, timeout=TIMEOUT
        )
        schema = service["response"]
        decode = generate_dynamic(schema["schemaName"], schema["schema"])
        return decode[schema["schemaName"]](answer.payload)

    async def set(self, name: str, value: Any) -> Any:
        """Set a parameter of the simulator; returns what it is afterwards."""
        wanted = {"name": f"/crazyflow.{name}", "value": value}
        (parameter,) = await self.bridge.set_parameters([wanted], timeout=TIMEOUT)
        assert parameter["name"] == wanted["name"]
        return parameter["value"]

    async def control(
        self, paused: bool, speed: float, seek_ns: int | None = None
    ) -> tuple[bool, int, float, str]:
        """Press play or pause; returns the state of the playback in the answer."""
        request = f"request {len(self.playback)}"
        seek = (seek_ns is not None, seek_ns or 0)
        header = _REQUEST.pack(_PLAYBACK_REQUEST, paused, speed, *seek, len(request))
        await self.bridge._websocket.send(header + request.encode())

        def answer() -> Any:
            return next((state for state in self.playback if state[-1] == request), None)

        return await self.until(answer, "a state of the playback")

    def _decode(self, channel: Any, time_ns: int, payload: bytes) -> None:
        if channel["id"] not in self._decoders:
            decoders = generate_dynamic(channel["schemaName"], channel["schema"])
            self._decoders[channel["id"]] = decoders[channel["schemaName"]]
        message = self._decoders[channel["id"]](payload)
        self.messages[channel["topic"]].append((time_ns, message))

    async def _handle_binary(self, data: bytes) -> None:
        if data[0] == _PLAYBACK_STATE:
            _, status, now, speed, _, length = _STATE.unpack_from(data)
            request = data[_STATE.size : _STATE.size + length].decode()
            self.playback.append((status == 1, now, speed, request))
        else:
            await self._take_binary(data)


def encode(schema: Any, values: dict[str, Any]) -> bytes:
    """Serialise a message by its definition alone."""
    if not schema["schema"]:  # an empty structure has one byte
        return b"\0\1\0\0\0"
    encoders = serialize_dynamic(schema["schemaName"], schema["schema"])
    return encoders[schema["schemaName"]](values)
