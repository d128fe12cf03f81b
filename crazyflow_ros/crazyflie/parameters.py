"""Parameters of the firmware: their table, their values, and the port to read and write them."""

from __future__ import annotations

import errno
import struct
import threading
import tomllib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import isfinite

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.crazyflie.crtp import CTYPES, Contents, Packet, Port

Number = int | float

_CONTENTS, _READ, _WRITE, _OTHER = range(4)  # channels
_SET_BY_NAME, _UPDATED, _EXTENDED, _STORE, _STATE, _CLEAR, _DEFAULT = range(7)
_EXTENDED_2, _DEFAULT_2 = 7, 8
_READ_ONLY_BIT, _EXTENDED_BIT = 0x40, 0x10
_PERSISTENT = b"\x01"  # the only extended type
_NOT_STORED, _STORED = b"\x00", b"\x01"


@dataclass(frozen=True)
class Parameter:
    """An entry of the table."""

    group: str
    name: str
    ctype: str
    default: Number
    read_only: bool = False
    persistent: bool = False

    @property
    def full_name(self) -> str:
        """Group and name, separated by a dot."""
        return f"{self.group}.{self.name}"

    @property
    def format(self) -> str:
        """Format of its value, see `struct`."""
        return "<" + CTYPES[self.ctype].format

    def checked(self, value: Number) -> Number:
        """Return a value as the firmware stores it.

        Raises:
            ValueError: Its type cannot hold the value.
        """
        try:
            kind = float if self.ctype == "float" else int
            (stored,) = struct.unpack(self.format, struct.pack(self.format, kind(value)))
        except (struct.error, OverflowError, TypeError, ValueError):
            raise ValueError(f"{self.full_name} is a {self.ctype}, got {value}") from None
        if not isfinite(stored):
            raise ValueError(f"{self.full_name} must be finite, got {value}")
        number: Number = stored
        return number


@cache
def table() -> tuple[Parameter, ...]:
    """Return the firmware's parameters, in the order of their numbers."""
    text = resources.files(__package__).joinpath("parameters.toml").read_text(encoding="utf-8")
    return tuple(
        Parameter(group, name, ctype, default, "read-only" in flags, "persistent" in flags)
        for group, entries in tomllib.loads(text).items()
        for name, (ctype, default, *flags) in entries.items()
    )


