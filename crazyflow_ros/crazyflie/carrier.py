"""What carries packets between programs and drones: the network, and a radio if there is one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.crazyflie.crazyradio import GIVE_UP, RadioLink
from crazyflow_ros.crazyflie.crtp import NULL_PACKETS, Packet, Port
from crazyflow_ros.crazyflie.link_config import LinkConfig
from crazyflow_ros.crazyflie.passage import PacketPassage
from crazyflow_ros.crazyflie.ports import Address
from crazyflow_ros.crazyflie.power import PowerState
from crazyflow_ros.crazyflie.radios import Radios
from crazyflow_ros.crazyflie.station import Client, Station
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.scene import Mirror

_LOG_VALUES, _POWER = (Port.log, 2), (Port.link, 3)  # ports and channels

Deliver = Callable[[Station, Address, bytes], None]
"""Takes a drone, a program and a packet between them."""


class Carrier:
    """Carries packets, with the delays and losses of the link.

    Args:
        config: The link.
        mirror: The scene.
        clock: Returns the time of the link [ns].
        wake: Called when a packet is under way, from any thread.
        logger: Logs links that end.
        take: Lets a drone carry out a packet.
        put: Hands over a packet to a program.
        on_lost: Called with a drone and a program whose link is lost.

    Attributes:
        skips: Port and channel of packets that do not go by radio.
    """

    def __init__(
        self,
        config: LinkConfig,
        mirror: Mirror,
        clock: Callable[[], int],
        wake: Callable[[], object],
        logger: ThrottledLogger,
        take: Deliver,
        put: Deliver,
        on_lost: Callable[[Station, Address], None],
    ) -> None:
        self._clock, self._wake, self._logger = clock, wake, logger
        self._take, self._put, self._on_lost = take, put, on_lost
        self.skips: Collection[tuple[int, int]] = ()
        self._passage = PacketPassage(config, clock, wake)
        self._radios = Radios(config, config.rate, mirror, clock) if config.rate else None

    def next_due(self) -> int | None:
        """Return when `carry` has to be called [ns]; None if no packet is under way."""
        dues = self._passage.next_due(), self._radios.next_due() if self._radios else None
        return min((due for due in dues if due is not None), default=None)

    def carry(self, now: Snapshot) -> None:
        """Deliver the packets that arrive now."""
        self._passage.deliver_due()
        if self._radios:
            self._radios.look(now)
            self._radios.run()

    def accept(self, station: Station, sender: Address, datagram: bytes) -> None:
        """Accept a datagram of a program."""
        self._passage.take(partial(self._transmit, station, sender, datagram))

    def _transmit(self, station: Station, sender: Address, datagram: bytes) -> None:
        take, head = partial(self._take, station, sender, datagram), _head(datagram)
        off = station.firmware.power.state is PowerState.all_off
        if self._radios is None or head in self.skips or (off and head == _POWER):
            take()  # by the button, if the drone is off
        elif datagram in NULL_PACKETS:
            if self._radios.reaches(station):
                take()
        elif sender in station.clients or not station.is_full:
            link = self.client(station, sender).link
            if link is not None and not link.radio.up(link, len(datagram), take):
                text = "a packet is lost, because its program sends more than the radio carries"
                self._logger.warning(f"{station.name}: {text}")
        else:
            take()  # which refuses it

    def answer(self, station: Station, to: Address, datagram: bytes) -> None:
        """Answer one who looks for drones."""
        self._passage.take(partial(self._put, station, to, datagram))

    def send(self, station: Station, to: Address, packet: Packet) -> None:
        """Send a packet to a program. From any thread."""
        data, client = bytes(packet), station.clients.get(to)
        put = partial(self._passage.take, partial(self._put, station, to, data))
        if self._radios is None or _head(data) in self.skips:
            put()
            return
        if client is None or client.link is None:
            return  # its link is lost
        may_drop = packet[:2] == _LOG_VALUES
        if not client.link.radio.down(client.link, len(data), put, may_drop=may_drop):
            station.console.warning("log packets are dropped, because the radio carries fewer")
        self._wake()

    def client(self, station: Station, sender: Address) -> Client:
        """Return the record of a client, see `Station.client`."""
        return station.client(sender, self._clock(), partial(self._join, station, sender))

    def _join(self, station: Station, sender: Address) -> RadioLink | None:
        if self._radios is None:
            return None
        return self._radios.join(station, partial(self._lose, station, sender))

    def _lose(self, station: Station, sender: Address) -> None:
        """Give up a client whose packets do not arrive, as cflib does."""
        power = self._radios.power(station) if self._radios else 0.0
        self._logger.warning(
            f"{station.name}: the link to {sender[0]}:{sender[1]} is lost: {GIVE_UP} packets in a "
            f"row without an answer, at {power:.0f} dBm"
        )
        self.forget(station, sender)
        self._on_lost(station, sender)

    def forget(self, station: Station, *senders: Address) -> None:
        """End the links of clients; the log says how they were."""
        for text in station.forget(*senders):
            self._logger.info(text)

    def note_reception(self, station: Station) -> None:
        """Tell the firmware of a drone what its radio has received."""
        if self._radios:
            links = [client.link for client in station.clients.values() if client.link]
            station.firmware.rssi = -self._radios.power(station)
            station.firmware.received = round(sum(link.received for link in links))


def _head(data: bytes) -> tuple[int, int]:
    """Return port and channel of a packet."""
    return (data[0] >> 4, data[0] & 3) if data else (0, 0)
