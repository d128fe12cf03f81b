"""One PX4 and the drone that it flies."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Sequence

from crazyflow_ros.doors.px4.link import Px4Link
from crazyflow_ros.doors.px4.mavlink import ARMED, HilActuatorControls, Message
from crazyflow_ros.throttled_logger import Logger

_SILENT = 1000  # frames after which a PX4 that has answered none is reported


class Vehicle:
    """Which frames a PX4 was sent, and which it has answered.

    Args:
        drone: Name of the drone.
        address: Address of the network interface.
        port: TCP port.
        selector: Learns what to wait for; its data are to be called with the socket that is ready.
        command: Receives the outputs of each answer.
        lost: Called when the connection has ended.
        logger: Says who came and went, and when the drone is armed.

    Attributes:
        drone: As given.
        armed: Whether its PX4 has armed it.

    Raises:
        OSError: The port cannot be opened.
    """

    def __init__(
        self,
        drone: str,
        address: str,
        port: int,
        selector: selectors.BaseSelector,
        *,
        command: Callable[[Sequence[float]], None],
        lost: Callable[[], None],
        logger: Logger,
    ) -> None:
        self.drone, self.armed = drone, False
        self._command, self._lost, self._logger = command, lost, logger
        self._sent = self._answered = 0  # times of the latest frames
        self._unanswered = 0  # frames of a PX4 that has answered none
        self._link = Px4Link(drone, address, port, selector, self._serve, logger)

    @property
    def is_connected(self) -> bool:
        """Whether a PX4 is connected."""
        return self._link.is_open

    @property
    def is_booting(self) -> bool:
        """Whether a PX4 is connected that has not answered any frame yet."""
        return self.is_connected and not self._answered

    @property
    def is_waited_for(self) -> bool:
        """Whether a PX4 is connected that has not answered the latest frame yet."""
        return self.is_connected and self._answered < self._sent

    def send(self, messages: Sequence[Message], time_usec: int) -> None:
        """Send a frame, once."""
        if not self.is_connected or self._sent == time_usec:
            return
        self._sent = time_usec
        self._link.send(*messages)
        self._note_loss()
        if self.is_booting:
            self._unanswered += 1
            if self._unanswered == _SILENT:
                self._logger.warning(
                    f"{self.drone}: PX4 has answered none of {_SILENT} frames: see its console"
                )

    def _serve(self, ready: socket.socket) -> None:
        """Carry out what has arrived at a socket."""
        if self._link.is_at_the_door(ready):
            if self._link.accept():
                self._sent = self._answered = self._unanswered = 0
            return
        for message in self._link.receive():
            if isinstance(message, HilActuatorControls):
                self._take(message)
        self._note_loss()

    def _take(self, answer: HilActuatorControls) -> None:
        self._answered = max(self._answered, min(answer.time_usec, self._sent))
        armed = bool(answer.mode & ARMED)
        if armed != self.armed:
            self.armed = armed
            self._logger.info(f"{self.drone}: PX4 has {'armed' if armed else 'disarmed'} it")
        self._command(answer.controls)

    def _note_loss(self) -> None:
        if not self._link.is_open and self._sent:
            self._sent, self._answered, self.armed = 0, 0, False
            self._lost()

    def close(self) -> None:
        """Close the port."""
        self._link.close()
