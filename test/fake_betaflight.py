"""A Betaflight that is none: the other end of its UDP ports, with the same outputs always."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress


class FakeBetaflight(threading.Thread):
    """Answers packets with outputs; it begins to listen at once."""

    def __init__(self, outputs: tuple[float, ...]) -> None:
        super().__init__(daemon=True)
        self.outputs, self.silent = outputs, False
        self.packets: list[tuple[float, ...]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 9003))
        self.start()

    def run(self) -> None:
        while packet := self._socket.recv(1000):
            self.packets.append(struct.unpack("<18d", packet))
            if not self.silent:
                self.answer(struct.pack("<4f", *self.outputs))

    def answer(self, packet: bytes) -> None:
        self._socket.sendto(packet, ("127.0.0.1", 9002))

    def end(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", ("127.0.0.1", 9003))
        self.join()
        self._socket.close()


class Receiver:
    """The port of Betaflight's radio."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 9004))
        self._socket.setblocking(False)

    def packets(self) -> list[tuple[float, ...]]:
        """Times and channels that have arrived since the last call."""
        found = []
        with suppress(BlockingIOError):
            while True:
                found.append(struct.unpack("<d16H", self._socket.recv(100)))
        return found

    def close(self) -> None:
        self._socket.close()
