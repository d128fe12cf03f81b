"""A Crazyflie's firmware that is none: its own codec, and a small controller that hovers."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable

import numpy as np

HELLO = b"\xf3"
GRAVITY, MASS, ARM, MOST = 9.81, 0.0328, 0.03253, 0.12  # cf2x_L250; m/s^2, kg, m, N
FIRST = 50  # IMU packets before the motors run


class FakeFirmware(threading.Thread):
    """Connects, calibrates, and flies.

    Args:
        port: UDP port of the simulator.
        outputs: Returns the outputs of the motors; by default those that hold `goal`.

    Attributes:
        goal: Place to hover at [m].
        silent: Whether it does not send outputs.
        counts: Number of packets so far, by their first two bytes.
        packets: The newest ones, by their first two bytes.
        idle: Set whenever no packet has arrived for a moment.
        commands: Other packets, which are those of programs; they are sent back.
    """

    def __init__(self, port: int, outputs: Callable[[], tuple[int, ...]] | None = None) -> None:
        super().__init__(daemon=True)
        self.goal, self.silent = np.array([0.0, 0.0, 0.5]), False
        self.counts: dict[bytes, int] = {}
        self.packets: dict[bytes, bytes] = {}
        self.idle = threading.Event()
        self.commands: list[bytes] = []
        self._outputs = outputs or self._hover
        self._force, self._rates = np.zeros(3), np.zeros(3)
        self._place, self._quat = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        self._velocity, self._seen = np.zeros(3), 0
        self._simulator = ("127.0.0.1", port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._ends = False
        self.start()

    def run(self) -> None:
        self._socket.settimeout(0.05)
        greeted = False
        while not self._ends:
            if not greeted:
                self._socket.sendto(HELLO, self._simulator)
            try:
                packet = self._socket.recv(100)
            except TimeoutError:
                self.idle.set()
                continue
            except ConnectionRefusedError:
                continue
            greeted = greeted or packet == HELLO
            if packet != HELLO:
                self._take(packet)

    def _take(self, packet: bytes) -> None:
        kind = packet[:2]
        self.packets[kind] = packet
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == b"\x61\x08":
            numbers = np.array(struct.unpack("<7f", packet[2:]))
            self._velocity += 0.3 * (100 * (numbers[:3] - self._place) - self._velocity)
            self._place, self._quat = numbers[:3], numbers[3:]
        elif kind == b"\x90\x00":
            numbers = np.array(struct.unpack("<6h", packet[2:]))
            self._rates = np.radians(numbers[3:] * 4000 / 65536)
            if self.counts[kind] == FIRST:
                self.send(b"\x90\x01")
            if self.counts[kind] >= FIRST and not self.silent:
                self.send(struct.pack("<B4H", 0x90, *self._outputs()))
        elif packet[0] != 0x90:
            self.commands.append(packet)
            self.send(packet)

    def _hover(self) -> tuple[int, ...]:
        x, y, z, w = self._quat
        roll, pitch = 2 * (w * x + y * z), 2 * (w * y - z * x)
        yaw = 2 * (w * z + x * y)
        ax, ay, az = np.clip(4 * (self.goal - self._place), -2, 2) - 3 * self._velocity
        wanted = np.array([-ay / GRAVITY, ax / GRAVITY, 0.0]).clip(-0.3, 0.3)
        turn = 150 * (wanted - (roll, pitch, yaw)) - 20 * self._rates  # rad/s^2
        tx, ty, tz = turn * (17e-6, 17e-6, 30e-6)
        thrust, yawing = MASS * (GRAVITY + az) / 4, np.clip(tz / 0.024, -0.01, 0.01)
        roll_part, pitch_part = tx / ARM / 4, ty / ARM / 4
        rotors = np.array(
            [
                thrust - roll_part - pitch_part - yawing,  # front right
                thrust - roll_part + pitch_part + yawing,  # rear right
                thrust + roll_part + pitch_part - yawing,
                thrust + roll_part - pitch_part + yawing,
            ]
        )
        return tuple((rotors / MOST * 65535).clip(0, 65535).astype(int).tolist())

    def send(self, packet: bytes) -> None:
        """Send a packet to the simulator."""
        self._socket.sendto(packet, self._simulator)

    def end(self) -> None:
        """End, without a word."""
        self._ends = True
        self.join()
        self._socket.close()
