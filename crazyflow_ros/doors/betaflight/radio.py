"""The radio link to Betaflight's receiver, whose sticks are those of a gamepad.

Source: `rc_packet` in `target.h` of Betaflight's platform SIMULATOR, and `sitl.c`.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Any

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.doors.gamepad import CHANNELS, Gamepad

PORT = 9004
"""UDP port of Betaflight's receiver, which has no option to change it."""
PACKET = struct.Struct(f"<d{CHANNELS}H")
"""Time [s], pulse lengths [µs]."""
_QUIET = (
    2.0  # s after the first answer: Betaflight never leaves its failsafe if sticks come earlier
)


class Radio:
    """Sends the sticks of a gamepad, or those of a receiver's failsafe while the gamepad is silent.

    Betaflight's own failsafe does not act in its simulator: 4.6.0 treats a silent receiver as one
    whose sticks do not move.

    Args:
        drone: Name of the drone, for messages.
        gamepad: The gamepad.
        peer: Address of Betaflight.
        link: Socket to send with.
        logger: Logs when the gamepad takes over and when it falls silent.
    """

    def __init__(
        self, drone: str, gamepad: Gamepad, peer: Any, link: socket.socket, logger: Logger
    ) -> None:
        self._drone, self._gamepad, self._logger = drone, gamepad, logger
        self._peer, self._link = (peer[0], PORT), link
        self._begins: float | None = None  # simulated time [s]
        self._flies = False

    def forget(self) -> None:
        """Start over with the next Betaflight."""
        self._begins = None

    def send(self, time: float) -> None:
        """Send the sticks to a Betaflight that answers, at a simulated time [s]."""
        if self._begins is None:
            self._begins = time + _QUIET
        channels = self._gamepad.channels()
        if channels is not None and time >= self._begins:
            with suppress(OSError):  # it has just ended
                self._link.sendto(PACKET.pack(time, *channels), self._peer)
        flies = not self._gamepad.is_silent
        if self._flies != flies:
            self._flies = flies
            self._logger.info(
                f"{self._drone}: a gamepad moves its sticks"
                if flies
                else f"{self._drone}: the gamepad is silent: there is no throttle, and all "
                "switches are off"
            )
