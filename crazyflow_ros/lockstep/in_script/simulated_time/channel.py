"""The messages between a script in simulated time and the simulator, over a stream.

The script sends datagrams to drones, and asks the simulator to let time run. The simulator answers
with the time that it has reached, and with the datagrams that the script receives at that time.
Times are simulated ones in ns. The simulator's side reads with `Reader`, too.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple

VARIABLE = "CRAZYFLOW_ROS_LOCK_STEP"
"""Environment variable with `Settings` for the script, in JSON."""

class Settings(NamedTuple):
    """What a script has to know, as JSON in `VARIABLE`."""

    path: str
    """Of the Unix socket to which it connects."""
    address: str
    """Network address of the drones."""
    ports: Sequence[int]
    """UDP ports of the drones."""
    seed: int
    """Of random numbers that the script does not seed."""
    patience: float
    """s of wall time after which it is said what a script waits for."""


FOREVER = 2**62
"""A time that is never reached."""

_DATAGRAM, _ADVANCE = b"D", b"A"
_MOST = 65_535  # bytes of a datagram
_HEAD = struct.Struct("<qHHH")  # time, ports of client and drone, size
_ADVANCING = struct.Struct("<qq")
_REACHED = struct.Struct("<qI")


class Datagram(NamedTuple):
    """A datagram between the script and a drone."""

    time_ns: int
    """When it is sent, or arrives."""
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


class Reached(NamedTuple):
    """The answer to `Advance`."""

    now_ns: int
    datagrams: list[Datagram]


class Reader:
    """Reads messages from a stream.

    Args:
        file: Reads the stream; blocks.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def request(self) -> Datagram | Advance | None:
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
        except EOFError:
            return None
        raise ValueError(f"a message of a script begins with D or A, not with {kind!r}")

    def reached(self) -> Reached:
        """Return the simulator's answer.

        Raises:
            EOFError: The simulator has ended.
        """
        now, count = _REACHED.unpack(self._exactly(_REACHED.size))
        return Reached(now, [self._datagram() for _ in range(count)])

    def _datagram(self) -> Datagram:
        time_ns, client, drone, size = _HEAD.unpack(self._exactly(_HEAD.size))
        return Datagram(time_ns, client, drone, self._exactly(size))

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError
        return data


def request(message: Datagram | Advance) -> bytes:
    """Return a message of the script."""
    if isinstance(message, Datagram):
        return _DATAGRAM + bytes(message)
    return _ADVANCE + _ADVANCING.pack(*message)


def answer(reached: Reached) -> bytes:
    """Return an answer of the simulator."""
    head = _REACHED.pack(reached.now_ns, len(reached.datagrams))
    return head + b"".join(map(bytes, reached.datagrams))