class CrazyflieParameters:
    """The parameters of one Crazyflie.

    Args:
        defaults: Values of this Crazyflie that differ from the firmware's, by full name.
        on_set: Called with full name and value before a value is set; may raise ValueError to
            refuse it.
        report: Called with the reason when a client's value is refused.
        on_change: Called after a value has changed, with its full name and whether someone set it
            (False if it follows from something else).
        save: Saves the values of all stored parameters, by full name; may raise OSError.
    """

    def __init__(
        self,
        defaults: Mapping[str, Number],
        on_set: Callable[[str, Number], None],
        report: Callable[[str], None],
        on_change: Callable[[str, bool], None] = lambda *_: None,
        save: Callable[[Mapping[str, Number]], None] = lambda _: None,
    ) -> None:
        self._on_set, self._report, self._on_change = on_set, report, on_change
        self._save = save
        self._lock = threading.Lock()  # held while a value is set
        self._table = table()
        self._number = {entry.full_name: i for i, entry in enumerate(self._table)}
        self._defaults = self._checked(defaults)
        self._values = list(self._defaults)
        self._stored: dict[int, Number] = {}
        self._contents = Contents(
            [
                (
                    CTYPES[entry.ctype].parameter
                    | entry.read_only * _READ_ONLY_BIT
                    | entry.persistent * _EXTENDED_BIT,
                    (entry.group, entry.name),
                )
                for entry in self._table
            ]
        )

    @property
    def table(self) -> tuple[Parameter, ...]:
        """All parameters."""
        return self._table

    def get(self, name: str) -> Number:
        """Return the value of a parameter, given by its full name.

        Raises:
            KeyError: There is no such parameter.
        """
        return self._values[self._number[name]]

    def set(self, name: str, value: Number) -> None:
        """Set a parameter.

        Raises:
            KeyError: There is no such parameter.
            ValueError: The parameter is read-only, or cannot have this value.
        """
        number = self._number[name]
        if self._table[number].read_only:
            raise ValueError(f"{name} is read-only")
        self._set(number, value)

    def restore(self, stored: Mapping[str, Number]) -> None:
        """Set stored values as the firmware does at its start; report invalid ones."""
        for name, value in stored.items():
            number = self._number.get(name)
            if number is None or not self._table[number].persistent:
                self._report(f"the stored parameter {shown(name)} is none that can be stored")
                continue
            try:
                self._set(number, value)
            except ValueError as error:
                self._report(f"a stored value is left out: {error}")
            else:
                self._stored[number] = self._values[number]

    def restart(
        self, defaults: Mapping[str, Number], kept: Collection[str], begin: Callable[[], None]
    ) -> None:
        """Return to the defaults and then to the stored values, as at the firmware's start.

        Args:
            defaults: See `CrazyflieParameters`.
            kept: Full names of parameters that keep their values.
            begin: Undoes the effects of the present values; no value can be set during the call.
        """
        with self._lock:
            begin()
            before, self._defaults = self._values, self._checked(defaults)
            self._values = [
                now if entry.full_name in kept else own
                for entry, now, own in zip(self._table, before, self._defaults)
            ]
        for number, value in self._stored.items():
            with suppress(ValueError):  # it was accepted when it was stored
                self._set(number, value)
        for entry, old, new in zip(self._table, before, self._values):
            if old != new:
                self._on_change(entry.full_name, False)

    def _checked(self, defaults: Mapping[str, Number]) -> list[Number]:
        given = [defaults.get(entry.full_name, entry.default) for entry in self._table]
        return [entry.checked(value) for entry, value in zip(self._table, given)]

    def note(self, name: str, value: Number) -> None:
        """Adopt a value that was set elsewhere."""
        number = self._number[name]
        self._values[number] = self._table[number].checked(value)
        self._on_change(name, False)

    def note_all(self, values: Callable[[], Mapping[str, Number]]) -> None:
        """Adopt values by full name; no other value can be set while they are computed."""
        changed = []
        with self._lock:
            for name, value in values().items():
                number = self._number[name]
                stored = self._table[number].checked(value)
                if stored != self._values[number]:
                    self._values[number] = stored
                    changed.append(name)
        for name in changed:
            self._on_change(name, False)

    def news(self, name: str) -> Packet:
        """Return the packet that notifies clients of a parameter's new value."""
        number = self._number[name]
        data = bytes([_UPDATED]) + number.to_bytes(2, "little") + self._raw(number)
        return Packet(Port.parameters, _OTHER, data)

    def answer(self, packet: Packet) -> Packet | None:
        """Return the answer to a packet of this port; None if it needs none.

        Raises:
            ValueError: The packet is malformed.
        """
        if packet.channel == _CONTENTS:
            return self._contents.answer(packet)
        if packet.channel == _OTHER:
            return self._answer_other(packet)
        if len(packet.data) < 2:
            raise ValueError(f"a parameter's number has 2 bytes, got {len(packet.data)}")
        number = int.from_bytes(packet.data[:2], "little")
        if number >= len(self._table):
            return packet._replace(data=packet.data[:2] + bytes([errno.ENOENT]))
        if packet.channel == _READ:
            return packet._replace(data=packet.data[:2] + b"\0" + self._raw(number))
        self._try_to_write(number, packet.data[2:])
        # Clients wait for an answer with the value in force.
        return packet._replace(data=packet.data[:2] + self._raw(number))

    def _answer_other(self, packet: Packet) -> Packet | None:
        command = packet.data[0] if packet.data else -1
        if command == _SET_BY_NAME:
            return self._set_by_name(packet)
        if len(packet.data) < 3:
            raise ValueError(f"a command of parameters has 3 bytes, got {len(packet.data)}")
        number = int.from_bytes(packet.data[1:3], "little")
        if number >= len(self._table):
            answer: bytes | None = bytes([errno.ENOENT])
        else:
            answer = self._carry_out(command, number)
        return None if answer is None else packet._replace(data=packet.data[:3] + answer)

    def _carry_out(self, command: int, number: int) -> bytes | None:
        """Return the answer to a command without the parameter's number; None if unknown."""
        entry, missing = self._table[number], bytes([errno.ENOENT])
        default = struct.pack(entry.format, self._defaults[number])
        if command in (_EXTENDED, _EXTENDED_2):
            if not entry.persistent:
                return missing
            return _PERSISTENT if command == _EXTENDED else b"\0" + _PERSISTENT
        if command in (_DEFAULT, _DEFAULT_2):
            if entry.read_only:
                return missing
            return default if command == _DEFAULT else b"\0" + default
        if command == _STATE:
            if number in self._stored:
                return _STORED + default + struct.pack(entry.format, self._stored[number])
            return _NOT_STORED + default
        if command == _STORE and entry.persistent:
            return self._store(self._stored | {number: self._values[number]})
        if command == _CLEAR and number in self._stored:
            return self._store({k: v for k, v in self._stored.items() if k != number})
        return missing if command in (_STORE, _CLEAR) else None

    def _store(self, stored: dict[int, Number]) -> bytes:
        """Store values, and return the status."""
        if stored != self._stored:
            try:
                self._save({self._table[i].full_name: value for i, value in stored.items()})
            except OSError as error:
                self._report(f"the parameter is not stored: {error}")
                return bytes([errno.EIO])
            self._stored = stored
        return b"\0"

    def _set_by_name(self, packet: Packet) -> Packet:
        parts = packet.data[1:].split(b"\0", 2)
        if len(parts) < 3 or not parts[2]:
            raise ValueError("a parameter set by name needs group, name, type and value")
        (group, name), (kind, *_) = parts[:2], parts[2]
        number = self._number.get(f"{group.decode('latin-1')}.{name.decode('latin-1')}")
        status = 0
        if number is None:
            status = errno.ENOENT
        elif CTYPES[self._table[number].ctype].parameter != kind:
            status = errno.EINVAL
        elif self._table[number].read_only:
            status = errno.EACCES
        elif not self._try_to_write(number, parts[2][1:]):
            status = errno.EINVAL
        return packet._replace(data=packet.data[: 3 + len(group) + len(name)] + bytes([status]))

    def _try_to_write(self, number: int, raw: bytes) -> bool:
        entry = self._table[number]
        size = struct.calcsize(entry.format)
        try:
            if entry.read_only:
                raise ValueError(f"{entry.full_name} is read-only")
            if len(raw) != size:
                raise ValueError(f"{entry.full_name} has {size} bytes, got {len(raw)}")
            self._set(number, struct.unpack(entry.format, raw)[0])
        except ValueError as error:
            self._report(str(error))
            return False
        return True

    def _set(self, number: int, value: Number) -> None:
        stored = self._table[number].checked(value)
        with self._lock:
            self._on_set(self._table[number].full_name, stored)
            self._values[number] = stored
        self._on_change(self._table[number].full_name, True)

    def _raw(self, number: int) -> bytes:
        return struct.pack(self._table[number].format, self._values[number])
