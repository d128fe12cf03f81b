"""Memories of base stations and radio anchors, as cflib reads and writes them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np

from crazyflow_ros.estimation.base_stations import MOST_STATIONS, BaseStation

_LIGHTHOUSE, _LOCO = 0x14, 0x13  # kinds of memories
_PAGE, _CALIBRATIONS = 0x100, 0x1000
_GEOMETRY = struct.Struct("<12f?")  # origin, rows of the rotation, whether it is valid
_CALIBRATION = struct.Struct("<14fI?")  # sweeps, serial number, whether it is valid
_ACTIVE, _ANCHORS = 0x1000, 0x2000  # beginnings of the list of active ones, and of places
_ANCHOR = struct.Struct("<3f?")
_MOST_ANCHORS = 256


class LighthouseMemory:
    """Geometry and calibration of base stations, each in a page of its own.

    Args:
        stations: What was stored before the start.
        tell: Takes what the firmware knows of these stations, see `lighthouse.KNOWN`, after it has
            changed.
    """

    kind, size = _LIGHTHOUSE, _CALIBRATIONS + MOST_STATIONS * _PAGE

    def __init__(
        self, stations: Sequence[BaseStation], tell: Callable[[np.ndarray], object]
    ) -> None:
        self._channels, self._tell = [station.channel for station in stations], tell
        self._content = bytearray(self.size)
        for station in stations:
            numbers = station.numbers
            page = station.channel * _PAGE
            geometry = _GEOMETRY.pack(*numbers[:12], True)
            self._content[page : page + len(geometry)] = geometry
            calibration = _CALIBRATION.pack(*numbers[12:26], station.uid, True)
            page += _CALIBRATIONS
            self._content[page : page + len(calibration)] = calibration
        self._stored = bytes(self._content)
        self._first = self._told = self.known()

    def clear(self) -> None:
        """Return to what is stored, as at a start of the firmware.

        It is told if it is not what was stored before the start, which the filter knows again.
        """
        self._content[:] = self._stored
        self._told = self._first
        self._tell_news()

    def read(self, address: int, size: int) -> bytes | None:
        """Return bytes; None outside the data of a station."""
        end = self._end(address)
        if end is None or address + size > end:
            return None
        return bytes(self._content[address : address + size])

    def write(self, address: int, data: bytes) -> bool:
        """Write bytes; return False outside the data of a station.

        As in the firmware, the data of the station are invalid until its last byte is written.
        """
        end = self._end(address)
        if end is None or address + len(data) > end:
            return False
        self._content[end - 1] = 0
        self._content[address : address + len(data)] = data
        self._tell_news()
        return True

    def store(self, geometries: int, calibrations: int) -> None:
        """Store the data of stations, given as bits."""
        stored = bytearray(self._stored)
        for channel in range(MOST_STATIONS):
            page = channel * _PAGE
            for bits, start in ((geometries, page), (calibrations, page + _CALIBRATIONS)):
                if bits >> channel & 1:
                    stored[start : start + _PAGE] = self._content[start : start + _PAGE]
        self._stored = bytes(stored)

    @property
    def valid(self) -> tuple[int, int]:
        """Bits of the stations whose geometry, and whose calibration is valid."""
        pages = range(0, MOST_STATIONS * _PAGE, _PAGE)
        geometries = (self._content[page + _GEOMETRY.size - 1] for page in pages)
        calibrations = (
            self._content[_CALIBRATIONS + page + _CALIBRATION.size - 1] for page in pages
        )
        first, second = (
            sum(bool(is_valid) << channel for channel, is_valid in enumerate(each))
            for each in (geometries, calibrations)
        )
        return first, second

    @staticmethod
    def _end(address: int) -> int | None:
        """Return the end of the data that an address is in."""
        channel = address % _CALIBRATIONS // _PAGE
        kind = _GEOMETRY if address < _CALIBRATIONS else _CALIBRATION
        if address // _CALIBRATIONS > 1 or channel >= MOST_STATIONS:
            return None
        return address // _PAGE * _PAGE + kind.size

    def known(self) -> np.ndarray:
        """Return what the firmware knows of the stations."""
        found: list[float] = []
        for channel in self._channels:
            page = channel * _PAGE
            *numbers, is_valid = _GEOMETRY.unpack_from(self._content, page)
            *sweeps, _, is_calibrated = _CALIBRATION.unpack_from(
                self._content, _CALIBRATIONS + page
            )
            own = np.nan_to_num([*numbers, *sweeps])
            found += [*own.tolist(), float(is_valid and is_calibrated)]
        return np.array(found)

    def _tell_news(self) -> None:
        known = self.known()
        if known.size and not np.array_equal(known, self._told):
            self._told = known
            self._tell(known)


class LocoMemory:
    """Numbers and places of radio anchors, which nobody writes.

    Args:
        anchors: Place of each anchor [m].
    """

    kind, size = _LOCO, _ANCHORS + _MOST_ANCHORS * _PAGE

    def __init__(self, anchors: Sequence[tuple[float, float, float]]) -> None:
        self._anchors = anchors

    def read(self, address: int, size: int) -> bytes | None:
        """Return bytes; None outside the lists and the places of anchors."""
        n = len(self._anchors)
        if address < _ANCHORS:
            page = bytes([n, *range(n)]).ljust(_ACTIVE, b"\0")
            start = address % _ACTIVE
            return page[start : start + size]
        number, start = divmod(address - _ANCHORS, _PAGE)
        if start or size != _ANCHOR.size or number >= _MOST_ANCHORS:
            return None
        if number >= n:
            return bytes(size)
        return _ANCHOR.pack(*self._anchors[number], True)

    def write(self, address: int, data: bytes) -> bool:
        """Return False: anchors tell where they are."""
        del address, data
        return False
