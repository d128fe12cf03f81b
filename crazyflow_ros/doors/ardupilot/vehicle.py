"""One ArduPilot and the drone that it flies."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from crazyflow_ros.doors.ardupilot.packets import COUNTS, Request, decode, encode
from crazyflow_ros.throttled_logger import Logger

_IP_RECVERR = 11  # Linux: tells also of packets that nobody took; Python has no name for it
_RECEIVED = 2048  # bytes, more than a packet has
_MOST_AT_ONCE = 1000  # packets, more than a socket holds
_PROBE = 0.5  # s of silence, and then from one empty packet to the next
_ANCILLARY = 512  # bytes, of an error
_EARLIER = COUNTS // 2  # numbers from there on are of the past
# ArduPilot drops fractions of a microsecond, and would lose one for a step that was rounded down.
_TIME_SCALE = 1 + 1e-7
_Address: TypeAlias = tuple[str, int]


class ArduPilotVehicle:
    """Which packets of an ArduPilot have come, and which of them got an answer.

    ArduPilot sends its outputs, and waits for readings, its clock with it. A packet asks for one
    answer, and only those that come after an answer have heard it: an answer too many would stay in
    ArduPilot's queue, and all later ones would be late by a frame.

    Args:
        drone: Name of the drone.
        address: Address of the network interface.
        port: UDP port.
        rate: Frames a second.
        selector: Learns what to wait for; its data are to be called with the socket that is ready.
        command: Receives the outputs of each answered frame.
        refuse: Receives a packet that is refused, in words, and what was expected.
        lost: Called when the ArduPilot has ended.
        logger: Says who came and went.

    Attributes:
        drone: As given.

    Raises:
        OSError: The port cannot be opened.
    """

    def __init__(
        self,
        drone: str,
        address: str,
        port: int,
        rate: int,
        selector: selectors.BaseSelector,
        *,
        command: Callable[[Sequence[float]], None],
        refuse: Callable[[str, str], None],
        lost: Callable[[], None],
        logger: Logger,
    ) -> None:
        self.drone, self._rate = drone, rate
        self._command, self._refuse, self._lost, self._logger = command, refuse, lost, logger
        self._peer: _Address | None = None
        self._count = 0  # of its latest packet
        self._asks = False  # whether that one has got no answer yet
        self._first = 0  # frame of its first answer: its time is counted from there
        self._sent = self._answered = 0  # latest frames
        self._readings = ""  # of the latest one
        self._since = 0.0  # wall time of the latest packet to it
        self._probes = 0  # empty packets since its latest one
        self._where = f"udp://{address}:{port}"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
            self._socket.bind((address, port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise OSError(f"{self._where}: {error}") from None
        self._socket.setblocking(False)
        selector.register(self._socket, selectors.EVENT_READ, self._serve)

    @property
    def is_connected(self) -> bool:
        """Whether an ArduPilot is there."""
        return self._peer is not None

    @property
    def is_waited_for(self) -> bool:
        """Whether an ArduPilot is there that has not answered its latest frame yet."""
        return self.is_connected and self._answered < self._sent

    @property
    def has_answered(self) -> bool:
        """Whether an ArduPilot is there that has answered a frame."""
        return self.is_connected and self._answered > 0

    def send(self, readings: str, frame: int) -> None:
        """Send a frame to an ArduPilot that asks, once.

        Args:
            readings: As of `ArduPilotReadings`.
            frame: Its number, from 1.
        """
        if self._asks and self._sent != frame:
            self._sent, self._readings = frame, readings
            self._first = self._first or frame
            self._answer()

    def probe(self) -> None:
        """Find out, now and then, whether an ArduPilot that is waited for has ended.

        It does not notice an empty packet, but if it has ended, the packet comes back as an error.
        """
        if time.monotonic() - self._since > _PROBE:
            self._probes += 1
            self._transmit(b"")

    def _answer(self) -> None:
        self._asks = False
        timestamp = (self._sent - self._first + 1) / self._rate * _TIME_SCALE
        self._transmit(encode(timestamp, self._readings))

    def _transmit(self, packet: bytes) -> None:
        self._since = time.monotonic()
        if self._peer is not None:
            with suppress(OSError):  # that of an earlier packet, see `_note_end`
                self._socket.sendto(packet, self._peer)

    def _serve(self, ready: socket.socket) -> None:
        """Carry out what has arrived."""
        self._note_end()
        for _ in range(_MOST_AT_ONCE):
            try:
                packet, sender = ready.recvfrom(_RECEIVED)
            except BlockingIOError:
                return
            except OSError:  # as above
                continue
            try:
                request = decode(packet)
            except ValueError as error:
                self._refuse(f"a packet from {_shown(sender)}", str(error))
            else:
                self._take(request, sender)

    def _take(self, request: Request, sender: _Address) -> None:
        later = (request.frame_count - self._count) % COUNTS
        if sender != self._peer:
            self._meet(request, sender)
        elif later >= _EARLIER and request.frame_count:
            what = f"packet {request.frame_count} of ArduPilot"
            self._refuse(what, f"expected {self._count} or a later one")
        elif later >= _EARLIER:
            self._begin(request, sender, "has started again")
        elif later:
            self._count, self._asks, self._probes = request.frame_count, True, 0
            if self._sent:
                self._answered = self._sent
                self._command(request.outputs)
        elif not self._asks:  # the answer is lost
            self._answer()

    def _meet(self, request: Request, sender: _Address) -> None:
        """Decide about a packet of an ArduPilot that is not the present one."""
        if self._peer is None:
            what = (
                "has connected"
                if not request.frame_count
                else "that has flown before has connected"
            )
            self._begin(request, sender, what)
        elif self._probes and not request.frame_count:
            self._begin(request, sender, "has taken the place of one that is silent")
        else:
            what = f"a packet from {_shown(sender)}"
            self._refuse(what, f"{self._where} has the ArduPilot at {_shown(self._peer)}")

    def _begin(self, request: Request, sender: _Address, what: str) -> None:
        if self._peer is not None:
            self._lost()
        self._logger.info(f"{self.drone}: an ArduPilot {what} at {self._where}: {_shown(sender)}")
        self._peer, self._count, self._asks = sender, request.frame_count, True
        self._first = self._sent = self._answered = self._probes = 0

    def _note_end(self) -> None:
        """Lose the ArduPilot if a packet to it has come back."""
        with suppress(OSError):  # which ends the loop: there is nothing more
            while True:
                *_, peer = self._socket.recvmsg(1, _ANCILLARY, socket.MSG_ERRQUEUE)
                if peer == self._peer:
                    self._peer, self._asks = None, False
                    self._logger.warning(
                        f"{self.drone}: the ArduPilot at {_shown(peer)} has ended, and has to be "
                        "started again"
                    )
                    self._lost()

    def close(self) -> None:
        """Close the port."""
        self._socket.close()


def _shown(address: _Address) -> str:
    return f"{address[0]}:{address[1]}"
