"""The power of a Crazyflie, which its radio chip switches for `cflib.utils.power_switch`.

On a real drone, the radio chip (nRF51) switches the power of everything else, and answers while the
rest is off; so it does here. A restarted drone lies where it lay. A restart here includes what
people do by hand: it sets the drone upright and, if the whole drone was off, charges it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum, auto

from crazyflow_ros.crazyflie.pilot import Pilot
from crazyflow_ros.flight import SwitchOff

TARGET = 0xFE
"""First byte of the packets for the radio chip, on port 15, channel 3."""

_ALL_OFF, _SYSTEM_OFF, _SYSTEM_ON, _VOLTAGE = 0x01, 0x02, 0x03, 0x04
_RESET, _BEGIN_RESET = 0xF0, 0xFF
_ADDRESS = b"\xe7" * 5  # of the radio, before its last byte
_ON = "cflib's PowerSwitch switches it on: stm_power_up or reboot_to_fw"


class PowerState(Enum):
    """What is switched on."""

    on = auto()
    booting = auto()
    """The firmware starts; packets wait until it has."""
    system_off = auto()
    """The radio chip alone."""
    all_off = auto()
    """Nothing; the drone cannot be found. What switches it on stands for its button."""


class Power:
    """The power of one Crazyflie. One thread calls `answer`, any thread `restarted`.

    Args:
        number: Last byte of its radio address.
        pilot: Commands the drone.
        report: Logs what happens, and shows it on the console.

    Attributes:
        state: What is switched on.
    """

    def __init__(self, number: int, pilot: Pilot, report: Callable[[str], None]) -> None:
        self._number, self._pilot, self._report = number, pilot, report
        self._may_reset = False
        self.state = PowerState.on

    def answer(self, data: bytes) -> bytes:
        """Carry out a request, and return the data of the answer.

        Args:
            data: Data of the packet, beginning with `TARGET`.

        Raises:
            ValueError: The request is unknown.
        """
        command, values = data[1] if len(data) > 1 else -1, data[2:]
        if command in (_ALL_OFF, _SYSTEM_OFF):
            self._switch_off(
                PowerState.all_off if command == _ALL_OFF else PowerState.system_off, _ON
            )
        elif command == _SYSTEM_ON:
            self._switch_on()
        elif command == _BEGIN_RESET:
            self._may_reset = True
            return data[:2] + _ADDRESS + bytes([self._number])
        elif command == _RESET and len(values) == 1:
            if self._may_reset and values[0]:
                self._switch_off(PowerState.system_off)
                self._switch_on()
            elif self._may_reset:
                waits = "it waits in its boot loader, which has nothing to load in the simulator"
                self._switch_off(PowerState.system_off, f"{waits}; {_ON}")
            self._may_reset = False
        elif command == _VOLTAGE:
            return data[:2] + struct.pack("<f", self._pilot.voltage)
        else:
            raise ValueError(f"unknown request to the radio chip, {data.hex()}")
        return data[:2]

    def restarted(self) -> None:
        """Record that the firmware has restarted."""
        self.state = PowerState.on

    def _switch_off(self, state: PowerState, how_on: str = "") -> None:
        """Switch the power off; without `how_on`, only for a moment."""
        self.state = state
        self._pilot.ask(SwitchOff())
        if how_on:
            self._report(f"it is switched off; {how_on}")

    def _switch_on(self) -> None:
        """Start the firmware unless it runs."""
        if self.state in (PowerState.system_off, PowerState.all_off):
            charged, self.state = self.state is PowerState.all_off, PowerState.booting
            self._pilot.physics.firmware.restart(self._pilot.name, charged=charged)
