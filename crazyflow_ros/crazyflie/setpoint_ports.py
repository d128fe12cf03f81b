"""How a Crazyflie takes setpoints: streamed ones, and commands of the high-level commander."""

from __future__ import annotations

from collections.abc import Callable

from crazyflow_ros import flight
from crazyflow_ros.crazyflie.crtp import Packet
from crazyflow_ros.crazyflie.overseer import Overseer
from crazyflow_ros.crazyflie.pilot import Pilot
from crazyflow_ros.crazyflie.setpoints import Decoder
from crazyflow_ros.crazyflie.supervision import Send, Supervision
from crazyflow_ros.flight import Setpoint

_DONE = 0  # status of a high-level command
_REFUSED = 1  # the drone cannot follow it
_BUSY = 16  # the drone cannot fly: EBUSY


class SetpointPorts:
    """Takes the setpoints of one Crazyflie, and answers those that are to be answered.

    Args:
        pilot: Commands the drone.
        supervision: Its supervisor.
        report: Logs refusals with their reasons, and shows them on the console.
        overseer: The firmware's supervisor, by whose rules setpoints count; None for those of the
            commander.
    """

    def __init__(
        self,
        pilot: Pilot,
        supervision: Supervision,
        report: Callable[[str], None],
        overseer: Overseer | None,
    ) -> None:
        self._pilot, self._supervision = pilot, supervision
        self._report, self._overseer = report, overseer

    def stream(self, setpoint: Setpoint) -> None:
        """Follow a streamed setpoint; a setpoint that ends the stream cannot be replaced."""
        overseer = self._overseer
        if overseer is None:
            if isinstance(setpoint, flight.Stop | flight.NotifySetpointsStop):
                self._supervision.ask(setpoint)
            else:
                self._pilot.command(setpoint)
        elif isinstance(setpoint, flight.NullSetpoint):
            self._pilot.physics.loop.change(overseer.relax)
        elif overseer.machine.can_fly:
            overseer.stream()
            self._pilot.command(setpoint)
        else:
            overseer.hold(setpoint)
            self._report(f"{setpoint.title} has no effect: {overseer.why}")

    def high_level(self, packet: Packet, decoder: Decoder, send: Send) -> None:
        """Carry out a command of the high-level commander, and answer it.

        Raises:
            ValueError: The packet is malformed, or of an unknown type.
        """

        def answer(status: int) -> None:
            send(packet._replace(data=packet.data[:3].ljust(3, b"\0") + bytes([status])))

        try:
            setpoint = decoder.high_level(packet)
        except ValueError:
            answer(_REFUSED)
            raise
        if setpoint is None or self._waits(setpoint):
            answer(_DONE)
        elif self._overseer is not None and not self._overseer.takes(setpoint):
            answer(_BUSY)
            self._report(f"{setpoint.title} is refused: {self._overseer.why}")
        else:
            self._supervision.ask(setpoint, lambda done: answer(_DONE if done else _REFUSED))

    def _waits(self, setpoint: Setpoint) -> bool:
        """Return whether a command waits until a stream of setpoints ends, as in the firmware."""
        overseer = self._overseer
        if overseer is None or isinstance(setpoint, flight.SetGroups):
            return False
        if not overseer.takes(setpoint):
            return False
        if not overseer.queue.is_streamed:
            self._pilot.physics.loop.change(lambda: overseer.prepare(setpoint))
            return False
        overseer.wait(None if isinstance(setpoint, flight.HighLevelStop) else setpoint)
        advice = self._pilot.physics.commands.rules.advice.streaming
        self._report(f"{setpoint.title} waits, because it follows streamed setpoints: {advice}")
        return True
