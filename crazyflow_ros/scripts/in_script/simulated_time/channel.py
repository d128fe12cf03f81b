"""The messages between a script in simulated time and the simulator, over a stream.

The script sends datagrams to drones, and asks the simulator to let time run. The simulator answers
with the time that it has reached, and with the datagrams that the script receives at that time.
Times are simulated, in ns. The simulator also reads with `ChannelReader`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple, Union

VARIABLE = "CRAZYFLOW_ROS_LOCK_STEP"
"""Environment variable with `ScriptSettings` in JSON."""


class ScriptSettings(NamedTuple):
    """Settings of a script, as JSON in `VARIABLE`."""

    path: str
    """Of the Unix socket to which it connects."""
    address: str
    """Network address of the drones."""
    ports: Sequence[int]
    """UDP ports of the drones."""
    seed: int
    """Seed of random numbers that the script does not seed."""
    patience: float
    """Wall time after which the script reports what it waits for [s]."""
    folders: Sequence[str]
    """Folders that were put on the script's path, from which they are removed again."""
    python_path: str | None
    """The user's own PYTHONPATH."""
    extension: str = ""
    """Module that lets a library of scripts live in simulated time, too; empty: none."""
    arguments: Sequence[Any] = ()
    """Further arguments of its function `begin`."""


FOREVER = 2**62
"""A time that is never reached."""

_DATAGRAM, _ADVANCE, _ENDPOINT = b"D", b"A", b"E"
_MOST = 65_535  # bytes of a datagram
_HEAD = struct.Struct("<qHHH")  # time, ports of client and drone, size
_ADVANCING = struct.Struct("<qq?")
_TEXT = struct.Struct("<I")
_REACHED = struct.Struct("<q?I")


class Datagram(NamedTuple):
    """A datagram between the script and a drone."""

    time_ns: int
    """When it is sent or arrives."""
    client: int
    """UDP port of the script."""
    drone: int
    """UDP port of the drone."""
    data: bytes

    def __bytes__(self) -> bytes:
        data = self.data[:_MOST]
        return _HEAD.pack(self.time_ns, self.client, self.drone, len(data)) + data


class Advance(NamedTuple):
    """The script asks to let time run."""

    now_ns: int
    """The script's time, at least that of the latest answer."""
    until_ns: int
    """Time at which it goes on, if it receives no datagram before."""
    by_service: bool = False
    """Whether it also calls a service of ROS, and time runs when that is carried out."""


class Endpoint(NamedTuple):
    """The script has a new publisher or subscription of ROS, which others have to find."""

    publishes: bool
    topic: str
    node: str
    namespace: str


class Reached(NamedTuple):
    """The answer to `Advance`."""

    now_ns: int
    datagrams: list[Datagram]
    published: bool = False
    """Whether messages of ROS were published, which may still be on their way."""


Message = Union[Datagram, Advance, Endpoint]  # noqa: UP007, Python 3.10 knows no other form here


class ChannelReader:
    """Reads messages from a stream.

    Args:
        file: Reads the stream; blocks.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def request(self) -> Message | None:
        """Return the script's next message; None if it has ended.

        Raises:
            ValueError: What was received is no message.
        """
        kind = self._file.read(1)
        if not kind:
            return None
        try:
            if kind == _DATAGRAM:
                return self._datagram()
            if kind == _ADVANCE:
                return Advance(*_ADVANCING.unpack(self._exactly(_ADVANCING.size)))
            if kind == _ENDPOINT:
                (size,) = _TEXT.unpack(self._exactly(_TEXT.size))
                return Endpoint(*json.loads(self._exactly(size)))
        except EOFError:
            return None
        except TypeError as error:
            raise ValueError(f"an endpoint is not complete: {error}") from None
        raise ValueError(f"a message of a script begins with D, A or E, not with {kind!r}")

    def reached(self) -> Reached:
        """Return the simulator's answer.

        Raises:
            EOFError: The simulator has ended.
        """
        now, published, count = _REACHED.unpack(self._exactly(_REACHED.size))
        return Reached(now, [self._datagram() for _ in range(count)], published)

    def _datagram(self) -> Datagram:
        time_ns, client, drone, size = _HEAD.unpack(self._exactly(_HEAD.size))
        return Datagram(time_ns, client, drone, self._exactly(size))

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError
        return data


def request(message: Message) -> bytes:
    """Return a message of the script."""
    if isinstance(message, Datagram):
        return _DATAGRAM + bytes(message)
    if isinstance(message, Endpoint):
        text = json.dumps(message).encode()
        return _ENDPOINT + _TEXT.pack(len(text)) + text
    return _ADVANCE + _ADVANCING.pack(*message)


def answer(reached: Reached) -> bytes:
    """Return an answer of the simulator."""
    head = _REACHED.pack(reached.now_ns, reached.published, len(reached.datagrams))
    return head + b"".join(map(bytes, reached.datagrams))
