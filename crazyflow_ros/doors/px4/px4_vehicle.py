"""One PX4 and the drone that it flies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crazyflow_ros.doors.px4.mavlink import (
    ARMED,
    HilActuatorControls,
    HilStateQuaternion,
    Message,
)
from crazyflow_ros.doors.px4.px4_link import Px4Link
from crazyflow_ros.doors.vehicles import LockStepVehicle, VehicleContext

_SILENT = 1000  # frames after which a PX4 that has answered none is reported


class Px4Frame(NamedTuple):
    """What a PX4 is sent at a control tick."""

    time_usec: int
    """PX4's time."""
    messages: Sequence[Message]
    """See `Px4Readings`."""


class Px4Vehicle(LockStepVehicle[Px4Frame]):
    """Tracks which frames were sent to a PX4 and which it has answered, by their times.

    Args:
        context: The drone, its port, and whom to notify.

    Attributes:
        armed: Whether its PX4 has armed it.

    Raises:
        OSError: The port cannot be opened.
    """

    def __init__(self, context: VehicleContext) -> None:
        super().__init__(context)
        self.armed = False
        self._unanswered = 0  # frames of a PX4 that has answered none
        self._link = Px4Link(context, self._begin, self._take, self._end)

    @property
    def is_connected(self) -> bool:
        """Whether a PX4 is connected."""
        return self._link.is_open

    def send(self, frame: Px4Frame) -> None:
        """Send a frame, once."""
        self._link.dismiss_silent()
        if self._sent == frame.time_usec or not self.is_connected:
            return
        self._sent = frame.time_usec
        self._link.send(*frame.messages)
        if self.is_connected and not self._answered:
            self._unanswered += 1
            if self._unanswered == _SILENT:
                self._context.logger.warning(
                    f"{self.drone}: PX4 has answered none of {_SILENT} frames: see its console"
                )

    def tell(self, message: HilStateQuaternion) -> None:
        """Send a message that needs no answer if the frame of the same time was sent."""
        if self.is_connected and self._sent == message.time_usec:
            self._link.send(message)

    def _begin(self) -> None:
        self._sent = self._answered = self._unanswered = 0

    def _take(self, answer: Message) -> None:
        if not isinstance(answer, HilActuatorControls):
            return
        self._answered = max(self._answered, min(answer.time_usec, self._sent))
        armed = bool(answer.mode & ARMED)
        if armed != self.armed:
            self.armed = armed
            self._context.logger.info(
                f"{self.drone}: PX4 has {'armed' if armed else 'disarmed'} it"
            )
        self._context.command(answer.controls)

    def _end(self) -> None:
        if self._sent:
            self._sent, self._answered, self.armed = 0, 0, False
            self._context.lost()

    def close(self) -> None:
        """Close the port."""
        self._link.close()
