"""An ArduPilot that is none: the other end of its JSON interface, with a parser like its own.

python test/fake_ardupilot.py PORT [SECONDS] lets one hover a Holybro X500, and says how long that
took.
"""

from __future__ import annotations

import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from fake_px4 import Hover

RATE = 250  # Hz
MAGIC = {16: 18458, 32: 29569}  # by the number of channels
Reading = Mapping[str, Any]
Pilot = Callable[[Reading], Sequence[float] | None]  # outputs from 0 to 1; None disarms

# In the order in which ArduPilot looks for them: section, name, numbers, whether it needs them.
KEYS = [
    ("", "timestamp", 0, True),
    ("imu", "gyro", 3, True),
    ("imu", "accel_body", 3, True),
    ("", "position", 3, True),
    ("", "attitude", 3, False),
    ("", "quaternion", 4, False),
    ("", "velocity", 3, True),
    *(("", f"rng_{i}", 0, False) for i in range(1, 7)),
    ("windvane", "direction", 0, False),
    ("windvane", "speed", 0, False),
    ("", "airspeed", 0, False),
    ("", "no_time_sync", 0, False),
    *(("rc", f"rc_{i}", 0, False) for i in range(1, 13)),
    ("battery", "voltage", 0, False),
    ("battery", "current", 0, False),
]


def parse(text: str) -> dict[str, Any]:
    """Return what ArduPilot's search for substrings finds."""
    found: dict[str, Any] = {}
    for section, key, size, needed in KEYS:
        at = text.find(section)
        at = text.find(key, at + len(section) + 1) if at >= 0 else -1
        if at < 0:
            assert not needed, f"no {section}/{key} in {text!r}"
            continue
        rest = text[at + len(key) + 2 :]
        if not size:
            number = re.match(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", rest)
            found[key] = float(number[0]) if number else 0.0
            continue
        numbers = re.match(r"\[" + r",\s*".join([r"\s*([-+.\deE]+)"] * size), rest)
        assert numbers, f"no {size} numbers at {key}: {rest[:60]!r}"
        found[key] = np.array([float(number) for number in numbers.groups()])
    return found


class HoverReading(Hover):
    """Holds a Holybro X500 above where it was."""

    def __call__(self, reading: Reading, truth: Any = None) -> Sequence[float] | None:
        """Return the outputs."""
        self._frames += 1
        if self._frames < self._begin:
            return None
        names = ("position", "velocity", "quaternion", "gyro")
        place, velocity, quat, rates = (reading[name] for name in names)
        return self.hold(place, velocity, quat.tolist(), rates)


class FakeArduPilot(threading.Thread):
    """Sends its outputs, and waits for readings.

    Args:
        port: UDP port of the simulator.
        pilot: What the outputs are, in answer to readings.
        channels: Number of its channels.
        deaf: Numbers of frames to whose first answer it is deaf, so that it sends them again.
        count: Number of its first frame.

    Attributes:
        silent: Whether it takes no answers, and sends nothing.
        impatience: Wall time after which it sends a frame again [s].
        readings: All that it has taken.
        resent: Number of frames that it has sent again.
    """

    def __init__(
        self,
        port: int,
        pilot: Pilot = lambda _: None,
        *,
        channels: int = 16,
        deaf: Sequence[int] = (),
        count: int = 0,
    ) -> None:
        super().__init__(daemon=True)
        self._pilot, self._channels, self._deaf = pilot, channels, set(deaf)
        self.count, self.silent, self.impatience = count, False, 1.1
        self.readings: list[dict[str, Any]] = []
        self.resent = 0
        self._ends = threading.Event()
        self._buffer = b""
        self._simulator = ("127.0.0.1", port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.02)

    def send(self, data: bytes) -> None:
        """Send any packet."""
        self._socket.sendto(data, self._simulator)

    def packet(self, outputs: Sequence[float] | None, count: int) -> bytes:
        """Return a frame."""
        pwm = [0] * self._channels
        for i, output in enumerate(outputs or [0.0] * 4):
            pwm[i] = 1000 + round(1000 * output)
        layout = f"<HHI{self._channels}H"
        return struct.pack(layout, MAGIC[self._channels], RATE, count, *pwm)

    def run(self) -> None:
        """Fly until `end` is called."""
        outputs: Sequence[float] | None = None
        while not self._ends.is_set():
            while self.silent and not self._ends.is_set():
                time.sleep(0.001)
            self.send(self.packet(outputs, self.count))
            if not self._receive(outputs):
                break
            outputs = self._pilot(self.readings[-1])
            self.count = (self.count + 1) % 2**32

    def _receive(self, outputs: Sequence[float] | None) -> bool:
        """Wait for readings, and send the frame again and again."""
        sent = time.monotonic()
        while not self._ends.is_set():
            try:
                data = self._socket.recv(65_000)
            except (TimeoutError, ConnectionError):
                data = b""
            except OSError:
                return False
            if data and self.count in self._deaf:
                self._deaf.remove(self.count)
            elif data:
                self._buffer += data
                *_, text, self._buffer = self._buffer.rsplit(b"\n", 2)
                self._buffer = b"\n" + self._buffer
                self.readings.append(parse(text.decode()))
                return True
            if time.monotonic() - sent > self.impatience:
                self.send(self.packet(outputs, self.count))
                self.resent += 1
                sent = time.monotonic()
        return False

    def end(self) -> None:
        """Close the socket."""
        self._ends.set()
        if self.ident is not None:
            self.join()
        self._socket.close()


def main(port: int, seconds: float = 60.0) -> None:
    """Hover for some simulated time, and print the real-time factor."""
    fake, wanted = FakeArduPilot(port, HoverReading(1.0)), int(seconds * RATE)
    fake.start()
    began = time.monotonic()
    while len(fake.readings) < wanted and fake.is_alive():
        time.sleep(0.01)
    took = time.monotonic() - began
    print(f"{fake.readings[-1]['timestamp'] / took:.2f} times real time")
    fake.end()


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:])))
