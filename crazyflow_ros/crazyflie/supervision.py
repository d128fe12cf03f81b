"""The supervisor of a Crazyflie: its state, arming, recovery from a crash, emergency stop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from crazyflow_ros.crazyflie.crtp import Packet
from crazyflow_ros.crazyflie.overseer import Overseer
from crazyflow_ros.crazyflie.pilot import Pilot
from crazyflow_ros.flight import Arm, Emergency, Recover, Setpoint
from crazyflow_ros.runtime.requests import Response

Send = Callable[[Packet], None]
Info = Callable[[], int]
"""Returns the supervisor's bits, see `variables.supervisor_info`."""

_WATCHDOG_MS = 1000  # of the emergency stop
_INFO, _COMMAND = 0, 1  # channels
_BITFIELD, _ARM, _RECOVER, _STOP, _WATCHDOG = 0x0C, 0x01, 0x02, 0x03, 0x04
_ANSWER = 0x80


class Supervision:
    """The supervisor of one Crazyflie.

    Args:
        pilot: Commands the drone.
        report: Logs refusals with their reasons, and shows them on the console.
        overseer: The firmware's supervisor, which decides; None leaves it to the commander.

    Attributes:
        watchdog_ms: Simulated time at which the drone stops unless a client resets the watchdog;
            None if it is off, or if the firmware's supervisor looks after it.
    """

    def __init__(
        self, pilot: Pilot, report: Callable[[str], None], overseer: Overseer | None
    ) -> None:
        self._pilot, self._report, self._overseer = pilot, report, overseer
        self.watchdog_ms: int | None = None

    def ask(self, setpoint: Setpoint, then: Callable[[bool], None] | None = None) -> None:
        """Command the drone; report a refusal, and call `then` with whether it was accepted."""

        def finish(future: Future[Response]) -> None:
            refused = [str(future.exception())] if future.exception() else future.result().refused
            for text in refused:
                self._report(text)
            if then is not None:
                then(not refused)

        self._pilot.ask(setpoint).add_done_callback(finish)

    def answer(self, packet: Packet, info: Info, time_ms: int, send: Send) -> Packet | None:
        """Carry out a packet of this port, see `Crazyflie.receive`.

        Raises:
            ValueError: The packet is malformed, or of an unknown kind.
        """
        if not packet.data:
            raise ValueError("an empty request to the supervisor")
        command = packet.data[0]
        head = bytes([command | _ANSWER])
        if packet.channel == _INFO and 1 <= command <= _BITFIELD:
            bits = info()
            value = bits.to_bytes(2, "little")
            if command != _BITFIELD:
                value = bytes([bits >> (command - 1) & 1])
            return packet._replace(data=head + value)
        if packet.channel == _COMMAND and command == _ARM and len(packet.data) > 1:
            self.arm(packet._replace(data=head), send, armed=bool(packet.data[1]))
        elif packet.channel == _COMMAND and command == _RECOVER:
            self.recover(packet._replace(data=head), send)
        elif packet.channel == _COMMAND and command == _STOP:
            self.stop()
        elif packet.channel == _COMMAND and command == _WATCHDOG:
            self.set_watchdog(time_ms)
        else:
            raise ValueError(f"unknown request to the supervisor, {packet.data.hex()}")
        return None

    def stop(self) -> None:
        """Stop the drone in an emergency: it is locked at the supervisor's next look."""
        if self._overseer is not None:
            self._overseer.machine.stop_requested = True
        else:
            self.ask(Emergency())

    def arm(self, packet: Packet, send: Send, *, armed: bool) -> None:
        """Arm or disarm the drone; send whether that succeeded and whether it is now armed."""
        head = packet.data[:1]
        if self._overseer is not None:
            machine = self._overseer.machine
            done = machine.request_arming(armed)
            if not done:
                self._report(f"it cannot be armed in the state {machine.state.value!r}")
            send(packet._replace(data=head + bytes([done, machine.is_armed])))
            return

        def answer(done: bool) -> None:
            send(packet._replace(data=head + bytes([done, armed if done else not armed])))

        self.ask(Arm(armed), answer)

    def recover(self, packet: Packet, send: Send) -> None:
        """Let a crashed drone fly again; send twice, as the firmware does, whether it can.

        The firmware refuses until a person has set a tumbled drone upright. Here, a drone that lies
        still is set upright first.
        """
        head = packet.data[:1]

        def tell(turned: Future[bool]) -> None:
            is_turned = not turned.exception() and turned.result()
            if is_turned:
                self._report("it was set upright where it lay, as a person would do")
            if self._overseer is None:
                return
            machine = self._overseer.machine
            if is_turned:
                machine.set_upright()
            if not (done := machine.request_recovery()):
                self._report("it does not stand upright, and cannot recover")
            send(packet._replace(data=head + bytes([done, not machine.is_crashed])))

        def answer(done: bool) -> None:
            send(packet._replace(data=head + bytes([done, done])))

        firmware, name = self._pilot.physics.firmware, self._pilot.name
        firmware.set_upright(name, if_crashed=True).add_done_callback(tell)
        if self._overseer is None:
            self.ask(Recover(), answer)

    def set_watchdog(self, time_ms: int) -> None:
        """Start the watchdog of the emergency stop, or reset it."""
        if self._overseer is not None:
            self._overseer.notify_watchdog()
            return
        self.watchdog_ms = time_ms + _WATCHDOG_MS

    def check_watchdog(self, time_ms: int) -> None:
        """Stop the drone if no client has reset the watchdog for a second."""
        if self.watchdog_ms is not None and time_ms > self.watchdog_ms:
            self.watchdog_ms = None
            self._report("the watchdog of the emergency stop was not reset for 1 s: locked")
            self.ask(Emergency())
