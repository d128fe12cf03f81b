"""Packets of ArduPilot's JSON interface.

Source: `libraries/SITL/SIM_JSON.cpp` of ArduPilot, and the README of its `examples/JSON`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

_HEADER = struct.Struct("<HHI")  # magic, frame_rate, frame_count
_CHANNELS = {18458: 16, 29569: 32}  # by magic
COUNTS = 2**32
"""Packet numbers wrap around to 0 after this many packets."""
_LEAST, _RANGE = 1000, 1000  # microseconds, of a pulse that begins to turn a motor


class Request(NamedTuple):
    """The outputs of an ArduPilot that waits for readings."""

    frame_count: int
    """Number of answers received so far; the same packet is repeated until an answer comes."""
    pwm: tuple[int, ...]
    """Pulse lengths [µs] of 16 or 32 channels."""

    @property
    def outputs(self) -> list[float]:
        """The outputs, from 0 to 1."""
        return [max(0.0, (pulse - _LEAST) / _RANGE) for pulse in self.pwm]


def decode(packet: bytes) -> Request:
    """Decode a packet.

    Raises:
        ValueError: The packet does not come from an ArduPilot.
    """
    if len(packet) >= _HEADER.size:
        magic, _, count = _HEADER.unpack_from(packet)
        channels = _CHANNELS.get(magic, 0)
        if channels and len(packet) == _HEADER.size + 2 * channels:
            return Request(count, struct.unpack_from(f"<{channels}H", packet, _HEADER.size))
    sizes = " or ".join(str(_HEADER.size + 2 * channels) for channels in _CHANNELS.values())
    magics = " or ".join(map(str, _CHANNELS))
    shown = packet[: _HEADER.size].hex(" ")
    raise ValueError(
        f"expected {sizes} bytes that begin with {magics}, got {len(packet)}: {shown or 'none'}"
    )


def numbers(values: Iterable[float]) -> str:
    """Return an array as text; ArduPilot accepts no space before its bracket."""
    return f"[{','.join(f'{value:.9g}' for value in values)}]"


def encode(timestamp: float, readings: str) -> bytes:
    """Encode an answer.

    Args:
        timestamp: ArduPilot's time [s].
        readings: All other entries of the JSON object. ArduPilot searches the text for one name
            after the other, so no name may be part of an earlier one.
    """
    # It takes the text between the last two ends of lines.
    return f'\n{{"timestamp":{timestamp:.12f},{readings}}}\n'.encode()
