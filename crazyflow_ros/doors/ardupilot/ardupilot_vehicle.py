"""One ArduPilot and the drone that it flies."""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import suppress
from typing import NamedTuple

from crazyflow_ros.doors.ardupilot.json_packets import COUNTS, Request, decode, encode
from crazyflow_ros.doors.door_sockets import Address, open_udp, shown
from crazyflow_ros.doors.vehicles import LockStepVehicle, VehicleContext

_IP_RECVERR = 11  # Linux: tells also of packets that nobody took; Python has no name for it
_RECEIVED = 2048  # bytes, more than a packet has
_MOST_AT_ONCE = 1000  # packets, more than a socket holds
_PROBE = 0.5  # s of silence, and then from one empty packet to the next
_ANCILLARY = 512  # bytes, of an error
_EARLIER = COUNTS // 2  # numbers from there on are of the past
# ArduPilot drops fractions of a microsecond, and would lose one for a step that was rounded down.
_TIME_SCALE = 1 + 1e-7


class ArduPilotFrame(NamedTuple):
    """What an ArduPilot is sent at a control tick."""

    number: int
    """Number of the frame, from 1."""
    entries: str
    """See `ArduPilotReadings`."""


class ArduPilotVehicle(LockStepVehicle[ArduPilotFrame]):
    """Tracks which packets of an ArduPilot have arrived and which were answered.

    ArduPilot sends its outputs and waits for readings; its clock waits, too. Each packet asks for
    one answer. A surplus answer would stay in ArduPilot's queue and delay all later ones by a
    frame.

    Args:
        context: The drone, its port, and whom to notify.
        rate: Frames a second.

    Raises:
        OSError: The port cannot be opened.
    """

    def __init__(self, context: VehicleContext, rate: int) -> None:
        super().__init__(context)
        self._rate = rate
        self._peer: Address | None = None
        self._count = 0  # of its latest packet
        self._asks = False  # whether that one has got no answer yet
        self._first = 0  # frame of its first answer: its time is counted from there
        self._entries = ""  # of the latest one
        self._since = 0.0  # wall time of the latest packet to it
        self._probes = 0  # empty packets since its latest one
        self._where = f"udp://{context.address}:{context.port}"
        self._socket = open_udp(context.address, context.port)
        self._socket.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        context.selector.register(self._socket, selectors.EVENT_READ, self._serve)

    @property
    def is_connected(self) -> bool:
        """Whether an ArduPilot is there."""
        return self._peer is not None

    def send(self, frame: ArduPilotFrame) -> None:
        """Send a frame once, to an ArduPilot that waits for one."""
        if self._asks and self._sent != frame.number:
            self._sent, self._entries = frame
            self._first = self._first or self._sent
            self._answer()

    def probe(self) -> None:
        """Check from time to time whether an ArduPilot that owes an answer still runs.

        ArduPilot ignores an empty packet; if it has ended, the packet returns as an error.
        """
        if time.monotonic() - self._since > _PROBE:
            self._probes += 1
            self._transmit(b"")

    def _answer(self) -> None:
        self._asks = False
        timestamp = (self._sent - self._first + 1) / self._rate * _TIME_SCALE
        self._transmit(encode(timestamp, self._entries))

    def _transmit(self, packet: bytes) -> None:
        self._since = time.monotonic()
        if self._peer is not None:
            with suppress(OSError):  # that of an earlier packet, see `_note_end`
                self._socket.sendto(packet, self._peer)

    def _serve(self, ready: socket.socket) -> None:
        """Process the packets that have arrived."""
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
                self._context.refuse(f"a packet from {shown(sender)}", str(error))
            else:
                self._take(request, sender)

    def _take(self, request: Request, sender: Address) -> None:
        later = (request.frame_count - self._count) % COUNTS
        if sender != self._peer:
            self._meet(request, sender)
        elif later >= _EARLIER and request.frame_count:
            what = f"packet {request.frame_count} of ArduPilot"
            self._context.refuse(what, f"expected {self._count} or a later one")
        elif later >= _EARLIER:
            self._begin(request, sender, "has started again")
        elif later:
            self._count, self._asks, self._probes = request.frame_count, True, 0
            if self._sent:
                self._answered = self._sent
                self._context.command(request.outputs)
        elif not self._asks:  # the answer is lost
            self._answer()

    def _meet(self, request: Request, sender: Address) -> None:
        """Accept or refuse a packet from another ArduPilot than the present one."""
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
            what = f"a packet from {shown(sender)}"
            self._context.refuse(what, f"{self._where} has the ArduPilot at {shown(self._peer)}")

    def _begin(self, request: Request, sender: Address, what: str) -> None:
        if self._peer is not None:
            self._context.lost()
        self._context.logger.info(
            f"{self.drone}: an ArduPilot {what} at {self._where}: {shown(sender)}"
        )
        self._peer, self._count, self._asks = sender, request.frame_count, True
        self._first = self._sent = self._answered = self._probes = 0

    def _note_end(self) -> None:
        """Drop the ArduPilot if a packet to it has come back as an error."""
        with suppress(OSError):  # which ends the loop: there is nothing more
            while True:
                *_, peer = self._socket.recvmsg(1, _ANCILLARY, socket.MSG_ERRQUEUE)
                if peer == self._peer:
                    self._peer, self._asks = None, False
                    self._context.logger.warning(
                        f"{self.drone}: the ArduPilot at {shown(peer)} has ended, and has to be "
                        "started again"
                    )
                    self._context.lost()

    def close(self) -> None:
        """Close the port."""
        self._socket.close()
