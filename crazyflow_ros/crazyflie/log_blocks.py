"""The log port: clients request blocks of variables, and receive packets with their values."""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass, field

from crazyflow_ros.crazyflie.crtp import CTYPES, DATA_SIZE, Contents, Packet, Port
from crazyflow_ros.crazyflie.telemetry import Telemetry
from crazyflow_ros.crazyflie.variables import RANGES, VARIABLES, Variable, as_ctype

MAX_BLOCKS, MAX_VARIABLES = 16, 128

_CONTENTS, _SETTINGS, _DATA = range(3)  # channels
_DELETE, _START, _STOP, _RESET, _CREATE, _APPEND, _START_2 = 2, 3, 4, 5, 6, 7, 8
_MAX_LENGTH = DATA_SIZE - 4  # bytes of values; block and time take four
_UNIT = 10  # ms of a period
_FORMATS = {kind.log: kind.format for kind in CTYPES.values()} | {8: "e"}  # half precision
_NAMES = {kind.log: name for name, kind in CTYPES.items()} | {8: "float"}
_ALL = tuple(VARIABLES.items())


@dataclass
class _Block:
    variables: list[Variable] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    period: int = 0  # ms; 0 while it is stopped
    once: bool = False
    due: int = 0  # ms

    @property
    def is_running(self) -> bool:
        return bool(self.period or self.once)

    def is_due(self, time_ms: int) -> bool:
        if not self.period:
            return self.once
        return time_ms >= self.due or time_ms < self.due - self.period  # time has jumped back

    @property
    def format(self) -> str:
        return "<" + "".join(_FORMATS[kind] for kind in self.types)


class LogBlocks:
    """The blocks of one client."""

    contents = Contents(
        [
            (CTYPES[variable.ctype].log, (group, name))
            for (group, name), variable in (
                (full_name.split("."), variable) for full_name, variable in _ALL
            )
        ],
        bytes([MAX_BLOCKS, MAX_VARIABLES]),
    )

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}

    @property
    def running(self) -> bool:
        """Whether any block is running."""
        return any(block.is_running for block in self._blocks.values())

    @property
    def need_ranges(self) -> bool:
        """Whether the running blocks include readings of range sensors."""
        return any(
            name in RANGES
            for block in self._blocks.values()
            if block.is_running
            for name in block.names
        )

    def answer(self, packet: Packet) -> Packet | None:
        """Return the answer to a packet of this port; None if it needs none.

        Raises:
            ValueError: The packet is malformed.
        """
        if packet.channel == _CONTENTS:
            return self.contents.answer(packet)
        if packet.channel != _SETTINGS or not packet.data:
            raise ValueError(f"the log port has no channel {packet.channel} for clients")
        command, number = packet.data[0], packet.data[1] if len(packet.data) > 1 else 0
        status = self._carry_out(command, number, packet.data[2:])
        return packet._replace(data=bytes([command, number, status]))

    def _carry_out(self, command: int, number: int, settings: bytes) -> int:
        """Carry out a command, and return its status as an error number."""
        if command == _RESET:
            self._blocks.clear()
            return 0
        if command == _CREATE:
            if number in self._blocks:
                return errno.EEXIST
            if len(self._blocks) >= MAX_BLOCKS:
                return errno.ENOMEM
            self._blocks[number] = _Block()
            return self._append(number, settings)
        if command not in (_APPEND, _DELETE, _START, _START_2, _STOP):
            return errno.ENOEXEC
        block = self._blocks.get(number)
        if block is None:
            return errno.ENOENT
        if command == _APPEND:
            return self._append(number, settings)
        if command == _DELETE:
            del self._blocks[number]
        elif command == _STOP:
            block.period = 0
        else:
            size = 1 if command == _START else 2
            if len(settings) < size:
                return errno.EINVAL
            block.period = int.from_bytes(settings[:size], "little")
            block.period *= _UNIT if command == _START else 1
            block.once, block.due = not block.period, 0
        return 0

    def _append(self, number: int, settings: bytes) -> int:
        block = self._blocks[number]
        for kind, index in struct.iter_unpack("<BH", settings[: len(settings) // 3 * 3]):
            kind &= 0x0F
            if kind not in _FORMATS or index >= len(_ALL):
                return errno.ENOENT
            if struct.calcsize(block.format + _FORMATS[kind]) > _MAX_LENGTH:
                return errno.E2BIG
            if sum(len(other.types) for other in self._blocks.values()) >= MAX_VARIABLES:
                return errno.ENOMEM
            name, variable = _ALL[index]
            block.types.append(kind)
            block.names.append(name)
            block.variables.append(variable)
        return 0

    def next_due(self) -> int | None:
        """Return the earliest time at which a packet is due [ms]; None if no block is running."""
        return min((block.due for block in self._blocks.values() if block.is_running), default=None)

    def due(self, time_ms: int) -> bool:
        """Return whether a packet is due at a simulated time."""
        return any(block.is_due(time_ms) for block in self._blocks.values())

    def packets(self, now: Telemetry) -> list[Packet]:
        """Return the packets that are due."""
        time_ms = now.time_ns // 1_000_000
        found = []
        for number, block in self._blocks.items():
            if not block.is_due(time_ms):
                continue
            block.once = False
            if block.period:
                # On multiples of the period, so that blocks of equal periods have equal times.
                block.due = (time_ms // block.period + 1) * block.period
            values = [
                as_ctype(variable.value(now), _NAMES[kind])
                for variable, kind in zip(block.variables, block.types)
            ]
            data = bytes([number]) + (time_ms & 0xFFFFFF).to_bytes(3, "little")
            data += struct.pack(block.format, *values)
            found.append(Packet(Port.log, _DATA, data))
        return found
